"""A sensor's reading at a steady load: mean and standard uncertainty over a stretch of its raw trace."""

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from opjoule.energy.budget import current_step_u_a, mean_spread_u_v, voltage_step_u_v
from opjoule.energy.calibration.fitting import CalibrationFault
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.repeats import standard_error
from opjoule.energy.shunt_heat import KEPT_FROM, PointCourse
from opjoule.energy.trace.power_trace import Float64Array

STEADY_SHARE: Final = 0.02
"""Largest difference between the means of the second and first half, as a share of the current."""
FLAT_SHARE: Final = 1e-3
"""The same limit in the last third of a point that is long enough for the shunt's temperature to settle."""
SAMPLES_MIN: Final = 8
PERIODS_MIN: Final = 8


@dataclass(frozen=True)
class MeanReading:
    """Means over one stretch; the standard uncertainties do not include errors that all stretches share."""

    current_a: float
    current_u_a: float
    voltage_v: float
    voltage_u_v: float


def mean_reading(
    cells: Cells,
    start_ns: int,
    end_ns: int,
    sensor: ErrorBounds,
    *,
    u_ns: float = 0.0,
    period_ns: int = 0,
    steady_share: float = STEADY_SHARE,
) -> MeanReading:
    """Means between two times of the meter [ns]; their uncertainties include noise, ripple and quantisation steps.

    Args:
        u_ns: standard uncertainty of either time.
        period_ns: period of a load that repeats a pattern; the noise is then estimated from means over whole periods.
        steady_share: largest relative difference between the second and first half.
    Raises: CalibrationFault: outside the trace, too few or clipped samples, or a load that was not steady.
    """
    if start_ns < cells.start_ns or end_ns > cells.end_ns or end_ns <= start_ns:
        why = "the point lies outside the meter's recording, so its current is unknown"
        raise CalibrationFault(f"{why}; take it again")
    inside = cells.inside(start_ns, end_ns)
    current_a = cells.of_samples(cells.current_a, inside)
    if current_a.size < SAMPLES_MIN:
        raise CalibrationFault(f"{current_a.size} samples in one point are too few for a mean; record longer")
    if clipped := cells.clipped_samples(start_ns, end_ns):
        why = f"{clipped} samples are at the end of the meter's range: the current was at least that"
        raise CalibrationFault(f"{why}; use a smaller load")
    seconds = (end_ns - start_ns) * 1e-9
    mean_a = float(cells.current.between(start_ns, end_ns)) / seconds
    mean_v = float(cells.voltage.between(start_ns, end_ns)) / seconds
    means_a = _period_means(current_a, period_ns // max(cells.period_ns, 1))
    _check_steady(means_a, mean_a, sensor, steady_share)
    span = start_ns, end_ns
    edges_u_a = math.sqrt(2) * float(np.ptp(current_a)) * u_ns / (end_ns - start_ns)
    noise_u_v = mean_spread_u_v(cells.supply, *span)
    if cells.supply is None:
        noise_u_v = _error_of_mean(cells.of_samples(cells.voltage_v, inside))
    return MeanReading(
        current_a=mean_a,
        current_u_a=math.hypot(_error_of_mean(means_a), current_step_u_a(cells, span, sensor), edges_u_a),
        voltage_v=mean_v,
        voltage_u_v=math.hypot(noise_u_v, voltage_step_u_v(cells, span, sensor)),
    )


def _check_steady(current_a: Float64Array, mean_a: float, sensor: ErrorBounds, steady_share: float) -> None:
    """Raises CalibrationFault if the load changed, since the two meters do not cover exactly the same time."""
    half = current_a.size // 2
    moved_a = float(current_a[half:].mean() - current_a[:half].mean())
    noise_a = 6 * _error_of_mean(current_a)
    if abs(moved_a) > max(steady_share * abs(mean_a), noise_a, 2 * sensor.current_step_a):
        part = "in the last third of the point" if steady_share == FLAT_SHARE else "during the point"
        longer = ", with longer points (--seconds 180)" if steady_share == FLAT_SHARE else ""
        raise CalibrationFault(
            f"the load changed by {moved_a * 1e3:+.3g} mA {part}, so the sensor and the reference "
            f"were read at different loads; wait until it is steady and take the point again{longer}"
        )


def _period_means(current_a: Float64Array, samples: int) -> Float64Array:
    """Means over whole periods of `samples` samples; the samples themselves if there are too few periods."""
    count = current_a.size // samples if samples > 1 else 0
    if count < PERIODS_MIN:
        return current_a
    return np.asarray(current_a[: count * samples].reshape(count, samples).mean(axis=1), np.float64)


def _error_of_mean(values: Float64Array) -> float:
    return max(standard_error(values), float(values.std(ddof=1)) / math.sqrt(values.size))


@dataclass(frozen=True)
class ReadPoint:
    """One meter's reading during one point."""

    mean: MeanReading
    """Mean of its last third if it is long enough for the shunt's temperature to settle, else of all of it."""
    course: PointCourse | None
    """Course of the readings; None for a shorter point."""

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
    ) -> Self:
        """The reading over a stretch of the meter's clock. Raises: CalibrationFault: as mean_reading()."""
        start_ns, end_ns = span_ns
        kept_ns = start_ns + round((end_ns - start_ns) * KEPT_FROM) if steady else start_ns
        share = FLAT_SHARE if steady else STEADY_SHARE
        stretch = cells, kept_ns, end_ns
        mean = mean_reading(*stretch, bounds, u_ns=u_ns, period_ns=period_ns, steady_share=share)
        return cls(mean, PointCourse.of(cells, start_ns, end_ns, period_ns) if steady else None)
