"""What one meter read in the time of one point of a calibration."""

from __future__ import annotations

from dataclasses import dataclass

from opjoule.calibration.means import FLAT_SHARE, STEADY_SHARE, MeanReading, mean_reading
from opjoule.calibration.warming import KEPT_FROM, PointCourse
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds


@dataclass(frozen=True)
class ReadPoint:
    """What one meter read in the time of one point."""

    mean: MeanReading
    """Of its last third, where it is long enough for a shunt to come to rest; of all of it otherwise."""
    course: PointCourse | None
    """How it came there; None for a shorter one."""

    @classmethod
    def of(
        cls,
        cells: Cells,
        span_ns: tuple[int, int],
        bounds: ErrorBounds,
        *,
        u_ns: float,
        period_ns: int,
        steady: bool,
    ) -> ReadPoint:
        """From a trace and a stretch of the meter's clock. Raises: CalibrationFault: as mean_reading()."""
        start_ns, end_ns = span_ns
        kept_ns = start_ns + round((end_ns - start_ns) * KEPT_FROM) if steady else start_ns
        share = FLAT_SHARE if steady else STEADY_SHARE
        mean = mean_reading(
            cells, kept_ns, end_ns, bounds, u_ns=u_ns, period_ns=period_ns, steady_share=share
        )
        return cls(mean, PointCourse.of(cells, start_ns, end_ns, period_ns) if steady else None)
