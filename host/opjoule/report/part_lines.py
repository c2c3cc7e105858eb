"""The parts of the energy above idle in lines for the terminal: kinds of operation, and the activities behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opjoule.record.definition import Topic
from opjoule.record.phases import Role
from opjoule.report.answer import Answer
from opjoule.report.quantities import is_quantity, quantity, quantity_text
from opjoule.units import Measured, Missing, Quantity

_SHOWN_ELSEWHERE: Final = ("idle", "harness", "foreground")
_IN_BLOCKS: Final = "each, measured in randomised blocks"


def part_rows(answer: Answer) -> list[tuple[str, str]]:
    """(name, what it drew and what that is) of each kind and each activity; what never began is left out."""
    return [*_kinds(answer.result), *_activities(answer)]


def _kinds(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    entries = result.get("by_operation")
    if not isinstance(entries, Mapping) or is_quantity(entries):
        return []
    rows = []
    for kind, entry in entries.items():
        energy = quantity(result, f"by_operation.{kind}.energy_per_operation_j")
        note = _IN_BLOCKS if entry.get("measured_in") == Role.BLOCKS else "each, while it is carried out"
        rows.append((kind, _text(energy, note)))
    return rows


def _activities(answer: Answer) -> list[tuple[str, str]]:
    rows = []
    for each in answer.quantities.below("by_activity"):
        if each.topic is not Topic.PART or each.label in _SHOWN_ELSEWHERE:
            continue
        energy = answer.quantity(each.key)
        never = isinstance(energy, Measured) and energy.value == 0.0
        if not never and each.top in answer.result:
            rows.append((each.label.replace("_", "-"), _text(energy, each.meaning)))
    return rows


def _text(energy: Quantity, note: str) -> str:
    if isinstance(energy, Missing):
        return f"not known: {energy.reason}"
    return f"{quantity_text(energy)}  {note}"
