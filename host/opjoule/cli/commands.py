"""Every command of host/measure.py, and the parsing of its command line.

The declaration of a command is loaded when a command line names it, so that --help is quick.
"""

import importlib
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

from opjoule.base.errors import OpJouleError, suggestion
from opjoule.base.scripts import Needs, script_name
from opjoule.base.toml_file import read_toml
from opjoule.boards.binaries import ARCHITECTURES
from opjoule.boards.databases import is_server
from opjoule.boards.profiles import find_profile
from opjoule.cli.failures import one_line, reporting_failures
from opjoule.cli.options import Options, Parser


def board_architecture(device: str | None, rig: Path, *, simulated: bool, database: str | None = None) -> str:
    """Architecture of the board to measure; empty if this computer's own loader is enough.

    A mistake in rig.toml or on the command line gives an empty text; the command itself reports the mistake later.

    Args:
        device: None: the only board of the rig.
        database: the database that the loader contains or connects to, or None.
    """
    this_computers = ARCHITECTURES.get(platform.machine(), "")
    here = this_computers if is_server(database or "") else ""
    if simulated:
        return here
    try:
        if not device:
            [device] = read_toml(rig)["device"]
        profile = find_profile(device)
        devices = read_toml(rig)["device"] if profile.name != "virtual" and rig.exists() else {}
        connection = str(devices.get(profile.name, {}).get("connection", ""))
        if profile.name == "virtual" or connection.startswith("ssh:"):
            return profile.architecture
    except (OpJouleError, OSError, ValueError, AttributeError, KeyError):
        return ""
    return here


@dataclass(frozen=True)
class ParsedCommand:
    """A parsed command line."""

    run: str
    """`module:function` that takes the options."""
    options: Any
    needs: Needs

    def loaded(self) -> Callable[[], int]:
        """The command, ready to run, with its modules loaded."""
        module, _, function = self.run.partition(":")
        return partial(getattr(importlib.import_module(module), function), self.options)


@dataclass(frozen=True)
class Command:
    """One command."""

    name: str
    """The command's words on the command line; empty for the main job, which has none."""
    options: type[Options]
    run: str
    """`module:function` that takes what `checked` returns; a name, since its modules are slow to load."""
    description: str
    epilog: str = ""
    usage: str | None = None
    checked: Callable[[Parser, Any], Any] = lambda parser, options: options
    """Makes the value that `run` takes from the options; calls parser.error() if they contradict each other."""
    needs: Callable[[Any], Needs] = lambda options: Needs()
    """What set-up has to do for that value."""

    def parser(self) -> Parser:
        """Parser of the words after the command's name."""
        return Parser(self.name, self.options, description=self.description, epilog=self.epilog, usage=self.usage)

    def parse(self, words: Sequence[str]) -> ParsedCommand:
        """Parses the words after the command's name; on a mistake argparse exits with status 2 and one line."""
        parser = self.parser()
        options = self.checked(parser, self.options.parsed(parser, words))
        return ParsedCommand(self.run, options, self.needs(options))


FIRST_COMMAND: Final = "host/measure.py --db leveldb --device rpi4 --simulate"
_OF_RECORDS: Final = ("record", "import", "report", "verify", "compare", "view")
_OF_RIGS: Final = ("init", "doctor", "restore", "sudoers", "virtual-board", "commission", "calibrate", "twin")
MODULES: Final = {
    **dict.fromkeys(_OF_RIGS, "rig_commands"),
    **dict.fromkeys(_OF_RECORDS, "record_commands"),
    **dict.fromkeys(("studies", "databases"), "databases"),
    **dict.fromkeys(("command", "again"), "measure.options"),
    "runs": "runs.options",
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
    return importlib.import_module(f"opjoule.cli.{name}")


def parse(argv: list[str]) -> ParsedCommand:
    """Parses one command line; on a mistake argparse exits with status 2 and one line."""
    if argv == ["help"]:
        argv = ["--help"]
    word = argv[0] if argv else ""
    if word == "compare" and measures_commands(argv[1:]):
        command: Command = _module("campaign.compared_commands").COMPARE_COMMANDS
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
