#!/usr/bin/env python3
"""The commands that README.md asks a new user for: those of its first code block, in its order.

host/readme_commands.py prints them, one a line. Uses only the standard library.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

README: Final = Path(__file__).resolve().parent.parent / "README.md"
TESTS: Final = "./test"
_BLOCK: Final = re.compile(r"(?:^ {4}.*\n)+|^```\w*\n(?:.*\n)*?```$", re.MULTILINE)


def first_commands(page: str) -> list[str]:
    """The commands of a page's first code block, indented or fenced, without their comments.

    Raises: ValueError: the page has no code block, or no command in it.
    """
    block = _BLOCK.search(page)
    lines = block[0].splitlines() if block else []
    stripped = [re.sub(r"\s+#\s.*$", "", f" {line}").strip() for line in lines if not line.startswith("```")]
    commands = [line for line in stripped if line]
    if not commands:
        raise ValueError("the page has no code block with a command")
    return commands


if __name__ == "__main__":
    print(*first_commands(README.read_text(encoding="utf-8")), sep="\n")
