#!/usr/bin/env python3
"""Updates the tables of quantities, causes and notices in docs/reference/run-record.md from the code."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "host"))

from opjoule.base.notices import NoticeKind  # noqa: E402
from opjoule.base.units import Cause  # noqa: E402
from opjoule.runs.evaluation.quantities.common import COMMON, SENSORS  # noqa: E402
from opjoule.runs.evaluation.quantities.definition import Definition, Quantities  # noqa: E402  # path set above
from opjoule.runs.evaluation.quantities.operations import KEY_VALUE, OPERATIONS  # noqa: E402
from opjoule.runs.evaluation.quantities.phases import PHASES  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "run-record.md"
TABLES = {
    "Quantities of every measurement": (*COMMON, *SENSORS),
    "Quantities of studies that count operations": OPERATIONS,
    "Quantities of studies of key-value stores": KEY_VALUE,
    "Quantities of the phases that a command marked": PHASES,
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


def notice_table() -> str:
    """A Markdown table of the kinds of notice."""
    lines = [f"| `{kind}` | {kind.grade.name.lower()} | {kind.meaning} |" for kind in NoticeKind]
    return "\n".join(["| kind | grade | meaning |", "|---|---|---|", *lines])


def cause_list() -> str:
    """The causes of missing values, one a line."""
    return "\n".join(f"- `{cause}`" for cause in Cause if cause)


def renewed(page: str) -> str:
    """The page with updated tables.

    Raises: ValueError: the page lacks a marker.
    """
    for name, table in {"quantities": markdown, "causes": cause_list, "notices": notice_table}.items():
        begins, ends = f"<!-- {name}: written by host/quantities_page.py -->", f"<!-- /{name} -->"
        before, after = page.index(begins) + len(begins), page.index(ends)
        page = f"{page[:before]}\n{table()}\n\n{page[after:]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
