"""Comparison of two quantities, without their common errors.

A common source (one sensor, one calibration, two calibrations against one reference) moves both figures together: only
the difference of its two contributions remains, and a common gain cancels in the ratio. All other errors are
independent and add in quadrature. The spread is estimated from a few repeats, so Student's t widens it, with the
effective degrees of freedom of both figures' spreads (Welch and Satterthwaite). The known errors are widened as normal
ones: they say nothing of how well a spread is known. Were their degrees of freedom counted together, two runs that
agree by chance would seem to be many.
Source: JCGM 100:2008, 5.2.2 (correlated inputs), F.1.2.3 (covariance of figures that share an input), G.4 (effective
degrees of freedom).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from opjoule.base.coverage import COVERAGE_FACTOR, student_t
from opjoule.base.units import Quantity
from opjoule.energy.repeats import student_probability, student_t_of


def difference(a: Quantity, b: Quantity) -> Quantity:
    """a - b, with an interval for 95.45 %. Raises: ValueError: different units."""
    if a.unit != b.unit:
        raise ValueError(f"cannot compare {a.unit} with {b.unit}")
    apart = 0.0 if math.isclose(a, b, rel_tol=_ROUNDING) else float(a) - float(b)
    return Quantity(apart, _uncertainty_of(a, b).half_width(), a.unit)


def ratio(a: Quantity, b: Quantity) -> Quantity:
    """a / b, to first order, with an interval for 95.45 %.

    Raises: ValueError: different units. ZeroDivisionError: b is zero.
    """
    if a.unit != b.unit:
        raise ValueError(f"cannot compare {a.unit} with {b.unit}")
    quotient = float(a) / float(b)
    scaled, other = a.scale(1.0 / float(b), "1"), b.scale(quotient / float(b), "1")
    return Quantity(quotient, _uncertainty_of(scaled, other).half_width(), "1")


def ratio_limits(a: Quantity, b: Quantity, beyond: float | None = None) -> tuple[float, float]:
    """Ends of the interval of a / b: the ratios r at which a and r b just differ significantly.

    The interval contains 1 exactly if a and b do not differ significantly. It is asymmetric about the quotient, the
    more so the less certain b is; the upper end is infinite if b may be zero.

    `beyond`: probability that the interval misses the ratio, instead of 4.55 %. If several ratios share 4.55 % between
    them, all their intervals hold together (Bonferroni).
    Raises: ValueError: different units, or a value that is not above 0.
    Source: E. C. Fieller, Some problems in interval estimation, J. R. Statist. Soc. B 16 (1954), 175-185.
    """
    if a.unit != b.unit:
        raise ValueError(f"cannot compare {a.unit} with {b.unit}")
    if min(float(a), float(b)) <= 0:
        raise ValueError(f"no ratio of {float(a):g} and {float(b):g} {a.unit}: both must be above 0")
    quotient = float(a) / float(b)

    def excess(factor: float) -> float:
        other = b.scale(factor)
        return abs(float(a) - float(other)) - _uncertainty_of(a, other).half_width(beyond)

    low = _crossing(excess, quotient, 0.0) if excess(0.0) > 0 else 0.0
    steps = (quotient * 1.5**number for number in range(1, 60))
    outside = next((factor for factor in steps if excess(factor) > 0), None)
    return low, math.inf if outside is None else _crossing(excess, quotient, outside)


def log_limits(a: Quantity, b: Quantity, beyond: float) -> tuple[float, float]:
    """Ends of the interval of a ratio, from the logarithms of its two figures.

    `beyond`: probability that the interval misses the ratio. The upper end is infinite beyond the largest number.
    """
    apart, u = float(difference(a, b)), _uncertainty_of(a, b).half_width(beyond)
    largest = math.log(1e300)
    high = math.exp(apart + u) if apart + u < largest else math.inf
    return (math.exp(apart - u) if apart - u > -largest else 0.0), high


def _crossing(excess: Callable[[float], float], inside: float, outside: float) -> float:
    """Zero of `excess` between `inside`, where it is at most 0, and `outside`, where it is above (to 1e-6 relative)."""
    closeness = 1e-6 * inside
    while abs(outside - inside) > closeness:
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if excess(middle) > 0 else (middle, outside)
    return (inside + outside) / 2


def differ(a: Quantity, b: Quantity) -> bool | None:
    """Whether the two differ significantly: a - b lies outside its interval around 0, which under the null hypothesis
    happens in 4.55 % of comparisons. None if either is a single run, whose spread is unknown.
    Raises: ValueError: different units.
    """
    gap = difference(a, b)
    return not gap.covers(0.0) if a.is_repeated and b.is_repeated else None


def same_probability(a: Quantity, b: Quantity) -> float | None:
    """Two-sided p-value of the difference under the null hypothesis, for Holm's rule. None if either is a single run,
    whose spread is unknown.
    Raises: ValueError: different units.
    """
    apart = float(difference(a, b))
    if not (a.is_repeated and b.is_repeated):
        return None
    return _uncertainty_of(a, b).probability(abs(apart))


POWER: Final = 0.8
"""Probability with which the number of repeats that `more_to_differ` gives shows a difference."""
MORE_MAX: Final = 1000
"""Greatest number of further repeats that `more_to_differ` considers."""


def more_to_differ(a: Quantity, b: Quantity, probability: float) -> int | None:
    """Number of further repeats of both figures that show their difference with a p-value up to `probability`.

    It is a forecast: means and spreads stay as they are now, and the p-value is then as small with the probability
    `POWER`. The difference must then be at least the half-width of its interval for that probability plus the one for
    `POWER`.
    Returns: None if more than `MORE_MAX` are needed, because errors that repeats do not lessen are too large.
    Raises: ValueError: a single run, whose spread is unknown.
    Source: NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.2.2 (sample sizes required).
    """
    if not (a.is_repeated and b.is_repeated):
        raise ValueError("the spread of a single run is not known")
    apart = abs(float(difference(a, b)))

    def shows(more: int) -> bool:
        then = _uncertainty_of(a.with_more(more), b.with_more(more))
        return apart > 0.0 and apart >= then.half_width(probability) + then.half_width(2.0 * (1.0 - POWER))

    return bisect.bisect_left(range(MORE_MAX + 1), True, key=shows) if shows(MORE_MAX) else None


def holm(probabilities: Sequence[float]) -> list[float]:
    """p-values adjusted for multiple comparisons, in the given order. If all those below a limit count as differences,
    the probability of any false one is at most the limit.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979), 65-70.
    """
    adjusted, least = [0.0] * len(probabilities), 0.0
    for rank, at in enumerate(sorted(range(len(probabilities)), key=lambda at: probabilities[at])):
        least = max(least, min((len(probabilities) - rank) * probabilities[at], 1.0))
        adjusted[at] = least
    return adjusted


def correlation(a: Quantity, b: Quantity) -> float:
    """Correlation of the two figures, -1 to 1: the share of their uncertainty that cancels in a comparison."""
    both = sum(a.shared[name] * b.shared[name] for name in a.shared.keys() & b.shared.keys())
    us = [math.hypot(of.common_u, of.spread_u) for of in (a, b)]
    return both / math.prod(us) if all(us) else 0.0


_ROUNDING: Final = 1e-12
"""Relative difference that two means of the same numbers may have by rounding."""


@dataclass(frozen=True)
class DifferenceUncertainty:
    """Standard uncertainties of a difference, in its unit: of the errors that are known, and of the spreads."""

    known_u: float
    spread_u: float
    freedom: float
    """Effective degrees of freedom of the spreads; infinite without any."""

    def half_width(self, beyond: float | None = None) -> float:
        """Half-width of the interval for 95.45 %, or for 1 - `beyond`."""
        if beyond is None:
            normal, t = COVERAGE_FACTOR, COVERAGE_FACTOR if math.isinf(self.freedom) else student_t(self.freedom)
        else:
            normal, t = _normal_of(beyond), student_t_of(beyond, self.freedom)
        return math.hypot(normal * self.known_u, t * self.spread_u)

    def probability(self, apart: float) -> float:
        """p-value of a difference of this size, not negative: the `beyond` for which it is the half-width."""
        if self.spread_u == 0.0:
            return math.erfc(apart / self.known_u / math.sqrt(2.0)) if self.known_u else float(apart == 0.0)
        low, high = 0.0, apart / self.spread_u
        if self.known_u == 0.0:
            return student_probability(high, self.freedom)
        for _ in range(_HALVINGS):
            t = (low + high) / 2
            normal = _normal_of(student_probability(t, self.freedom))
            low, high = (low, t) if math.hypot(normal * self.known_u, t * self.spread_u) > apart else (t, high)
        return student_probability(high, self.freedom)


_HALVINGS: Final = 50
"""Number of halvings of the range of Student's t: its resolution is that of a number."""


def _normal_of(probability: float) -> float:
    """The absolute value that a normal variable reaches or exceeds with this probability; infinite for 0."""
    return -NormalDist().inv_cdf(probability / 2.0) if probability / 2.0 > 0.0 else math.inf


def _uncertainty_of(a: Quantity, b: Quantity) -> DifferenceUncertainty:
    """Uncertainties of a - b; what both share cancels."""
    names = a.shared.keys() | b.shared.keys()
    left = [a.shared.get(name, 0.0) - b.shared.get(name, 0.0) for name in names]
    spread_u = math.hypot(a.spread_u, b.spread_u)
    inverse = sum((side.spread_u / spread_u) ** 4 / side.freedom for side in (a, b)) if spread_u else 0.0
    freedom = max(1.0 / inverse, 1.0) if inverse else math.inf  # rounding may give less than 1
    return DifferenceUncertainty(math.hypot(a.own_u, b.own_u, *left), spread_u, freedom)
