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
    columns = [definition for definition in quantities.shown("column") if definition.key in listed]
    shown = [listed[column.key] for column in columns]
    count = max((repeat_values.n for repeat_values in shown), default=0)
    if count < 2:
        return []
    body = [
        row(
            str(number + 1),
            *(_figure(repeat_values, repeat_values.values[number]) for repeat_values in shown),
        )
        for number in range(count)
    ]
    body.append(
        row("mean", *(_figure(repeat_values, fmean(repeat_values.values)) for repeat_values in shown))
    )
    body.append(
        row(
            "standard deviation",
            *(_figure(repeat_values, repeat_values.standard_deviation, 2) for repeat_values in shown),
        )
    )
    return [table(("repeat", *(column.column for column in columns)), body, f"Repeats (n = {count})")]


def _figure(of: RepeatValues, value: float | None, digits: int = 4) -> Element:
    text = NONE if value is None else str(rounded(value, None, of.unit, digits))
    return element("span", text, class_="figure")
