"""The terminal that a program prints to, and its questions to the person at the keyboard, answered by one line each.

The answers may come from a file or a script.
"""

import os
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.measure import Measurement

if TYPE_CHECKING:
    from rich.table import Table
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO, TypeVar

from opjoule.base.errors import BadInput

_WIDEST: Final = 1000


def terminal(**more: Any) -> Console:
    """Console on stdout; text is printed as it is. With NO_COLOR it gets no escape codes. Source: no-color.org."""
    plain = False if os.environ.get("NO_COLOR") else None
    return Console(highlight=False, markup=False, force_terminal=plain, **more)


def print_unbroken(console: Console, table: "Table") -> None:
    """Prints a table in its own width, its names and values on one line; a narrower terminal wraps its lines."""
    usual = console.width
    wanted = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
    console.width = max(wanted, usual)
    console.print(table)
    console.width = usual


T = TypeVar("T")


class Stopped(Exception):
    """Raised when the person, or the end of the input, ends the questions."""


def line_of_stdin(question: str, shown_on: TextIO | None = None) -> str | None:
    """Asks a question, by default on stderr, and reads the answer from stdin, which may be a file; None at its end."""
    print(question, end="", file=shown_on or sys.stderr, flush=True)
    answer = sys.stdin.readline()
    return answer.strip() if answer else None


def say(line: str) -> None:
    """Prints a line for the person at the keyboard."""
    print(line, file=sys.stderr, flush=True)


def refusing(is_sound: Callable[[str], bool], words: str) -> Callable[[str], None]:
    """A check that raises BadInput for an invalid answer.

    Args:
        is_sound: whether an answer is valid; may raise ValueError if it is not a number.
        words: description of an invalid answer, for the message.
    """

    def check(answer: str) -> None:
        with suppress(ValueError):
            if is_sound(answer):
                return
        raise BadInput(f"'{answer}' is {words}")

    return check


@dataclass(frozen=True)
class Prompts:
    """Asks questions; an invalid answer is refused with its reason, and the question comes again."""

    line: Callable[[str], str | None] = line_of_stdin
    """Returns the answer to a question; None once nobody answers any more."""
    stops: tuple[str, ...] = ()
    """Answers that end the questions."""

    def answer(self, question: str) -> str:
        """The answer to a question. Raises: Stopped."""
        answer = self.line(question)
        if answer is None or answer.lower() in self.stops:
            raise Stopped
        return answer

    def value(self, question: str, read: Callable[[str], T], default: str = "") -> T:
        """Asks until an answer can be read; Enter gives the default.

        Args:
            read: makes the value from the answer; raises BadInput for an invalid one.
        Raises: Stopped.
        """
        shown = f" ({default})" if default else ""
        wrong = ""
        while True:
            try:
                return read(self.answer(f"{wrong}{question}{shown}: ") or default)
            except BadInput as fault:
                wrong = f"  {fault}\n"

    def text(self, question: str, check: Callable[[str], object], default: str = "") -> str:
        """Asks until an answer passes a check, which raises BadInput; Enter gives the default. Raises: Stopped."""

        def read(answer: str) -> str:
            check(answer)
            return answer

        return self.value(question, read, default)
