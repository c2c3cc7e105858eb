"""The data of one record on one time axis: seconds on the meter clock since its first sample."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import RecordFault
from opjoule.energy.operations.operation_table import Latency, OperationTable
from opjoule.energy.operations.tables import read_operations
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.results.recorded import (
    TimeAxis,
    ToSeconds,
    board_to_meter,
    corrected_trace,
    event_lanes,
    operation_track,
    system_track,
    table_of,
)
from opjoule.results.tracks import Floats, Lane, LostStretch, PhaseSpan, SampleParts, Track, sampled_track
from opjoule.runs.record.phases import Role
from opjoule.runs.record.run import Run
from opjoule.runs.record.run_record import RunRecord

T = TypeVar("T")
BINS_PER_DECADE = 20
"""Bins of latencies, of equal width on a logarithmic axis."""
_NO_MAP = "No clock map from board to meter: phases and operations cannot be placed on the trace."


@dataclass(frozen=True)
class LatencyCounts:
    """Operations by latency."""

    bounds_s: Floats
    """Edges of the bins [s], shape (n + 1,)."""
    counts: Mapping[str, npt.NDArray[np.int64]]
    """Kind -> operations in each bin, shape (n,)."""
    marks_s: Mapping[str, float]
    """Name of a percentile of all operations -> latency [s]."""


@dataclass(frozen=True)
class Timeline:
    """All drawable data of a record; each missing part has a line in `notes`."""

    duration_s: float = 0.0
    tracks: Mapping[str, Track] = field(default_factory=dict)
    lost: list[LostStretch] = field(default_factory=list)
    phases: list[PhaseSpan] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    latency: Mapping[str, Latency] = field(default_factory=dict)
    """Kind -> latency of the operations of all runs, on the board's own clock."""
    latency_counts: LatencyCounts | None = None
    """The same operations, counted by latency."""
    notes: list[str] = field(default_factory=list)


def read_timeline(
    record: RunRecord, trace: PowerTrace | None = None, operations: OperationTable | None = None
) -> Timeline:
    """Reads a record's trace, phases, operation rate, counters and events; faults go to `notes`.

    `trace` and `operations` are used instead of the record's files if they are given.
    """
    notes: list[str] = []
    if trace is None:
        trace = _noted(notes, lambda: corrected_trace(record)[0])
    if trace is None or len(trace) < 2:
        return Timeline(notes=notes or ["The power trace contains no samples."])
    axis = TimeAxis.of(trace)
    tracks = {"power": power_track(trace, axis)}
    duration_s = max([float(tracks["power"].bounds_s[-1]), *(stretch.end_s for stretch in axis.lost)])
    to_seconds = axis.of_board(_noted(notes, lambda: board_to_meter(record.run)))
    if to_seconds is None:
        notes += [_NO_MAP] if record.run.phases else []
        return Timeline(duration_s, tracks, axis.lost, notes=notes)
    if operations is None:
        operations = _noted(notes, lambda: read_operations(record.intact("operations.parquet")))
    system = _noted(notes, lambda: table_of(record, "system"))
    events = _noted(notes, lambda: table_of(record, "events"))
    runs = [phase for phase in record.run.phases if phase.role is Role.WORK]
    of_runs = OperationTable.empty()
    if operations:
        tracks["operations"] = operation_track(operations, to_seconds, duration_s)
        parts = [operations.started_in(run.start_board_ns, run.end_board_ns) for run in runs]
        of_runs = OperationTable.concatenate(parts)
    if system and (counters := system_track(system, to_seconds)) is not None:
        tracks["system"] = counters
    return Timeline(
        duration_s,
        tracks,
        axis.lost,
        phase_spans(record.run, to_seconds),
        event_lanes(events, to_seconds) if events else [],
        of_runs.latency_by_kind,
        counted_latency(of_runs),
        notes,
    )


def packed_timeline(record: RunRecord, trace: PowerTrace, operations: OperationTable | None) -> Timeline:
    """Timeline of a trace and operations in memory, with packed tracks."""
    timeline = read_timeline(record, trace, operations)
    for track in timeline.tracks.values():
        _ = track.packed
    return timeline


def power_track(trace: PowerTrace, axis: TimeAxis) -> Track:
    """Power [W], current [A] and voltage [V] in the cells of the samples."""

    def part(some: slice) -> tuple[Floats, dict[str, Floats]]:
        current_a, voltage_v = trace.current_a[some], trace.voltage_v[some]
        columns = {"power_w": current_a * voltage_v, "current_a": current_a, "voltage_v": voltage_v}
        return axis.of_meter(trace.meter_ns[some]), columns

    return sampled_track(SampleParts(len(trace), part), trace.period_ns * 1e-9)


def phase_spans(run: Run, to_seconds: ToSeconds) -> list[PhaseSpan]:
    """Phases of run.json, in order of time."""
    ends = np.array([(phase.start_board_ns, phase.end_board_ns) for phase in run.phases], np.int64)
    spans = [
        PhaseSpan(phase.name, phase.repeat, *ends_s)
        for phase, ends_s in zip(run.phases, to_seconds(ends).tolist(), strict=True)
    ]
    return sorted(spans, key=lambda span: span.start_s)


def _noted(notes: list[str], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except RecordFault as fault:
        notes.append(str(fault))
        return None


def counted_latency(operations: OperationTable) -> LatencyCounts | None:
    """Counts of the operations' latencies in bins that cover all of them; None without operations."""
    if len(operations) == 0:
        return None
    ends = _bins(np.array([operations.duration_ns.min(), operations.duration_ns.max()])).tolist()
    first, last = ends[0], max(ends[1] + 1, ends[0] + BINS_PER_DECADE)
    edges = np.arange(first, last + 1, dtype=np.float64) / BINS_PER_DECADE
    shape = len(operations.kinds), last - first
    counted = np.zeros(shape[0] * shape[1], np.int64)
    for part in operations.parts():
        place = part.kind.astype(np.int64) * shape[1] + (_bins(part.duration_ns) - first)
        counted += np.bincount(place, minlength=counted.size)
    by_code = counted.reshape(shape)
    counts = {name: by_code[operations.kinds.index(name)] for name in operations.counts()}
    overall = operations.latency
    marks = {"50 %": overall.p50, "99 %": overall.p99} if overall else {}
    return LatencyCounts(10.0**edges, counts, marks)


def _bins(duration_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number of each latency's bin. The clock counts nanoseconds, so that 0 means below 1 ns and goes to that bin."""
    exponent = np.log10(np.maximum(duration_ns, 1)) - 9
    return np.asarray(np.floor(exponent * BINS_PER_DECADE), np.int64)
