"""The one time axis of a record: seconds on the meter clock since its first sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opjoule.clocks.clock_map import ClockMap
from opjoule.drawing.packing import Floats
from opjoule.drawing.stretches import LostStretch
from opjoule.errors import RecordFault
from opjoule.opened.board_tracks import ToSeconds
from opjoule.record.run import Run
from opjoule.trace.power_trace import PowerTrace


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


def board_to_meter(run: Run) -> ClockMap | None:
    """The map from board_ns to meter_ns that the result rests on; None if the run ended before there was one.

    Raises: RecordFault: run.json names a map that it does not hold.
    """
    if run.clock_map_used is not None and run.clock_map_used not in run.clock_maps:
        raise RecordFault(f"run.json: there is no clock map '{run.clock_map_used}'")
    return run.clock_maps.get(run.clock_map_used or "")
