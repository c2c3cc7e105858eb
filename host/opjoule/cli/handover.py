"""The parsed command line on its way from measure.py, before set-up, to the environment's Python.

It lies in memory of this process; the Python that replaces it (exec) finds it by a descriptor that stays open.
"""

from __future__ import annotations

import os
import pickle
from typing import Final

from opjoule.cli.command import ParsedCommand

DESCRIPTOR: Final = "OPJOULE_COMMAND_FD"
"""Environment variable with the descriptor's number."""


def hand_over(command: ParsedCommand) -> None:
    """Keeps a command for the program that this process becomes."""
    descriptor = os.memfd_create("opjoule-command", 0)  # 0: open after exec, too
    with os.fdopen(os.dup(descriptor), "wb") as memory:
        pickle.dump(command, memory)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.environ[DESCRIPTOR] = str(descriptor)


def handed_over() -> ParsedCommand | None:
    """The command that was kept; None where there is none."""
    number = os.environ.pop(DESCRIPTOR, "")
    if not number:
        return None
    with os.fdopen(int(number), "rb") as memory:
        command = pickle.load(memory)
    assert isinstance(command, ParsedCommand)
    return command
