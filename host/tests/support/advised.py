"""A sentence of advice and how a test does as it says.

A case is a function of what was advised: with None it brings about the complaint, with the match of the advice it does
as the sentence says, and it returns what is said then. What it does comes from the match, so that a sentence that names
another option, or one that does not help, fails its test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Carried = Callable[["re.Match[str] | None"], str]


@dataclass(frozen=True)
class Case:
    """One sentence."""

    name: str
    complaint: str
    advice: str
    carry_out: Callable[..., str]


class Cases:
    """All sentences of one test file."""

    def __init__(self) -> None:
        self.all: list[Case] = []

    def advice(self, complaint: str, advice: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
        """Adds a function as a case; both arguments are patterns."""

        def add(carry_out: Callable[..., str]) -> Callable[..., str]:
            self.all.append(Case(carry_out.__name__, complaint, advice, carry_out))
            return carry_out

        return add


def check(case: Case, say: Carried) -> None:
    """The complaint is made, its sentence names what to do, and once that is done the complaint is gone."""
    before = say(None)
    assert re.search(case.complaint, before), before
    advice = re.search(case.advice, before)
    assert advice, before
    after = say(advice)
    assert not re.search(case.complaint, after), after
