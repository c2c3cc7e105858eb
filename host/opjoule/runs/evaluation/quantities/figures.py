"""A quantity of each repeat, and its mean, spread and interval over all repeats.

The repeats share their systematic errors (one sensor, one clock), which therefore do not average out. The spread
between repeats is a separate part. The interval of every quantity includes both.
Source: JCGM 100:2008, 4.2.3 (spread of repeats), G.3 (Student's t), 5.1.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev

from opjoule.base.units import Quantity, mean_shared
from opjoule.energy.budget import Budget
from opjoule.energy.repeats import repeat_standard_u
from opjoule.runs.record.result import RepeatValues

Figures = Mapping[str, Quantity]
"""Quantities of one repeat by their dotted path in result.json."""


def over_repeats(repeats: Sequence[Quantity]) -> Quantity:
    """Mean of one quantity over all repeats; missing if any repeat lacks it."""
    absent = [(number, one) for number, one in enumerate(repeats, 1) if one.value is None]
    if absent:
        number, lacking = absent[0]
        whose = f"repeat {number}: " if len(absent) < len(repeats) else ""
        return lacking.absent(lacking.unit, whose)
    if len(repeats) == 1:
        return repeats[0]
    values = [float(one) for one in repeats]
    if bound := next((one for one in repeats if one.unbounded), None):
        return Quantity(fmean(values), None, bound.unit).because(bound)
    stated = [one for one in repeats if one.u is not None]
    common_u = fmean(one.standard_u for one in stated) if stated else 0.0
    excess = sum(one.excess for one in stated) / len(repeats)
    return Quantity.of_values(values, repeats[0].unit, common_u, excess, mean_shared(repeats))


def by_repeat(repeats: Sequence[Figures]) -> dict[str, RepeatValues]:
    """Each quantity's value in each repeat and their standard deviation, in the form of result.json."""
    listed: dict[str, RepeatValues] = {}
    for path, first in repeats[0].items():
        values = [value for figures in repeats if (value := figures[path].value) is not None]
        if len(values) == len(repeats):
            spread = stdev(values) if len(values) > 1 else None
            listed[path] = RepeatValues(len(values), first.unit, tuple(values), spread)
    return listed


def mean_budget(budgets: Sequence[Budget], values_j: Sequence[float]) -> Budget:
    """Budget of a mean: each part's mean, because the repeats share it, and the spread of the values."""
    budget = budgets[0]
    for name in budget.parts:
        budget = budget.with_part(name, fmean(budget.parts.get(name, 0.0) for budget in budgets))
    excess = {name: fmean(budget.excess.get(name, 0.0) for budget in budgets) for name in budget.excess}
    budget = replace(budget, shared=mean_shared(budgets), excess=excess)
    return budget.with_part("repeats", repeat_standard_u(values_j)) if len(values_j) > 1 else budget
