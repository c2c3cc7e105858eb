#!/usr/bin/env python3
"""Updates the tables of quantities in docs/reference/run-record.md from the tables in opjoule.runs.record."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "host"))

from opjoule.runs.evaluation.quantities.common import COMMON, SENSORS  # noqa: E402
from opjoule.runs.evaluation.quantities.definition import Definition, Quantities  # noqa: E402  # path set above
from opjoule.runs.evaluation.quantities.operations import KEY_VALUE, OPERATIONS  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "run-record.md"
START, END = "<!-- quantities: written by host/quantities_page.py -->", "<!-- /quantities -->"
TABLES = {
    "Quantities of every measurement": (*COMMON, *SENSORS),
    "Quantities of studies that count operations": OPERATIONS,
    "Quantities of studies of key-value stores": KEY_VALUE,
}


def table_lines(definitions: Iterable[Definition]) -> list[str]:
    """A Markdown table of quantities in reading order; quantities of a group with the same meaning share a line."""
    lines: dict[tuple[str, str], list[Definition]] = {}
    for definition in Quantities(definitions):
        group = definition.key.rpartition(".")[0] or definition.key
        lines.setdefault((group, definition.meaning), []).append(definition)
    head = ["| key | unit | name | meaning |", "|---|---|---|---|"]
    return head + [_line(group, meaning, alike) for (group, meaning), alike in lines.items()]


def _line(group: str, meaning: str, of: list[Definition]) -> str:
    names = ", ".join(f"`{definition.key.rpartition('.')[2]}`" for definition in of)
    key = f"`{of[0].key}`" if len(of) == 1 else f"`{group}`: {names}"
    units = ", ".join(dict.fromkeys(definition.unit for definition in of))
    label = of[0].label.removeprefix("… ")
    return f"| {key} | {units} | {label} | {meaning} |"


def markdown() -> str:
    """Text between the markers."""
    parts = [f"{title}:\n\n" + "\n".join(table_lines(definitions)) for title, definitions in TABLES.items()]
    return "\n\n".join(parts)


def renewed(page: str) -> str:
    """The page with updated tables.

    Raises: ValueError: the page lacks a marker.
    """
    before, after = page.index(START) + len(START), page.index(END)
    return f"{page[:before]}\n{markdown()}\n\n{page[after:]}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
