"""Fits a line, optionally with curvature by heating, to points that are uncertain in both variables.

    reference = (offset + gain * reading) / (1 + heating * warmth)

Source: ISO/TS 28037:2010, clause 7 (uncertainties of x and y, generalised distance regression) and 6.3 (chi-squared
validation); a known bound of the gain counts as one more observation.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np

from opjoule.energy.trace.power_trace import Float64Array

ROUNDS_MAX: Final = 100
CONVERGED: Final = 1e-14


@dataclass(frozen=True)
class LinePoint:
    """One point; its standard uncertainties do not include errors that all points share."""

    reading: float
    reading_u: float
    reference: float
    reference_u: float
    warmth_a2: float = 0.0
    """Warmth of the shunt: squared readings filtered with its thermal time constant."""


@dataclass(frozen=True)
class LineFit:
    """reference = (offset + gain * reading) / (1 + heating * warmth); a straight line has no heating."""

    gain: float
    offset: float
    covariance: Float64Array
    """Covariance of (gain, offset, heating), shape (3, 3); zeros for the heating of a straight line."""
    residuals: Float64Array
    """Reference minus line, shape (n,)."""
    residual_u: Float64Array
    """Standard uncertainty of each point's distance from the true line, shape (n,)."""
    degrees: int
    """Degrees of freedom."""
    chi_squared: float
    heating: float = 0.0

    def value(self, point: LinePoint) -> float:
        """Value of the line at a point's reading and warmth."""
        return (self.offset + self.gain * point.reading) / (1.0 + self.heating * point.warmth_a2)

    @property
    def chance(self) -> float:
        """p-value: probability of a scatter at least as large, given the stated uncertainties."""
        return chi_squared_tail(self.chi_squared, self.degrees)


def fit_line(
    points: Sequence[LinePoint], gain_prior_u: float | None = None, heating_prior_u: float | None = None
) -> LineFit:
    """The line nearest to the points, with each distance in units of its uncertainty.

    Args:
        points: at least 2, at different readings; with `gain_prior_u` all may be at one reading.
        gain_prior_u: standard uncertainty of the gain's prior, whose mean is 1; None: no prior.
        heating_prior_u: standard uncertainty of the heating's prior, whose mean is 0; None: a straight line.
    Raises: ValueError: the points do not determine a line.
    """
    x, x_u, y, y_u, warmth = np.array([astuple(p) for p in points]).T
    centre = float(x.mean())
    spread = float(x.max() - x.min())
    if gain_prior_u is None and (x.size < 2 or spread <= 0):
        raise ValueError("the points do not determine a line")
    x = x - centre  # a narrow range far from zero would lose digits
    gain, heating = 1.0, 0.0
    if gain_prior_u is None:
        gain = float(x @ y / (x @ x))  # as if readings were exact; the iteration may diverge from a start far off
    level = float((y - gain * x).mean())
    priors = [prior_u for prior_u in (gain_prior_u, heating_prior_u) if prior_u is not None]
    for _ in range(ROUNDS_MAX):
        hotter = 1.0 + heating * warmth
        slope, line = gain / hotter, (level + gain * x) / hotter
        weight = 1.0 / (y_u**2 + slope**2 * x_u**2)
        root = np.sqrt(weight)
        nearest = x + slope * x_u**2 * (y - line) * weight
        design = np.column_stack([root * nearest / hotter, root / hotter, -root * line * warmth / hotter])
        away = root * (y - line)
        if gain_prior_u is not None:
            design = np.vstack([design, [1.0 / gain_prior_u, 0.0, 0.0]])
            away = np.append(away, (1.0 - gain) / gain_prior_u)
        if heating_prior_u is None:
            design = design[:, :2]
        else:
            design = np.vstack([design, [0.0, 0.0, 1.0 / heating_prior_u]])
            away = np.append(away, -heating / heating_prior_u)
        step = [*np.linalg.lstsq(design, away)[0].tolist(), 0.0]
        gain, level, heating = gain + step[0], level + step[1], heating + step[2]
        moved = abs(step[0]) < CONVERGED * abs(gain) and abs(step[1]) < CONVERGED * (abs(level) + spread)
        if moved and abs(step[2]) * spread**2 < CONVERGED:
            break
    covariance = np.zeros((3, 3))
    known = design.shape[1]
    root = np.linalg.inv(
        np.linalg.qr(design, mode="r")
    )  # a product of roots cannot get a negative variance by rounding
    covariance[:known, :known] = root @ root.T
    turn = np.array([[1.0, 0.0, 0.0], [-centre, 1.0, 0.0], [0.0, 0.0, 1.0]])  # offset = level - gain * centre
    residual_u = np.sqrt(y_u**2 + slope**2 * x_u**2)
    residuals = y - (level + gain * x) / (1.0 + heating * warmth)
    of_gain, of_heating = (1.0 - gain) / (gain_prior_u or math.inf), heating / (heating_prior_u or math.inf)
    of_priors = of_gain**2 + of_heating**2
    return LineFit(
        gain=gain,
        offset=level - gain * centre,
        covariance=turn @ covariance @ turn.T,
        residuals=residuals,
        residual_u=residual_u,
        degrees=x.size + len(priors) - known,
        chi_squared=float(np.sum((residuals / residual_u) ** 2)) + of_priors,
        heating=heating,
    )


def chi_squared_tail(value: float, degrees: int) -> float:
    """Probability that a chi-squared variable is greater; 1 without degrees of freedom.

    Source: E. B. Wilson and M. M. Hilferty, The distribution of chi-square (1931): its cube root is nearly normal.
    """
    if degrees < 1:
        return 1.0
    share = 2.0 / (9.0 * degrees)
    z = ((value / degrees) ** (1 / 3) - (1.0 - share)) / math.sqrt(share)
    return 0.5 * math.erfc(z / math.sqrt(2.0))
