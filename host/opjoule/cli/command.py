"""What a command of measure.py is: its options, what set-up does for it, and what runs. Standard library alone."""

from __future__ import annotations

import importlib
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from opjoule.cli.needs import Needs
from opjoule.cli.options import Options, Parser


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
    """Its words on the command line; empty for the main job, which has none."""
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
"""Environment variable with the descriptor's number."""


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
