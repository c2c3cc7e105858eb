"""The energies of the phases that a command has marked, as rows for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opjoule.drawing.markup import Element, element, row, table
from opjoule.opened.quantities import NONE, rounded_quantity
from opjoule.opened.rounding import rounded
from opjoule.units import Missing, from_json

COLUMNS: Final = (
    ("marginal_energy_j", "above idle", True),
    ("energy_j", "in all", False),
    ("duration_s", "time", False),
    ("operations", "operations", False),
    ("marginal_energy_per_operation_j", "per operation", True),
)
"""Keys below `by_phase.NAME` of result.json, their headings, and whether the uncertainty is shown beside them."""
HEAD: Final = ("phase", *(heading for _, heading, _ in COLUMNS))


def phase_rows(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """One row a phase, in the order of their first mark: its name and the texts of COLUMNS; none without marks."""
    by_phase: Mapping[str, Mapping[str, Any]] = result.get("by_phase") or {}
    return [
        (name, *(_text(figures.get(key), with_u=with_u) for key, _, with_u in COLUMNS))
        for name, figures in by_phase.items()
    ]


def _text(entry: Mapping[str, Any] | None, *, with_u: bool) -> str:
    quantity = from_json(entry) if entry else Missing("not in result.json")
    if not with_u and not isinstance(quantity, Missing):
        return str(rounded(quantity.value, None, quantity.unit))
    shown = rounded_quantity(quantity)
    return NONE if shown is None else str(shown)


def phases_table(result: Mapping[str, Any]) -> list[Element]:
    """The table of the page; nothing without marks."""
    rows = [
        row(name, *(element("span", text, class_="figure") for text in texts))
        for name, *texts in phase_rows(result)
    ]
    return [table(HEAD, rows, "Energy of the phases that the command marked")] if rows else []
