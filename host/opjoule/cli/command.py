"""What a command of measure.py is: its options, what set-up does for it, and what runs. Standard library alone."""

from __future__ import annotations

import importlib
import os
import pickle
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from opjoule.cli.options import Options, Parser
from opjoule.databases.registry import is_server
from opjoule.devices.profiles import find_profile
from opjoule.devices.programs.binaries import ARCHITECTURES
from opjoule.errors import OpJouleError
from opjoule.toml_file import read_toml


@dataclass(frozen=True)
class Needs:
    """What set-up has to do for a command."""

    loader: bool = False
    simulate: bool = False
    """The simulated rig: simulator and firmware."""
    test: bool = False
    ycsb: bool = False
    virtual: bool = False
    """What the virtual board is built with."""
    board: str = ""
    """Architecture of a board whose loader is built here (aarch64, armhf, amd64), or none."""
    figures: bool = False
    """What figures for print are drawn with."""
    fleet: bool = False
    """What several rigs are reached with."""
    packages: tuple[str, ...] = ()
    """Further packages of the system, for a study's databases."""

    @property
    def sections(self) -> list[str]:
        """The sections of host/packages.txt."""
        virtual = ["virtual"] if self.virtual or self.test else []
        return ["measure", *(["test"] if self.test else []), *virtual, *(["ycsb"] if self.ycsb else [])]


def board_architecture(device: str | None, rig: Path, *, simulated: bool, database: str | None = None) -> str:
    """Architecture of the board to measure; empty where this computer's own loader does.

    A mistake on the command line or in rig.toml, which is read by the standard library here, gives an empty text: the
    command itself reports it later.

    Args:
        device: None: the only board of the rig.
        database: that the loader connects to or has inside; None: there is none.
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
    """A command line, parsed: a value that goes from set-up to the environment's Python."""

    run: str
    """`module:function` that takes the options."""
    options: Any
    needs: Needs

    def loaded(self) -> Callable[[], int]:
        """The command, ready to run; loads what it needs."""
        module, _, function = self.run.partition(":")
        return partial(getattr(importlib.import_module(module), function), self.options)


@dataclass(frozen=True)
class Command:
    """One command."""

    name: str
    """The command's words on the command line; empty for the main job, which has none."""
    options: type[Options]
    run: str
    """`module:function` that takes what `checked` gives; a name, since loading it takes the Python environment."""
    description: str
    epilog: str = ""
    usage: str | None = None
    checked: Callable[[Parser, Any], Any] = lambda parser, options: options
    """Makes the value that runs of the options; ends the program, by parser.error(), where they do not go together."""
    needs: Callable[[Any], Needs] = lambda options: Needs()
    """What set-up does for that value."""

    def parser(self) -> Parser:
        """Parser of the words behind the command."""
        return Parser(
            self.name, self.options, description=self.description, epilog=self.epilog, usage=self.usage
        )

    def parse(self, words: Sequence[str]) -> ParsedCommand:
        """Parses the words behind the command; argparse exits with status 2 and one line on a mistake."""
        parser = self.parser()
        options = self.checked(parser, self.options.parsed(parser, words))
        return ParsedCommand(self.run, options, self.needs(options))


DESCRIPTOR: Final = "OPJOULE_COMMAND_FD"


def hand_over(command: ParsedCommand) -> None:
    """Keeps a parsed command for the program that this process becomes (exec): the environment's Python.

    It lies in memory of this process, which that Python finds by a descriptor that stays open.
    """
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
