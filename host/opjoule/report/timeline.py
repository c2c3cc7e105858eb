"""Everything of one record on one time axis: seconds on the meter clock since its first sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opjoule.clocks.clock_map import ClockMap
from opjoule.drawing.packing import Floats
from opjoule.drawing.stretches import Lane, LostStretch, PhaseSpan
from opjoule.drawing.tracks import SampleParts, Track, sampled_track
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import RecordFault
from opjoule.evaluation.corrected_trace import CorrectedTrace
from opjoule.opened.board_tracks import ToSeconds, event_lanes, operation_track, run_operations, system_track
from opjoule.operations.board_files import of_loader_alone
from opjoule.operations.latency import Latency
from opjoule.operations.operation_table import OperationTable
from opjoule.operations.schemas import EVENTS_VERSION, SYSTEM_VERSION
from opjoule.operations.tables import read_operations, read_parquet
from opjoule.record.run import Run
from opjoule.record.run_record import RunRecord
from opjoule.report.latency_histogram import LatencyCounts, counted_latency
from opjoule.trace.journal import read_trace
from opjoule.trace.power_trace import PowerTrace

T = TypeVar("T")


@dataclass(frozen=True)
class Timeline:
    """What can be drawn of a record; parts that the record lacks are absent, with a line in `notes`."""

    duration_s: float = 0.0
    tracks: Mapping[str, Track] = field(default_factory=dict)
    lost: list[LostStretch] = field(default_factory=list)
    phases: list[PhaseSpan] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    latency: Mapping[str, Latency] = field(default_factory=dict)
    """By kind, of the operations of all runs, on the board's own clock."""
    latency_counts: LatencyCounts | None = None
    """The same operations, counted by how long they took."""
    notes: list[str] = field(default_factory=list)


def read_timeline(
    record: RunRecord, trace: PowerTrace | None = None, operations: OperationTable | None = None
) -> Timeline:
    """The record's trace, phases, operation rate, system samples and events; whatever is unreadable is noted.

    Args:
        trace, operations: the record's, corrected and sorted, where they are at hand.
    """
    notes: list[str] = []
    if trace is None:
        trace = _noted(notes, lambda: corrected_trace(record)[0])
    if trace is None or len(trace) < 2:
        return Timeline(notes=notes or ["The power trace holds no samples."])
    axis = TimeAxis.of(trace)
    tracks = {"power": power_track(trace, axis)}
    duration_s = max([float(tracks["power"].bounds_s[-1]), *(stretch.end_s for stretch in axis.lost)])
    to_seconds = axis.of_board(_noted(notes, lambda: board_to_meter(record.run)))
    if to_seconds is None:
        if record.run.phases:
            notes.append(
                "No clock map from board to meter: phases and operations cannot be placed on the trace."
            )
        return Timeline(duration_s, tracks, axis.lost, notes=notes)
    if operations is None:
        operations = _noted(notes, lambda: read_operations(record.intact("operations.parquet")))
    system = _noted(notes, lambda: system_samples(record))
    events = _noted(notes, lambda: _table(record, "events", EVENTS_VERSION))
    of_runs = run_operations(operations, record.run.phases) if operations else None
    made = {
        "operations": operation_track(operations, to_seconds, duration_s) if operations else None,
        "system": system_track(system, to_seconds) if system else None,
    }
    return Timeline(
        duration_s,
        tracks | {name: track for name, track in made.items() if track is not None},
        axis.lost,
        phase_spans(record.run, to_seconds),
        event_lanes(events, to_seconds) if events else [],
        of_runs.latency_by_kind if of_runs else {},
        counted_latency(of_runs) if of_runs else None,
        notes,
    )


class TimeAxis:
    """Seconds since the trace's first cell began."""

    def __init__(self, origin_ns: int, lost: list[LostStretch]) -> None:
        self.origin_ns, self.lost = origin_ns, lost

    @classmethod
    def of(cls, trace: PowerTrace) -> TimeAxis:
        """That of a trace."""
        axis = cls(int(trace.meter_ns[0]) - trace.period_ns // 2, [])
        axis.lost = [
            LostStretch(*axis._pair(gap.start_meter_ns, gap.end_meter_ns), gap.lost_samples, gap.reason)
            for gap in trace.gaps
        ]
        return axis

    def of_meter(self, meter_ns: npt.NDArray[np.int64]) -> Floats:
        """Times of the meter clock [ns] on the axis [s], of the same shape."""
        return np.asarray((meter_ns - self.origin_ns) * 1e-9, dtype=np.float64)

    def of_board(self, clock_map: ClockMap | None) -> ToSeconds | None:
        """What takes times of the board clock to the axis; None without a map."""
        if clock_map is None:
            return None
        return lambda board_ns: self.of_meter(np.asarray(clock_map.to_target(board_ns), dtype=np.int64))

    def _pair(self, start_ns: int, end_ns: int) -> tuple[float, float]:
        return (start_ns - self.origin_ns) * 1e-9, (end_ns - self.origin_ns) * 1e-9


def power_track(trace: PowerTrace, axis: TimeAxis) -> Track:
    """Power [W], current [A] and voltage [V] in the cells of the samples."""

    def part(some: slice) -> tuple[Floats, dict[str, Floats]]:
        current_a, voltage_v = trace.current_a[some], trace.voltage_v[some]
        columns = {"power_w": current_a * voltage_v, "current_a": current_a, "voltage_v": voltage_v}
        return axis.of_meter(trace.meter_ns[some]), columns

    return sampled_track(SampleParts(len(trace), part), trace.period_ns * 1e-9)


def board_to_meter(run: Run) -> ClockMap | None:
    """The map from board_ns to meter_ns that the result rests on; None if the run ended before there was one.

    Raises: RecordFault: run.json names a map that it does not hold.
    """
    if (chosen := run.clock_map_used) is not None:
        if chosen not in run.clock_maps:
            raise RecordFault(f"run.json: there is no clock map '{chosen}'")
        return run.clock_maps[chosen]
    # Records of version 1 do not say: the result took the one with the least uncertainty.
    ends = run.phases[:1] + run.phases[-1:]
    middle_ns = (ends[0].start_board_ns + ends[-1].end_board_ns) // 2 if ends else 0
    of_board = [each for each in run.clock_maps.values() if (each.source, each.target) == ("board", "meter")]
    return min(of_board, key=lambda each: each.u_ns(middle_ns), default=None)


def phase_spans(run: Run, to_seconds: ToSeconds) -> list[PhaseSpan]:
    """run.json's phases, in order of time."""
    spans = []
    for phase in run.phases:
        start_s, end_s = to_seconds(np.array([phase.start_board_ns, phase.end_board_ns], dtype=np.int64))
        spans.append(PhaseSpan(phase.name, phase.repeat, float(start_s), float(end_s)))
    return sorted(spans, key=lambda span: span.start_s)


def system_samples(record: RunRecord) -> pa.Table:
    """The board's counters; in simulated records of version 1 the loader's are those of the board."""
    table = _table(record, "system", SYSTEM_VERSION)
    return of_loader_alone(table) if record.simulated and "operations" in table.column_names else table


def _table(record: RunRecord, name: str, newest: int) -> pa.Table:
    return read_parquet(record.intact(f"{name}.parquet"), name, newest)


def corrected_trace(record: RunRecord) -> tuple[PowerTrace, ErrorBounds | None]:
    """The trace, corrected by its sensor's calibration, and the sensor's error bounds; None where they are not known.

    Raises: RecordFault: it is absent, damaged, or was changed since it was recorded.
    """
    record.check_beside()
    names = "power", "gaps", "bus"
    files = [*(f"{name}.parquet" for name in names), *(f"raw/{name}.arrows" for name in names)]
    first = files[: len(names)] if (record.directory / files[0]).exists() else files
    for name in first:
        record.intact(name)
    trace, sensor = read_trace(record.directory), record.run.sensor
    for name in files:  # the journals, too: their checksums took until now
        record.intact(name)
    if sensor is None:
        return trace, None
    found = CorrectedTrace.of(trace, sensor, overwrite=True)
    return found.trace, found.sensor


def _noted(notes: list[str], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except RecordFault as fault:
        notes.append(str(fault))
        return None
