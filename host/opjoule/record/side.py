"""A quantity of result.json as one side of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opjoule.energy.comparison import Side
from opjoule.record.definition import Definition


def side_of(numbers: Mapping[str, Any], of: Definition) -> Side:
    """A quantity with its interval, what other results have in common with it, and how much its repeats differ.

    Args:
        numbers: the whole of result.json (`Conclusion.numbers`).
    Raises: ValueError: the number is absent, or states no uncertainty; says its reason.
    """
    number: Any = numbers
    for name in of.key.split("."):
        number = number.get(name, {})
    shared = numbers.get("shared", {})
    repeats = numbers.get("by_repeat", {}).get(of.key, {})
    return Side.of(number, shared.get(of.budget or of.key), repeats.get("values", ()))
