"""A straight line through points that are uncertain in both variables, with the covariance of its two parameters.

Source: ISO/TS 28037:2010, clause 7 (uncertainties of x and y, generalised distance regression) and 6.3 (chi-squared
validation); a known bound of the gain counts as one more observation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.trace.power_trace import Float64Array

ROUNDS_MAX: Final = 100
CONVERGED: Final = 1e-14


@dataclass(frozen=True)
class LinePoint:
    """One point; standard uncertainties are of this point alone, without what all points share."""

    reading: float
    reading_u: float
    reference: float
    reference_u: float


@dataclass(frozen=True)
class LineFit:
    """reference = offset + gain * reading."""

    gain: float
    offset: float
    covariance: Float64Array
    """Covariance of (gain, offset), shape (2, 2)."""
    residuals: Float64Array
    """Reference less line, shape (n,)."""
    residual_u: Float64Array
    """Standard uncertainty of each point's distance from the true line, shape (n,)."""
    degrees: int
    """Degrees of freedom."""
    chi_squared: float

    @property
    def chance(self) -> float:
        """Probability that points which are as uncertain as stated stray as far as these."""
        return chi_squared_tail(self.chi_squared, self.degrees)


def fit_line(points: Sequence[LinePoint], gain_prior_u: float | None = None) -> LineFit:
    """The line that is nearest to the points, each distance in units of its uncertainty.

    Args:
        points: at least 2, at different readings; with `gain_prior_u` they may be at one.
        gain_prior_u: what is known of the gain beforehand: 1, with this standard uncertainty; None: nothing.
    Raises: ValueError: the points do not determine a line.
    """
    x, x_u, y, y_u = np.array([(p.reading, p.reading_u, p.reference, p.reference_u) for p in points]).T
    centre = float(x.mean())
    spread = float(x.max() - x.min())
    if gain_prior_u is None and (x.size < 2 or spread <= 0):
        raise ValueError("the points do not determine a line")
    x = x - centre  # so that a narrow range far from zero loses no digits
    gain, level = 1.0, float((y - x).mean())
    for _ in range(ROUNDS_MAX):
        weight = 1.0 / (y_u**2 + gain**2 * x_u**2)
        nearest = (x * y_u**2 + gain * x_u**2 * (y - level)) * weight
        root = np.sqrt(weight)
        design = np.column_stack([root * nearest, root])
        away = root * (y - level - gain * x)
        if gain_prior_u is not None:
            design = np.vstack([design, [1.0 / gain_prior_u, 0.0]])
            away = np.append(away, (1.0 - gain) / gain_prior_u)
        step = np.linalg.lstsq(design, away)[0]
        gain, level = gain + float(step[0]), level + float(step[1])
        if abs(step[0]) < CONVERGED * abs(gain) and abs(step[1]) < CONVERGED * (abs(level) + spread):
            break
    centred = np.linalg.inv(design.T @ design)
    turn = np.array([[1.0, 0.0], [-centre, 1.0]])  # offset = level - gain * centre
    residual_u = np.sqrt(y_u**2 + gain**2 * x_u**2)
    residuals = y - level - gain * x
    prior = 0 if gain_prior_u is None else 1
    chi_squared = float(np.sum((residuals / residual_u) ** 2))
    if gain_prior_u is not None:
        chi_squared += ((1.0 - gain) / gain_prior_u) ** 2
    return LineFit(
        gain=gain,
        offset=level - gain * centre,
        covariance=turn @ centred @ turn.T,
        residuals=residuals,
        residual_u=residual_u,
        degrees=x.size + prior - 2,
        chi_squared=chi_squared,
    )


def chi_squared_tail(value: float, degrees: int) -> float:
    """Probability that a chi-squared variable is greater; 1 without a degree of freedom.

    Source: E. B. Wilson and M. M. Hilferty, The distribution of chi-square (1931): its cube root is nearly normal.
    """
    if degrees < 1:
        return 1.0
    share = 2.0 / (9.0 * degrees)
    z = ((value / degrees) ** (1 / 3) - (1.0 - share)) / math.sqrt(share)
    return 0.5 * math.erfc(z / math.sqrt(2.0))
