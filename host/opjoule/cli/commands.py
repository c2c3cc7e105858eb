"""The commands of `host/measure.py` after set-up; each loads only what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial

from opjoule.cli import arguments
from opjoule.cli.failures import reporting_failures
from opjoule.scripts import script_name


def main(argv: list[str]) -> int:
    """One command line; every failure is one line on stderr and its exit status."""
    return reporting_failures(script_name(argv), loaded(argv))


def loaded(argv: list[str]) -> Callable[[], int]:
    """The command that a command line names, ready to run; a mistyped line ends the program."""
    asked = arguments.parse(argv)
    name = asked.command.replace("-", "_")
    module = importlib.import_module(f"opjoule.cli.{'import_trace' if name == 'import' else name}.command")
    return partial(getattr(module, f"run_{name}"), asked.options)
