"""A program's lines, and what is left of it once it has ended."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from opjoule.boards.shell import LineProcess


def test_an_ended_program_leaves_no_open_file() -> None:
    """A campaign starts a program for each of its cells; open files have a limit."""
    gc.disable()  # a collection would close what was forgotten
    try:
        before = len(list(Path("/proc/self/fd").iterdir()))
        processes = [LineProcess([sys.executable, "-c", "print('{}')"]) for _ in range(3)]
        for process in processes:
            assert list(process.lines()) == [{}]
            assert process.wait() == 0
        assert len(list(Path("/proc/self/fd").iterdir())) == before
    finally:
        gc.enable()
