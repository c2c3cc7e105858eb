"""Sentences of advice in messages, and functions that follow them.

A case is a function of the advice. With None it provokes the complaint; with the match of the advice it does what the
sentence says. It returns the messages of the program. Its action comes from the match, so a sentence that names another
option, or one that does not help, fails its test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Carried = Callable[["re.Match[str] | None"], str]


@dataclass(frozen=True)
class Case:
    """One complaint with its advice, both as patterns."""

    name: str
    complaint: str
    advice: str
    carry_out: Callable[..., str]


class Cases:
    """All cases of one test file."""

    def __init__(self) -> None:
        self.all: list[Case] = []

    def advice(self, complaint: str, advice: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
        """Adds a function as a case; both arguments are patterns."""

        def add(carry_out: Callable[..., str]) -> Callable[..., str]:
            self.all.append(Case(carry_out.__name__, complaint, advice, carry_out))
            return carry_out

        return add


def check(case: Case, say: Carried) -> None:
    """Checks that the complaint comes with its advice, and that it is gone once the advice is followed."""
    before = say(None)
    assert re.search(case.complaint, before), before
    advice = re.search(case.advice, before)
    assert advice, before
    after = say(advice)
    assert not re.search(case.complaint, after), after
