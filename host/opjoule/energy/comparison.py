"""Comparison of two figures, without their common errors.

A common source (one sensor, one calibration, two calibrations against one reference) moves both figures together: only
the difference of its two contributions remains, and a common gain cancels in the ratio. All other errors are
independent and add in quadrature. The spread is estimated from a few repeats, so Student's t widens the intervals, with
the effective degrees of freedom of both figures together (Welch and Satterthwaite).
Source: JCGM 100:2008, 5.2.2 (correlated inputs), F.1.2.3 (covariance of figures that share an input), G.4 (effective
degrees of freedom).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any, Final

from opjoule.base.units import (
    COVERAGE_FACTOR,
    RECTANGULAR,
    Measured,
    coverage_factor,
    excess_kurtosis,
    excess_of,
    k_of,
)
from opjoule.energy.repeats import repeat_standard_u, student_probability, student_t, student_t_of


@dataclass(frozen=True)
class Side:
    """One figure of a comparison: of one run, or the mean of several repeats or runs."""

    value: float
    standard_u: float
    """Includes all sources; for a mean, the standard error of its repeats is included as it is, without Student's t."""
    unit: str
    shared: Mapping[str, float] = field(default_factory=dict)
    """Source -> contribution of one standard uncertainty, with sign, in `unit`: a part of `standard_u`."""
    spread_u: float = 0.0
    """Standard error of the mean, from the scatter of the repeats: a part of `standard_u`."""
    freedom: float = math.inf
    """Degrees of freedom of `spread_u`; infinite for one run, whose spread is unknown."""
    count: int = 1
    """Number of repeats, runs or blocks behind `spread_u`."""
    excess: float = 0.0
    """Excess kurtosis of all errors but the spread; used for the figure's own interval. The remaining error of a
    difference counts as normal."""

    @classmethod
    def of(
        cls,
        number: Mapping[str, Any],
        shared: Mapping[str, float] | None = None,
        values: Sequence[float] = (),
    ) -> Side:
        """Side of a number of result.json, with its contributions in the `shared` entry and its value in each repeat.

        The number's u is expanded; with several repeats it includes their spread, widened. Without `values` the spread
        counts as known exactly. Raises: ValueError: the number is absent or has no uncertainty; the message gives the
        reason.
        """
        if number.get("value") is None or number.get("u") is None:
            raise ValueError(str(number.get("reason") or "no value with an uncertainty"))
        value, unit = float(number["value"]), str(number["unit"])
        k = k_of(number)
        standard_u = float(number["u"]) / k
        if len(values) < 2:
            return cls(value, standard_u, unit, shared or {}, excess=excess_of(k))
        common_u = math.sqrt(max(standard_u**2 - repeat_standard_u(values) ** 2, 0.0))
        excess = excess_of(k) * (standard_u / common_u) ** 4 if common_u else 0.0
        common = cls(value, common_u, unit, shared or {}, excess=max(excess, RECTANGULAR))
        return common._repeated(values)

    @classmethod
    def mean(cls, runs: Sequence[Side]) -> Side:
        """Mean of several runs of one setting, with the spread between the runs. The other errors may be alike in all
        runs, so they do not average out. Raises: ValueError: no run, or different units.
        """
        units = {run.unit for run in runs}
        if len(units) != 1:
            raise ValueError(f"no mean of {', '.join(sorted(units)) or 'nothing'}")
        if len(runs) == 1:
            return runs[0]
        names = sorted({name for run in runs for name in run.shared})
        shared = {name: fmean(run.shared.get(name, 0.0) for run in runs) for name in names}
        common_u = math.hypot(fmean(run.own_u for run in runs), *shared.values())
        values, excess = [run.value for run in runs], fmean(run.excess for run in runs)
        common = cls(fmean(values), common_u, units.pop(), shared, excess=excess)
        return common._repeated(values)

    def _repeated(self, values: Sequence[float]) -> Side:
        """The figure with the spread of its values added to their common errors."""
        spread_u = stdev(values) / math.sqrt(len(values))
        standard_u = math.hypot(self.standard_u, spread_u)
        count = len(values)
        return replace(self, standard_u=standard_u, spread_u=spread_u, freedom=count - 1.0, count=count)

    def with_more(self, more: int) -> Side:
        """The figure as it would be with more repeats of the present spread and mean."""
        count = self.count + more
        spread_u = self.spread_u * math.sqrt(self.count / count)
        common_u = math.sqrt(max(self.standard_u**2 - self.spread_u**2, 0.0))
        freedom = self.freedom * (count - 1) / (self.count - 1) if self.repeated else self.freedom
        standard_u = math.hypot(common_u, spread_u)
        return replace(self, standard_u=standard_u, spread_u=spread_u, freedom=freedom, count=count)

    @property
    def own_u(self) -> float:
        """Standard uncertainty without the spread and without shared sources."""
        shared_u2 = sum(contribution**2 for contribution in self.shared.values())
        return math.sqrt(max(self.standard_u**2 - self.spread_u**2 - shared_u2, 0.0))

    @property
    def expanded_u(self) -> float:
        """Half-width of the figure's own interval for 95.45 %, computed as result.json does for repeats.

        Student's t widens the spread alone, so that one run of several repeats has the same interval here as in its
        record.
        """
        common_u = math.sqrt(max(self.standard_u**2 - self.spread_u**2, 0.0))
        t = COVERAGE_FACTOR if math.isinf(self.freedom) else student_t(max(self.freedom, 1.0))
        widened_u = self.spread_u * t / COVERAGE_FACTOR
        k = coverage_factor(excess_kurtosis([(common_u, self.excess), (widened_u, 0.0)]))
        return k * math.hypot(common_u, widened_u)

    @property
    def repeated(self) -> bool:
        """Whether the spread between runs is known."""
        return math.isfinite(self.freedom)

    @property
    def log(self) -> Side:
        """Natural logarithm of the figure, to first order. Raises: ValueError: it is not above 0."""
        made = self.scale(1.0 / self.value, "1") if self.value > 0 else self
        return replace(made, value=math.log(self.value))

    def scale(self, factor: float, unit: str | None = None) -> Side:
        """The figure times an exact factor, for example one over its operations."""
        size = abs(factor)
        return replace(
            self,
            value=self.value * factor,
            standard_u=self.standard_u * size,
            unit=unit or self.unit,
            shared={name: factor * contribution for name, contribution in self.shared.items()},
            spread_u=self.spread_u * size,
        )


def difference(a: Side, b: Side) -> Measured:
    """a - b, with an interval for 95.45 %. Raises: ValueError: different units."""
    if a.unit != b.unit:
        raise ValueError(f"cannot compare {a.unit} with {b.unit}")
    return Measured(a.value - b.value, _difference_u(a, b), a.unit)


def ratio(a: Side, b: Side) -> Measured:
    """a / b, to first order, with an interval for 95.45 %.

    Raises: ValueError: different units. ZeroDivisionError: b is zero.
    """
    if a.unit != b.unit:
        raise ValueError(f"cannot compare {a.unit} with {b.unit}")
    quotient = a.value / b.value
    scaled, other = a.scale(1.0 / b.value, "1"), b.scale(quotient / b.value, "1")
    return Measured(quotient, _difference_u(scaled, other), "1")


def ratio_limits(a: Side, b: Side, beyond: float | None = None) -> tuple[float, float]:
    """Ends of the interval of a / b: the ratios r at which a and r b just differ significantly.

    The interval contains 1 exactly if a and b do not differ significantly. It is asymmetric about the quotient, the
    more so the less certain b is; the upper end is infinite if b may be zero.

    Both values must be above 0. `beyond`: probability that the interval misses the ratio, instead of 4.55 %. If several
    ratios share 4.55 % between them, all their intervals hold together (Bonferroni).
    Raises: ValueError: different units.
    Source: E. C. Fieller, Some problems in interval estimation, J. R. Statist. Soc. B 16 (1954), 175-185.
    """
    if a.unit != b.unit:
        raise ValueError(f"cannot compare {a.unit} with {b.unit}")
    quotient = a.value / b.value

    def excess(factor: float) -> float:
        other = b.scale(factor)
        return abs(a.value - other.value) - _difference_u(a, other, beyond)

    low = _crossing(excess, quotient, 0.0) if excess(0.0) > 0 else 0.0
    steps = (quotient * 1.5**number for number in range(1, 60))
    outside = next((factor for factor in steps if excess(factor) > 0), None)
    return low, math.inf if outside is None else _crossing(excess, quotient, outside)


def log_limits(a: Side, b: Side, beyond: float) -> tuple[float, float]:
    """Ends of the interval of a ratio, from the logarithms of its two figures.

    `beyond`: probability that the interval misses the ratio. The upper end is infinite beyond the largest number.
    """
    apart, u = difference(a, b).value, _difference_u(a, b, beyond)
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


def differ(a: Side, b: Side) -> bool | None:
    """Whether the two differ significantly: a - b lies outside its interval around 0, which under the null hypothesis
    happens in 4.55 % of comparisons. None if either is a single run, whose spread is unknown.
    Raises: ValueError: different units.
    """
    gap = difference(a, b)
    return abs(gap.value) > gap.u if a.repeated and b.repeated else None


def same_probability(a: Side, b: Side) -> float | None:
    """Two-sided p-value of the difference under the null hypothesis, for Holm's rule. None if either is a single run,
    whose spread is unknown.
    Raises: ValueError: different units.
    """
    apart = difference(a, b).value
    if not (a.repeated and b.repeated):
        return None
    standard_u, freedom = _difference_spread(a, b)
    if standard_u == 0.0:
        return 0.0 if apart else 1.0
    return student_probability(abs(apart) / standard_u, freedom)


POWER: Final = 0.8
"""Probability with which the number of repeats that `more_to_differ` gives shows a difference."""
MORE_MAX: Final = 1000
"""Greatest number of further repeats that `more_to_differ` considers."""


def more_to_differ(a: Side, b: Side, probability: float) -> int | None:
    """Number of further repeats of both figures that show their difference with a p-value up to `probability`.

    It is a forecast: means and spreads stay as they are now, and the p-value is then as small with the probability
    `POWER`. A difference of d standard uncertainties needs d - t(power) >= t(probability), with Student's t for the
    degrees of freedom of that many repeats.
    Returns: None if more than `MORE_MAX` are needed, because errors that repeats do not lessen are too large.
    Raises: ValueError: a single run, whose spread is unknown.
    Source: NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.2.2 (sample sizes required).
    """
    if not (a.repeated and b.repeated):
        raise ValueError("the spread of a single run is not known")
    apart = abs(difference(a, b).value)

    def shows(more: int) -> bool:
        standard_u, freedom = _difference_spread(a.with_more(more), b.with_more(more))
        if standard_u == 0.0:
            return apart > 0.0
        beyond = apart / standard_u - student_t_of(2.0 * (1.0 - POWER), freedom)
        return beyond > 0.0 and student_probability(beyond, freedom) <= probability

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


def correlation(a: Side, b: Side) -> float:
    """Correlation of the two figures, -1 to 1: the share of their uncertainty that cancels in a comparison."""
    both = sum(a.shared[name] * b.shared[name] for name in a.shared.keys() & b.shared.keys())
    return both / (a.standard_u * b.standard_u) if a.standard_u and b.standard_u else 0.0


def _difference_u(a: Side, b: Side, beyond: float | None = None) -> float:
    """Half-width of the interval of a - b for 95.45 %, or for 1 - `beyond`."""
    standard_u, freedom = _difference_spread(a, b)
    if beyond is not None:
        return standard_u * student_t_of(beyond, freedom)
    return standard_u * (COVERAGE_FACTOR if math.isinf(freedom) else student_t(freedom))


def _difference_spread(a: Side, b: Side) -> tuple[float, float]:
    """Standard uncertainty of a - b, and its degrees of freedom."""
    names = a.shared.keys() | b.shared.keys()
    left = [a.shared.get(name, 0.0) - b.shared.get(name, 0.0) for name in names]
    standard_u = math.hypot(a.own_u, b.own_u, a.spread_u, b.spread_u, *left)
    if standard_u == 0.0:
        return 0.0, math.inf
    inverse = sum((side.spread_u / standard_u) ** 4 / side.freedom for side in (a, b))
    return standard_u, max(1.0 / inverse, 1.0) if inverse else math.inf  # rounding may give less than 1
