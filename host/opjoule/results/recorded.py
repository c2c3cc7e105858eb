"""The trace and the tables of a record on one time axis; each is compared with its checksum when it is read."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opjoule.attribution.activities import background
from opjoule.base.errors import RecordFault
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.tables import read_parquet
from opjoule.energy.trace.journal import read_trace
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.results.tracks import Floats, Lane, LostStretch, Track
from opjoule.runs.evaluation.evidence import CorrectedTrace
from opjoule.runs.record.run import Run
from opjoule.runs.record.run_record import RunRecord


def table_of(record: RunRecord, name: str) -> pa.Table:
    """One of a record's tables. Raises: RecordFault: missing, damaged, of a newer version, or changed since the run."""
    return read_parquet(record.intact(f"{name}.parquet"), name)


def corrected_trace(record: RunRecord) -> tuple[PowerTrace, ErrorBounds | None]:
    """The trace, corrected by its sensor's calibration, and the sensor's error bounds if they are known.

    Raises: RecordFault: the trace is missing, damaged, or was changed since it was recorded.
    """
    record.check_beside()
    names = "power", "gaps", "bus"
    files = [*(f"{name}.parquet" for name in names), *(f"raw/{name}.arrows" for name in names)]
    first = files[: len(names)] if (record.directory / files[0]).exists() else files
    for name in first:
        record.intact(name)
    trace, sensor = read_trace(record.directory), record.run.sensor
    for name in files:  # also the journals, whose checksums were computed meanwhile
        record.intact(name)
    if sensor is None:
        return trace, None
    corrected = CorrectedTrace.of(trace, sensor, overwrite=True)
    return corrected.trace, corrected.sensor


class TimeAxis:
    """Time axis in seconds since the beginning of the trace's first cell."""

    def __init__(self, origin_ns: int, lost: list[LostStretch]) -> None:
        self.origin_ns, self.lost = origin_ns, lost

    @classmethod
    def of(cls, trace: PowerTrace) -> TimeAxis:
        """The time axis of a trace."""
        origin_ns = int(trace.meter_ns[0]) - trace.period_ns // 2
        lost = []
        for gap in trace.gaps:
            start_s, end_s = ((at - origin_ns) * 1e-9 for at in (gap.start_meter_ns, gap.end_meter_ns))
            lost.append(LostStretch(start_s, end_s, gap.lost_samples, gap.reason))
        return cls(origin_ns, lost)

    def of_meter(self, meter_ns: npt.NDArray[np.int64]) -> Floats:
        """Times of the meter clock [ns] on the axis [s], of the same shape."""
        return np.asarray((meter_ns - self.origin_ns) * 1e-9, dtype=np.float64)

    def of_board(self, clock_map: ClockMap | None) -> ToSeconds | None:
        """Function from the board's clock to the axis; None without a clock map."""
        if clock_map is None:
            return None
        return lambda board_ns: self.of_meter(np.asarray(clock_map.to_target(board_ns), dtype=np.int64))


def board_to_meter(run: Run) -> ClockMap | None:
    """Clock map on which the result is based; None if there is none yet. Raises: RecordFault: run.json lacks it."""
    if run.clock_map_used is not None and run.clock_map_used not in run.clock_maps:
        raise RecordFault(f"run.json: there is no clock map '{run.clock_map_used}'")
    return run.clock_maps.get(run.clock_map_used or "")


RATE_BINS = 20_000  # most bins of the operation rate over the whole record
RATE_COUNT = 20  # mean operations per bin; with fewer, counting noise would hide the rate
RATE_WIDTHS_S = tuple(digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5))

ToSeconds = Callable[[npt.NDArray[np.int64]], Floats]


def operation_track(operations: OperationTable, to_seconds: ToSeconds, duration_s: float) -> Track:
    """Completed operations per second, in total and by kind, in equal bins; there is at least one operation."""
    over_s = np.diff(to_seconds(operations.board_ns[[0, -1]])).item()
    least_s = max(duration_s / RATE_BINS, RATE_COUNT * over_s / len(operations))
    width_s = next((width for width in RATE_WIDTHS_S if width >= least_s), RATE_WIDTHS_S[-1])
    bins = max(1, math.ceil(duration_s / width_s))
    counted = np.zeros(len(operations.kinds) * bins, np.int64)
    for part in operations.parts():
        at = np.floor(to_seconds(part.board_ns + part.duration_ns) / width_s).astype(np.int64)
        inside = (at >= 0) & (at < bins)
        place = part.kind * np.int64(bins) + at
        counted += np.bincount(place if inside.all() else place[inside], minlength=counted.size)
    per_s = counted.reshape(-1, bins) / width_s
    rates = {"operations_per_s": per_s.sum(axis=0)}
    rates |= {f"{name}_per_s": per_s[operations.kinds.index(name)] for name in operations.counts()}
    return Track(np.arange(bins + 1, dtype=np.float64) * width_s, rates)


def system_track(table: pa.Table, to_seconds: ToSeconds) -> Track | None:
    """Busy cores, disk traffic [MB/s], dirty pages [MB] between two samples of the board's counters; NaN: unknown."""
    if table.num_rows < 3:
        return None
    table = table.sort_by("board_ns")
    times_s = to_seconds(table["board_ns"].to_numpy().astype(np.int64))
    width_s = np.diff(times_s)

    def rate(name: str, scale: float) -> Floats:
        step = np.diff(table[name].to_numpy().astype(np.float64))
        # A falling counter belongs to a new process, so the stretch in between is unknown.
        return np.where((step >= 0) & (width_s > 0), step * scale / np.maximum(width_s, 1e-9), np.nan)

    dirty_mb = table["dirty_bytes"].to_numpy().astype(np.float64)[1:] * 1e-6
    written_mb_per_s = rate("device_written_bytes", 1e-6)
    if not dirty_mb.any() and np.nansum(written_mb_per_s) > 0:
        # Written pages were dirty before: a board that reports 0 throughout does not count dirty pages.
        dirty_mb[:] = np.nan
    columns = {
        "process_cores": rate("process_cpu_s", 1.0),
        "written_mb_per_s": written_mb_per_s,
        "read_mb_per_s": rate("device_read_bytes", 1e-6),
        "board_cores": rate("cpu_busy_s", 1.0),
        "dirty_mb": dirty_mb,
    }
    return Track(times_s, columns)


def event_lanes(table: pa.Table, to_seconds: ToSeconds) -> list[Lane]:
    """Flush, compaction, checkpoint and sync as stretches; overlapping ones of one kind are merged."""
    stretches = [(name, stretch.merged) for name, stretch in background(table).items()]
    return [Lane(name, to_seconds(of.start_ns), to_seconds(of.end_ns)) for name, of in stretches]
