"""Questions to the person at the desk: answered at a terminal, or line by line by a script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from opjoule.errors import BadInput

STOP: Final = ("stop", "q", "quit")
SKIP: Final = "skip"
HOW: Final = "Enter goes on, 'skip WHY' leaves the step out, 'stop' ends here"


class Stopped(Exception):
    """The person, or the end of a script, has ended the procedure: what is finished stays."""


class Skipped(Exception):
    """The person leaves a step out; `str()` is why."""


def line_of_stdin(question: str) -> str | None:
    """An answer on stdin, which may be a file; None at its end."""
    print(question, end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    return answer.strip() if answer else None


def refusing(is_sound: Callable[[str], bool], words: str) -> Callable[[str], None]:
    """A check of answers, which raises BadInput for one that is not sound.

    Args:
        is_sound: may raise ValueError for a text that is no number.
        words: what such an answer is.
    """

    def check(answer: str) -> None:
        with suppress(ValueError):
            if is_sound(answer):
                return
        raise BadInput(f"'{answer}' is {words}")

    return check


@dataclass(frozen=True)
class DeskDialogue:
    """Asks one line at a time."""

    line: Callable[[str], str | None] = line_of_stdin
    """Gives the answer to a question; None once there is nobody any more."""

    def ready(self, words: str) -> None:
        """Has the person do something, and waits until it is done.

        Raises: Skipped, Stopped: the answer.
        """
        wrong = ""
        while True:
            answer = self._asked(f"{wrong}{words}\n  [{HOW}] ")
            if not answer:
                return
            word, _, why = answer.partition(" ")
            if word.lower() == SKIP and why.strip():
                raise Skipped(why.strip())
            wrong = (
                "  Say why, for example: skip no such resistor here\n"
                if word.lower() == SKIP
                else f"  '{answer}' is none of these.\n"
            )

    def text(self, question: str, check: Callable[[str], object], default: str = "") -> str:
        """An answer that passes a check; Enter gives the default.

        Args:
            check: raises BadInput for an answer that is none.
        Raises: Stopped.
        """
        shown = f" ({default})" if default else ""
        wrong = ""
        while True:
            answer = self._asked(f"{wrong}{question}{shown}: ") or default
            try:
                check(answer)
                return answer
            except BadInput as fault:
                wrong = f"  {fault}\n"

    def _asked(self, question: str) -> str:
        answer = self.line(question)
        if answer is None or answer.lower() in STOP:
            raise Stopped
        return answer


def say(line: str) -> None:
    """To the person at the desk."""
    print(line, file=sys.stderr, flush=True)
