"""A command of measure.py: its options, the set-up it needs and the function that runs. Standard library only."""

import importlib
import os
import pickle
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from opjoule.base.errors import OpJouleError
from opjoule.base.toml_file import read_toml
from opjoule.boards.databases.registry import is_server
from opjoule.boards.profiles import find_profile
from opjoule.boards.programs.binaries import ARCHITECTURES
from opjoule.cli.options import Options, Parser


@dataclass(frozen=True)
class Needs:
    """What set-up has to do for a command."""

    loader: bool = False
    """Loader and probe, for this computer."""
    engines: frozenset[str] = frozenset()
    """Databases that a loader contains or connects to; the other engines are not built."""
    simulate: bool = False
    """The simulated rig: simulator and firmware."""
    test: bool = False
    ycsb: bool = False
    virtual: bool = False
    """The programs that build the virtual board."""
    board: str = ""
    """Architecture of a board whose loader is built here (aarch64, armhf, amd64), or empty."""
    figures: bool = False
    """The libraries that draw figures for print."""
    fleet: bool = False
    """The libraries that connect several rigs."""
    packages: tuple[str, ...] = ()
    """Further system packages, for a study's databases."""

    @property
    def sections(self) -> list[str]:
        """The sections of host/packages.txt, without those of engines."""
        wanted = {
            "host": True,
            "loader": self.loader or self.simulate,
            "rig": self.simulate,
            "test": self.test,
            "virtual": self.virtual or self.test,
            "ycsb": self.ycsb,
        }
        return [section for section, needed in wanted.items() if needed]

    @property
    def pins(self) -> str:
        """Name of the file in host/requirements that pins the Python packages."""
        return "test" if self.test else "figures" if self.figures else "fleet" if self.fleet else "measure"


def board_architecture(device: str | None, rig: Path, *, simulated: bool, database: str | None = None) -> str:
    """Architecture of the board to measure; empty if this computer's own loader is enough.

    The standard library reads rig.toml here. A mistake in it or on the command line gives an empty text; the command
    itself reports the mistake later.

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
    """A parsed command line. Set-up passes it to the environment's Python."""

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
    """`module:function` that takes what `checked` returns; a name, since importing it needs the Python environment."""
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


DESCRIPTOR: Final = "OPJOULE_COMMAND_FD"


def hand_over(command: ParsedCommand) -> None:
    """Keeps a parsed command for the program that this process becomes by exec: the environment's Python.

    The command is kept in a memory file whose descriptor stays open across the exec.
    """
    descriptor = os.memfd_create("opjoule-command", 0)  # 0: stays open across exec
    with os.fdopen(os.dup(descriptor), "wb") as memory:
        pickle.dump(command, memory)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.environ[DESCRIPTOR] = str(descriptor)


def handed_over() -> ParsedCommand | None:
    """The command that hand_over() kept; None if there is none."""
    number = os.environ.pop(DESCRIPTOR, "")
    if not number:
        return None
    with os.fdopen(int(number), "rb") as memory:
        command = pickle.load(memory)
    assert isinstance(command, ParsedCommand)
    return command
