"""Every command of host/measure.py, and the parsing of its command line.

The declaration of a command is loaded when a command line names it, so that --help is quick.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from opjoule.base.errors import suggestion
from opjoule.base.scripts import script_name
from opjoule.cli.command import Command, ParsedCommand
from opjoule.cli.failures import one_line, reporting_failures

FIRST_COMMAND: Final = "host/measure.py --db leveldb --device rpi4 --simulate"
_SHORT: Final = (
    *("init", "record", "import", "doctor", "report", "verify", "restore", "sudoers", "virtual-board", "view"),
    *("studies", "databases"),
)
MODULES: Final = {
    **dict.fromkeys(_SHORT, "short_commands"),
    "commission": "commission.options",
    **dict.fromkeys(("command", "again"), "measure.options"),
    "twin": "twin.options",
    "calibrate": "calibrate.options",
    "runs": "runs.options",
    "compare": "compare.options",
    "campaign": "campaign.options",
}
"""First word of a command -> module of its declaration, whose COMMANDS has it."""


def commands_of(word: str) -> dict[str, Command]:
    """The commands that begin with a word, by name; none if it begins no command."""
    if word not in MODULES:
        return {}
    return {one.name: one for one in _module(MODULES[word]).COMMANDS if one.name.split(" ")[0] == word}


def measure_command(words: Sequence[str]) -> Command:
    """The command that measures: a study, or the main job."""
    if "--study" in [word.split("=")[0] for word in words]:
        study: Command = _module("campaign.study_cells").STUDY
        return study
    measure: Command = _module("measure.options").MEASURE
    return measure


def measures_commands(words: Sequence[str]) -> bool:
    """Whether the words after `compare` name commands to measure, not records: they have -- or a board."""
    return any(word == "--" or word.partition("=")[0] == "--device" for word in words)


def _module(name: str) -> Any:
    return import_module(f"opjoule.cli.{name}")


def parse(argv: list[str]) -> ParsedCommand:
    """Parses one command line; on a mistake argparse exits with status 2 and one line."""
    if argv == ["help"]:
        argv = ["--help"]
    word = argv[0] if argv else ""
    if word == "compare" and measures_commands(argv[1:]):
        command: Command = _module("compare.commands").COMPARE_COMMANDS
        return command.parse(argv[1:])
    commands = commands_of(word)
    for count in (2, 1):
        if named := commands.get(" ".join(argv[:count])):
            return named.parse(argv[count:])
    measure = measure_command(argv)
    if not argv:
        measure.parser().error(f"no command given; to begin: {FIRST_COMMAND}")
    if not word.startswith("-"):
        _refuse(word)
    given = [one.split("=")[0] for one in argv]
    if "--study" in given and "--db" in given:
        measure.parser().error("--study names its databases itself: leave out --db, and give --only system=NAME")
    return measure.parse(argv)


def main(argv: list[str]) -> int:
    """Runs one command line. A failure prints one line on stderr and gives its exit status."""
    return reporting_failures(script_name(argv), parse(argv).loaded())


def _refuse(word: str) -> NoReturn:
    print(
        f"measure.py: unknown command '{one_line(word)}': {suggestion(word, MODULES)}there are {', '.join(MODULES)}; "
        "without a command it measures: give --db NAME --device NAME",
        file=sys.stderr,
    )
    sys.exit(2)
