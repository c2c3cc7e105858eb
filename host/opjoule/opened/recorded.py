"""The trace and the tables of a record; each is compared with its checksum when it is read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opjoule.clocks.clock_map import ClockMap
from opjoule.drawing.packing import Floats
from opjoule.drawing.tracks import LostStretch
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import RecordFault
from opjoule.evaluation.corrected_trace import CorrectedTrace
from opjoule.opened.board_tracks import ToSeconds
from opjoule.operations.tables import read_parquet
from opjoule.record.run import Run
from opjoule.record.run_record import RunRecord
from opjoule.trace.journal import read_trace
from opjoule.trace.power_trace import PowerTrace


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
