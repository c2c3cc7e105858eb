"""A quantity of result.json as one side of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opjoule.energy.comparison import Side
from opjoule.evaluation.quantities.definition import Definition, Topic

COUNTED = (Topic.USAGE, Topic.LATENCY)
"""Topics of counted quantities: one repeat states no uncertainty; only the spread of runs does."""


def comparison_side(numbers: Mapping[str, Any], of: Definition) -> Side:
    """A quantity with its interval, what other results have in common with it, and how much its repeats differ.

    Args:
        numbers: the whole of result.json (`Conclusion.numbers`). A counted number without an uncertainty is taken as
            exact for its own run.
    Raises: ValueError: the number is absent, or states no uncertainty; says its reason.
    """
    number = _number(numbers, of.key)
    if of.topic in COUNTED and number.get("value") is not None and number.get("u") is None:
        number = {**number, "u": 0.0}
    shared = numbers.get("shared", {})
    repeats = numbers.get("by_repeat", {}).get(of.key, {})
    return Side.of(number, shared.get(of.budget or of.key), repeats.get("values", ()))


def _number(numbers: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The number at a path; the reason of a missing group is that of its parts, and a bare count is exact."""
    found: Any = numbers
    for name in path.split("."):
        if isinstance(found, Mapping) and {"value", "u", "unit"} <= found.keys():
            break
        found = found.get(name, {}) if isinstance(found, Mapping) else {}
    if isinstance(found, int | float) and not isinstance(found, bool):
        return {"value": found, "u": 0.0 if isinstance(found, int) else None, "unit": "1"}
    return found if isinstance(found, Mapping) else {}
