"""The mean of one cell: the one number, with the one interval, that every table, page and figure gives for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from opjoule.comparison.side import COUNTED, comparison_side
from opjoule.energy.comparison import Side
from opjoule.evaluation.quantities.definition import Definition
from opjoule.opened.quantities import quantity


def cell_mean(results: Sequence[Mapping[str, Any]], of: Definition) -> dict[str, Any]:
    """Mean of a quantity over the runs of one cell, as a number of result.json with the number of those `runs`.

    Runs that state no uncertainty are left out as long as one does; where none does, the mean has none either.

    Args:
        results: result.json of each run.
    Returns: value, u (95 %, widened by Student's t for the number of runs), unit and runs; with a reason where
        value or u is null.
    """
    sides = sides_of(results, of)
    side = Side.mean(sides) if sides else None
    if side and (of.topic not in COUNTED or side.expanded_u > 0):
        return {"value": side.value, "u": side.expanded_u, "unit": side.unit, "runs": len(sides)}
    found = [quantity(each, of.key) for each in results]
    known = [each for each in found if each.value is not None]
    unit = next((each.unit for each in found if each.unit), of.unit)
    reasons = [reason for each in (known or found) if (reason := getattr(each, "reason", ""))]
    if not known:
        return {"value": None, "u": None, "unit": unit, "reason": reasons[0] if reasons else "no run has it"}
    mean = {"value": fmean(each.value or 0.0 for each in known), "u": None, "unit": unit, "runs": len(known)}
    return {**mean, "reason": reasons[0] if reasons else "uncertainty not stated in a run"}


def sides_of(results: Sequence[Mapping[str, Any]], of: Definition) -> list[Side]:
    """The runs that have the number with an uncertainty."""
    found = []
    for each in results:
        try:
            found.append(comparison_side(each, of))
        except ValueError:
            continue
    return found
