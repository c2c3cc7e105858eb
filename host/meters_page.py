#!/usr/bin/env python3
"""Writes the table of meters into docs/reference/meters.md: .venv/bin/python host/meters_page.py."""

import re
from pathlib import Path
from typing import Final

from opjoule.meters.registry import KINDS

PAGE: Final = Path(__file__).resolve().parent.parent / "docs/reference/meters.md"
START, END = "<!-- meters: written by host/meters_page.py -->", "<!-- /meters -->"


def kinds_table() -> str:
    """The table of docs/reference/meters.md, in Markdown."""
    rows = ["| kind | written as | samples | sync input | runs on | needs |", "|---|---|---|---|---|---|"]
    for kind in KINDS.values():
        sync_input = kind.sync_input or "no"
        cells = f"`{kind.name}`", kind.written, kind.samples, sync_input, kind.runs_on, kind.needs
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def renewed(page: str) -> str:
    """The page with the current table. Raises: ValueError: the page has no place for it."""
    if START not in page or END not in page:
        raise ValueError(f"{PAGE.name} has no '{START}' ... '{END}'")
    block = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    return block.sub(lambda _: f"{START}\n{kinds_table()}{END}", page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
