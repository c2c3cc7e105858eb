"""What a command of measure.py is: its options, what set-up does for it, and what runs. Standard library alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
