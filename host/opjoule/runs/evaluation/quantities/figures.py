"""A figure of each repeat, and its mean, spread and interval over all repeats.

The repeats share their systematic errors (one sensor, one clock), which therefore do not average out. The spread
between repeats is a separate part. The interval of every figure includes both.
Source: JCGM 100:2008, 4.2.3 (spread of repeats), G.3 (Student's t), 5.1.2.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Self

from opjoule.base.units import Measured, Missing, Quantity, Unstated, excess_kurtosis
from opjoule.energy.budget import Budget
from opjoule.energy.repeats import repeat_standard_u
from opjoule.runs.record.result import RepeatValues


@dataclass(frozen=True)
class Figure:
    """A number from one repeat."""

    value: float
    unit: str
    standard_u: float | None
    """Standard uncertainty from sources common to all repeats; None if it is not stated."""
    reason: str = ""
    """Why the uncertainty is not stated."""
    lower_bound: bool = False
    """Whether the true value may be larger without bound: samples were at the end of the meter's range."""
    shared: Mapping[str, float] = field(default_factory=dict)
    """Contributions that figures of other runs share, as in `Budget.shared`."""
    excess: float = 0.0
    """Excess kurtosis of the errors common to all repeats."""

    @classmethod
    def energy(cls, energy: Measured | Unstated, shared: Mapping[str, float] | None = None) -> Self:
        """An energy [J]; one without an uncertainty is a lower bound."""
        if isinstance(energy, Measured):
            return cls.measured(energy, shared)
        return cls(energy.value, energy.unit, None, energy.reason, lower_bound=True)

    @classmethod
    def measured(cls, number: Measured, shared: Mapping[str, float] | None = None) -> Self:
        """A number with its uncertainty."""
        return cls(number.value, number.unit, number.standard_u, shared=shared or {}, excess=number.excess)

    def scale(self, factor: float, unit: str | None = None) -> Self:
        """The figure times an exact factor."""
        u = None if self.standard_u is None else self.standard_u * abs(factor)
        shared = {name: factor * contribution for name, contribution in self.shared.items()}
        return replace(self, value=self.value * factor, unit=unit or self.unit, standard_u=u, shared=shared)


Figures = Mapping[str, Figure | Missing]
"""Figures of one repeat by their dotted path in result.json."""


def over_repeats(repeats: Sequence[Figure | Missing]) -> Quantity:
    """Mean of one figure over all repeats; missing if any repeat lacks it."""
    absent = [(number, figure) for number, figure in enumerate(repeats, 1) if isinstance(figure, Missing)]
    if absent:
        number, lacking = absent[0]
        whose = f"repeat {number}: " if len(absent) < len(repeats) else ""
        return Missing(whose + lacking.reason, lacking.unit)
    figures = [figure for figure in repeats if isinstance(figure, Figure)]
    values = [figure.value for figure in figures]
    if bound := next((figure for figure in figures if figure.lower_bound), None):
        return Unstated(fmean(values), bound.unit, bound.reason)
    shared = [figure.standard_u for figure in figures if figure.standard_u is not None]
    if len(figures) == 1:
        (one,) = figures
        if one.standard_u is None:
            return Unstated(one.value, one.unit, one.reason)
        return Measured.from_standard(one.value, one.standard_u, one.unit, one.excess)
    parts = [
        (fmean(shared) if shared else 0.0, fmean(figure.excess for figure in figures)),
        (repeat_standard_u(values), 0.0),
    ]
    standard_u = math.hypot(*(u for u, _ in parts))
    return Measured.from_standard(fmean(values), standard_u, figures[0].unit, excess_kurtosis(parts))


def by_repeat(repeats: Sequence[Figures]) -> dict[str, RepeatValues]:
    """Each figure's value in each repeat and their standard deviation, in the form of result.json."""
    listed: dict[str, RepeatValues] = {}
    for path in repeats[0]:
        values = [figure.value for figures in repeats if isinstance(figure := figures[path], Figure)]
        if len(values) < len(repeats):
            continue
        unit = next(figures[path].unit for figures in repeats)
        spread = stdev(values) if len(values) > 1 else None
        listed[path] = RepeatValues(len(values), unit, tuple(values), spread)
    return listed


def mean_budget(budgets: Sequence[Budget], values_j: Sequence[float]) -> Budget:
    """Budget of a mean: each part's mean, because the repeats share it, and the spread of the values."""
    budget = budgets[0]
    for name in budget.parts:
        budget = budget.with_part(name, fmean(budget.parts.get(name, 0.0) for budget in budgets))
    excess = {name: fmean(budget.excess.get(name, 0.0) for budget in budgets) for name in budget.excess}
    budget = replace(budget, shared=mean_shared(budgets), excess=excess)
    return budget.with_part("repeats", repeat_standard_u(values_j)) if len(values_j) > 1 else budget


def mean_shared(repeats: Sequence[Budget | Figure]) -> dict[str, float]:
    """Contributions to the mean of all repeats that figures of other runs share, by source."""
    names = {name for repeat in repeats for name in repeat.shared}
    return {name: fmean(repeat.shared.get(name, 0.0) for repeat in repeats) for name in sorted(names)}
