"""Every command of host/measure.py, and the parsing of its command line. Standard library only.

The line is parsed before set-up. Thus --help and a mistyped option need no set-up, and the options say what set-up has
to do. The environment's Python receives the parsed options (command.py), never the line itself.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from opjoule.cli.failures import one_line, reporting_failures
from opjoule.errors import suggestion
from opjoule.scripts import script_name

if TYPE_CHECKING:
    from opjoule.cli.command import Command, ParsedCommand

FIRST_COMMAND: Final = "host/measure.py --db leveldb --device rpi4 --simulate"
_SHORT: Final = (
    "init",
    "record",
    "import",
    "doctor",
    "report",
    "verify",
    "restore",
    "sudoers",
    "virtual-board",
)
_MODULES: Final = {
    **dict.fromkeys((*_SHORT, "view", "studies", "databases"), "short_commands"),
    **dict.fromkeys(("command", "again"), "measure.options"),
    **{
        name: f"{name}.options" for name in ("commission", "twin", "calibrate", "runs", "compare", "campaign")
    },
}
"""First word of a command -> module with its options; only that one is loaded, since each takes time."""


def known_commands() -> dict[str, Command]:
    """Every command by its name."""
    return {name: command for first in _MODULES for name, command in _commands(first).items()}


def _commands(first: str) -> dict[str, Command]:
    """The commands that begin with this word, by their names."""
    if first not in _MODULES:
        return {}
    from opjoule.cli.command import Command  # noqa: PLC0415  # slow to load

    values = vars(importlib.import_module(f"opjoule.cli.{_MODULES[first]}")).values()
    lists = [value if isinstance(value, tuple) else (value,) for value in values]
    commands = [value for values in lists for value in values if isinstance(value, Command)]
    return {command.name: command for command in commands if command.name.split()[:1] == [first]}


def parse(argv: list[str]) -> ParsedCommand:
    """Parses one command line; on a mistake argparse exits with status 2 and one line."""
    if argv == ["help"]:
        argv = ["--help"]
    if argv[:1] == ["compare"]:
        from opjoule.cli.compare.commands import COMPARE_COMMANDS, measures_commands  # noqa: PLC0415  # as above

        if measures_commands(argv[1:]):
            return COMPARE_COMMANDS.parse(argv[1:])
    known = _commands(argv[0]) if argv else {}
    for count in (2, 1):
        if command := known.get(" ".join(argv[:count])):
            return command.parse(argv[count:])
    from opjoule.cli.measure.options import MEASURE  # noqa: PLC0415  # as above

    if not argv:
        MEASURE.parser().error(f"no command given; to begin: {FIRST_COMMAND}")
    if not argv[0].startswith("-"):
        _refuse(argv[0])
    given = [word.split("=")[0] for word in argv]
    if "--study" not in given:
        return MEASURE.parse(argv)
    from opjoule.cli.campaign.study_cells import STUDY  # noqa: PLC0415  # as above

    if "--db" in given:
        STUDY.parser().error(
            "--study names its databases itself: leave out --db, and give --only system=NAME"
        )
    return STUDY.parse(argv)


def main(argv: list[str]) -> int:
    """Runs one command line. A failure prints one line on stderr and gives its exit status."""
    return reporting_failures(script_name(argv), parse(argv).loaded())


def _refuse(word: str) -> NoReturn:
    known = [name for name in known_commands() if " " not in name]
    print(
        f"measure.py: unknown command '{one_line(word)}': {suggestion(word, known)}there are {', '.join(known)}; "
        "without a command it measures: give --db NAME --device NAME",
        file=sys.stderr,
    )
    sys.exit(2)
