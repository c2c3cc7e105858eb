"""The parts of the energy above idle in lines for the terminal: kinds of operation, and the activities behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from opjoule.evaluation.quantities.definition import Topic
from opjoule.opened.answer import Answer
from opjoule.opened.quantities import is_quantity, quantity, quantity_text
from opjoule.record.phases import Role
from opjoule.units import Missing, Quantity

_SHOWN_ELSEWHERE: Final = ("idle", "harness", "foreground")
_TOGETHER: Final = "unseparated"
_NONE_OF_IT: Final = "not found: the engine"
_OF_A_REPEAT: Final = re.compile(r"(repeat \d+: )?")
_IN_BLOCKS: Final = "each, measured in randomised blocks"


def part_rows(answer: Answer) -> list[tuple[str, str]]:
    """(name, what it drew and what that is) of each kind and each activity; what never began is left out.

    Parts that cannot be told apart have one row together. The last row says in short why they cannot; the report has
    the reasons in full.
    """
    parts = [*_kinds(answer.result), *_activities(answer)]
    unknown = {name: _in_short(number.reason) for name, number, _ in parts if isinstance(number, Missing)}
    rows = [
        (name, f"{quantity_text(number)}  {note}")
        for name, number, note in parts
        if name not in unknown and name != _TOGETHER
    ]
    together = answer.quantity(f"by_activity.{_TOGETHER}")
    names = _of_together(answer, unknown)
    if names and not isinstance(together, Missing):
        note = "together" if len(names) > 1 else "what the other parts leave"
        rows.append((" + ".join(names), f"{quantity_text(together)}  {note}"))
    reasons = [f"{name} ({why})" for name, why in unknown.items()]
    return [*rows, *([("not told apart", ", ".join(reasons))] if reasons else [])]


def _of_together(answer: Answer, unknown: Iterable[str]) -> list[str]:
    """The parts in the energy of those that cannot be told apart: no kinds where all kinds together are told."""
    foreground = not isinstance(answer.quantity("by_activity.foreground"), Missing)
    kinds = [name for name, *_ in _kinds(answer.result)] if foreground else []
    return [name for name in unknown if name not in kinds]


def _kinds(result: Mapping[str, Any]) -> list[tuple[str, Quantity, str]]:
    entries = result.get("by_operation")
    if not isinstance(entries, Mapping) or is_quantity(entries):
        return []
    rows = []
    for kind, entry in entries.items():
        energy = quantity(result, f"by_operation.{kind}.energy_per_operation_j")
        note = _IN_BLOCKS if entry.get("measured_in") == Role.BLOCKS else "each, while it is carried out"
        rows.append((kind, energy, note))
    return rows


def _activities(answer: Answer) -> list[tuple[str, Quantity, str]]:
    rows = []
    for definition in answer.quantities.below("by_activity"):
        if (
            definition.topic is not Topic.PART
            or definition.label in _SHOWN_ELSEWHERE
            or definition.top not in answer.result
        ):
            continue
        energy = answer.quantity(definition.key)
        never = isinstance(energy, Missing) and energy.reason.startswith(_NONE_OF_IT)
        if not never:
            rows.append((definition.label.replace("_", "-"), energy, definition.meaning))
    return rows


def _in_short(reason: str) -> str:
    """The reason without the repeat it was found in and without figures: "too few windows"."""
    return _OF_A_REPEAT.sub("", reason, count=1).partition(":")[0]
