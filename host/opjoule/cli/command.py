"""A command of measure.py: its options, the set-up it needs and the function that runs."""

import importlib
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from opjoule.base.errors import OpJouleError
from opjoule.base.toml_file import read_toml
from opjoule.boards.databases import is_server
from opjoule.boards.profiles import find_profile
from opjoule.boards.programs.binaries import ARCHITECTURES
from opjoule.cli.needs import Needs
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
