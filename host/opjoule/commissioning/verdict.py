"""What a step of the commissioning says: its figures against their limits, and what to do about those beyond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class StepOutcome(StrEnum):
    """How a step ended."""

    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class CheckedFigure:
    """One figure of a step and the limit that it is held against, in words."""

    value: float
    unit: str
    limit: str = ""


@dataclass(frozen=True)
class Defect:
    """Something that is not as it should be, and what to do about it."""

    words: str
    advice: str


class Defects(list[Defect]):
    """What a step finds wrong."""

    def add(self, words: str, advice: str) -> None:
        """Notes one defect."""
        self.append(Defect(words, advice))


@dataclass(frozen=True)
class Picture:
    """Points that a step's drawing shows, shape (n,) each, with a straight line through them where there is one."""

    x: Sequence[float]
    y: Sequence[float]
    x_words: str
    y_words: str
    gain: float | None = None
    offset: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What one step says."""

    outcome: StepOutcome
    words: str
    """One line: what was found."""
    advice: str = ""
    """What to do; empty where nothing is."""
    figures: Mapping[str, CheckedFigure] = field(default_factory=dict)
    picture: Picture | None = None

    @classmethod
    def of(
        cls,
        words: str,
        faults: Sequence[Defect],
        figures: Mapping[str, CheckedFigure],
        picture: Picture | None = None,
        *,
        broken: StepOutcome = StepOutcome.FAILED,
    ) -> Verdict:
        """Passed without a fault; else the faults' words before what was found.

        Args:
            broken: the outcome with a fault.
        """
        if not faults:
            return cls(StepOutcome.PASSED, words, "", figures, picture)
        said = "; ".join([*(fault.words for fault in faults), words])
        advice = "; ".join(dict.fromkeys(fault.advice for fault in faults if fault.advice))
        return cls(broken, said, advice, figures, picture)

    @classmethod
    def failed(cls, words: str, advice: str) -> Verdict:
        """A step that could not be carried out."""
        return cls(StepOutcome.FAILED, words, advice)

    @classmethod
    def skipped(cls, why: str) -> Verdict:
        """A step that was left out, and why."""
        return cls(StepOutcome.SKIPPED, why)
