"""Mean of one cell, with one interval, for every table, page and figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from opjoule.energy.comparison import Side
from opjoule.evaluation.quantities.definition import Definition, Topic
from opjoule.opened.quantities import quantity
from opjoule.record.json_file import plain
from opjoule.units import Unstated, exact

COUNTED = (Topic.USAGE, Topic.LATENCY)
"""Topics of counted quantities: a single repeat has no uncertainty; only the spread of runs gives one."""


def comparison_side(numbers: Mapping[str, Any], of: Definition) -> Side:
    """A quantity with its interval, its contributions common to other results, and the spread of its repeats.

    A counted number without an uncertainty is exact for its own run.
    Raises: ValueError: the number is absent, or has no uncertainty; the message gives the reason.
    """
    number = quantity(numbers, of.key)
    if of.topic in COUNTED and isinstance(number, Unstated):
        number = exact(number.value, number.unit)
    shared = numbers.get("shared", {})
    repeats = numbers.get("by_repeat", {}).get(of.key, {})
    return Side.of(plain(number), shared.get(of.budget or of.key), repeats.get("values", ()))


def cell_mean(results: Sequence[Mapping[str, Any]], of: Definition) -> dict[str, Any]:
    """Mean of a quantity over the runs of one cell, from the result.json of each.

    Runs without an uncertainty are left out if any run has one; if none has, the mean has none either.
    Returns: value, u (95 %, widened by Student's t for the number of runs), unit and `runs`; a reason with each null.
    """
    sides = sides_of(results, of)
    side = Side.mean(sides) if sides else None
    if side and (of.topic not in COUNTED or side.expanded_u > 0):
        return {"value": side.value, "u": side.expanded_u, "unit": side.unit, "runs": len(sides)}
    numbers = [quantity(result, of.key) for result in results]
    known = [number for number in numbers if number.value is not None]
    unit = next((number.unit for number in numbers if number.unit), of.unit)
    reasons = [reason for number in (known or numbers) if (reason := getattr(number, "reason", ""))]
    if not known:
        return {"value": None, "u": None, "unit": unit, "reason": reasons[0] if reasons else "no run has it"}
    mean = {
        "value": fmean(number.value or 0.0 for number in known),
        "u": None,
        "unit": unit,
        "runs": len(known),
    }
    return {**mean, "reason": reasons[0] if reasons else "uncertainty not stated in a run"}


def sides_of(results: Sequence[Mapping[str, Any]], of: Definition) -> list[Side]:
    """Sides of the runs that have the number with an uncertainty."""
    sides = []
    for result in results:
        try:
            sides.append(comparison_side(result, of))
        except ValueError:
            continue
    return sides
