"""Do the systems of a study answer the same?"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final, Protocol

_CLOSE: Final = 1e-6
"""Relative difference of two numbers that systems sum in different order."""


class AnsweredPhase(Protocol):
    """What is needed of a row."""

    @property
    def phase(self) -> str:
        """Its phase."""

    @property
    def system(self) -> str:
        """Who answered."""

    @property
    def place(self) -> tuple[tuple[str, str], ...]:
        """Its cell without the system."""

    @property
    def answer(self) -> Any:
        """None where it tells none."""

    @property
    def not_supported(self) -> str:
        """Empty where it is supported."""


def disagreements(rows: Sequence[AnsweredPhase]) -> list[str]:
    """Where systems answered the same phase on the same data differently; a line each."""
    answers: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if row.answer is not None and not row.not_supported:
            answers.setdefault((row.place, row.phase), {}).setdefault(row.system, row.answer)
    lines = []
    for (place, phase), found in answers.items():
        (first, expected), *others = found.items()
        for system, answer in others:
            if not agree(expected, answer):
                where = ", ".join(f"{axis} {value}" for axis, value in place)
                lines.append(
                    f"phase {phase} ({where}): {system} answers {_short(answer)}, {first} {_short(expected)}"
                )
    return lines


def agree(one: Any, other: Any) -> bool:
    """Are two answers the same, but for the rounding of numbers?"""
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if numbers and not isinstance(one, bool):
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(agree(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(agree(one[key], other[key]) for key in one)
    return bool(one == other)


def _short(answer: Any) -> str:
    text = json.dumps(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."
