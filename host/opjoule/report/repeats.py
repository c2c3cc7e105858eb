"""The table of repeats: what each gave, their mean and standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from opjoule.drawing.markup import Element, element, row, table
from opjoule.evaluation.quantities.definition import Quantities
from opjoule.opened.quantities import NONE
from opjoule.opened.rounding import rounded
from opjoule.record.result import RepeatValues


def repeats_table(listed: Mapping[str, RepeatValues], quantities: Quantities) -> list[Element]:
    """One row a repeat, then mean and standard deviation; nothing for one repeat, or none listed."""
    columns = [each for each in quantities.shown("column") if each.key in listed]
    shown = [listed[each.key] for each in columns]
    count = max((each.n for each in shown), default=0)
    if count < 2:
        return []
    body = [
        row(str(number + 1), *(_figure(each, each.values[number]) for each in shown))
        for number in range(count)
    ]
    body.append(row("mean", *(_figure(each, fmean(each.values)) for each in shown)))
    body.append(row("standard deviation", *(_figure(each, each.standard_deviation, 2) for each in shown)))
    return [table(("repeat", *(each.column for each in columns)), body, f"Repeats (n = {count})")]


def _figure(of: RepeatValues, value: float | None, digits: int = 4) -> Element:
    text = NONE if value is None else str(rounded(value, None, of.unit, digits))
    return element("span", text, class_="figure")
