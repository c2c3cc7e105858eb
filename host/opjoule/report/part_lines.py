"""The parts of the energy above idle in lines for the terminal: kinds of operation, and the activities behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from opjoule.record.definition import Topic
from opjoule.record.phases import Role
from opjoule.report.answer import Answer
from opjoule.report.quantities import is_quantity, quantity, quantity_text
from opjoule.units import Measured, Missing, Quantity

_SHOWN_ELSEWHERE: Final = ("idle", "harness", "foreground")
_OF_A_REPEAT: Final = re.compile(r"(repeat \d+: )?")
_IN_BLOCKS: Final = "each, measured in randomised blocks"


def part_rows(answer: Answer) -> list[tuple[str, str]]:
    """(name, what it drew and what that is) of each kind and each activity; what never began is left out.

    The last row names the parts that cannot be told, each with its reason in short; the report has it in full.
    """
    rows, unknown = [], []
    for name, energy, note in [*_kinds(answer.result), *_activities(answer)]:
        if isinstance(energy, Missing):
            unknown.append(f"{name} ({_in_short(energy.reason)})")
        else:
            rows.append((name, f"{quantity_text(energy)}  {note}"))
    return [*rows, *([("not known", ", ".join(unknown))] if unknown else [])]


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
    for each in answer.quantities.below("by_activity"):
        if each.topic is not Topic.PART or each.label in _SHOWN_ELSEWHERE or each.top not in answer.result:
            continue
        energy = answer.quantity(each.key)
        if not (isinstance(energy, Measured) and energy.value == 0.0):
            rows.append((each.label.replace("_", "-"), energy, each.meaning))
    return rows


def _in_short(reason: str) -> str:
    """The reason without the repeat it was found in and without figures: "too few windows"."""
    return _OF_A_REPEAT.sub("", reason, count=1).partition(":")[0]
