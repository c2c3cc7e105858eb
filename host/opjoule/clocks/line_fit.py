"""Straight line between two clocks by weighted least squares, on int64 nanoseconds without loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

RATE_PRIOR_U: Final = 3e-3
"""Standard uncertainty of "the rate is 1" before any evidence: a ceramic resonator's 0.5 %, rectangular."""
OUTLIER: Final = 5.0
"""Points farther from the line than so many times the typical distance are left out."""
ROUNDS: Final = 10

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LineFit:
    """target = target_ref + rate * (source - source_ref), offset and rate uncorrelated at the reference."""

    source_ref_ns: int
    target_ref_ns: int
    rate: float
    u_offset_ns: float
    u_rate: float
    residual_ns: float
    """Root mean square distance of the points used."""
    used: npt.NDArray[np.bool_]
    """False for outliers, shape (n,)."""

    def distance_ns(self, source_ns: Int64Array, target_ns: Int64Array) -> Float64Array:
        """Distance of points from the line [target ns]."""
        source = (source_ns - self.source_ref_ns).astype(np.float64)
        beyond = (target_ns - self.target_ref_ns) - (source_ns - self.source_ref_ns)
        return np.asarray(beyond - source * (self.rate - 1.0), np.float64)


def fit_line(source_ns: Int64Array, target_ns: Int64Array, u_ns: Float64Array) -> LineFit:
    """Line through points of which each has its own standard uncertainty, outliers left out.

    Scatter beyond the stated uncertainties (a clock that wanders, a delay that was not foreseen) is not
    averaged away: it stays in u_offset_ns whole.

    Args:
        source_ns, target_ns: int64, shape (n,), n >= 1.
        u_ns: standard uncertainty of each point [ns], positive.
    """
    used = np.ones(source_ns.size, np.bool_)
    for _ in range(ROUNDS):
        fit = _weighted(source_ns, target_ns, u_ns, used)
        scaled = np.abs(fit.distance_ns(source_ns, target_ns)) / u_ns
        limit = OUTLIER * max(1.4826 * float(np.median(scaled[used])), 1.0)
        kept = scaled <= limit
        if bool(np.all(kept == used)) or int(kept.sum()) < 3:
            break
        used = kept
    return fit


def _weighted(
    source_ns: Int64Array, target_ns: Int64Array, u_ns: Float64Array, used: npt.NDArray[np.bool_]
) -> LineFit:
    source, target, weight = source_ns[used], target_ns[used], 1.0 / u_ns[used] ** 2
    total = float(weight.sum())
    source_ref = int(source[0]) + round(float(weight @ (source - source[0])) / total)
    target_first = int(target[0])
    x = (source - source_ref).astype(np.float64)
    y = ((target - target_first) - (source - source_ref)).astype(np.float64)
    y_mean = float(weight @ y) / total
    information = float(weight @ x**2) + 1.0 / RATE_PRIOR_U**2
    slope = float(weight @ (x * (y - y_mean))) / information
    residual = y - y_mean - slope * x
    mean_square = float(np.mean(residual**2))
    excess_ns = math.sqrt(max(mean_square - float(np.mean(u_ns[used] ** 2)), 0.0))
    stretch = math.sqrt(max(float(weight @ residual**2) / max(source.size - 2, 1), 1.0))
    return LineFit(
        source_ref_ns=source_ref,
        target_ref_ns=target_first + round(y_mean),
        rate=1.0 + slope,
        u_offset_ns=math.hypot(stretch / math.sqrt(total), excess_ns),
        u_rate=stretch / math.sqrt(information),
        residual_ns=math.sqrt(mean_square),
        used=used,
    )
