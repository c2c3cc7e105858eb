"""Phases of a measurement on the board clock, and what each is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

RUN: Final = "run"
"""Name of the phase that every study gives to its work."""
SIGNATURE: Final = "signature"
"""Phase and files of the load signature."""


class Role(StrEnum):
    """Purpose of a phase; the energies follow from it (docs/method/energy.md)."""

    PREPARE = "prepare"
    """Makes what the work needs; no figure rests on it."""
    BASELINE = "baseline"
    """Idle power, before and after the work."""
    WORK = "work"
    """The measured work, one phase a repeat. It may mark phases of its own inside."""
    BLOCKS = "blocks"
    """The same work in randomised blocks, once. Only the power of the kinds of operation may rest on it."""
    DRAIN = "drain"
    """Begun work finishes: writes, background work, the medium's tail."""
    CONTROL = "control"
    """A run without the measured work, or a signal for the clocks: it shows what the measuring itself costs."""


WORKED: Final = (Role.WORK, Role.BLOCKS)
"""Roles of the phases that do what is measured."""


@dataclass(frozen=True)
class Phase:
    """One stretch of the measurement."""

    name: str
    repeat: int
    start_board_ns: int
    end_board_ns: int
    operations: int = 0
    lead_in_s: float = 0.0
    """At its start, left out where the phase's power is taken: a board comes to rest first [s]."""
    role: Role = field(kw_only=True)

    @property
    def steady(self) -> Phase:
        """The phase without its lead-in."""
        return replace(self, start_board_ns=self.start_board_ns + round(self.lead_in_s * 1e9), lead_in_s=0.0)

    @property
    def duration_s(self) -> float:
        """Length [s]."""
        return (self.end_board_ns - self.start_board_ns) * 1e-9


@dataclass(frozen=True)
class Cycle:
    """The phases that the figures of one repeat rest on."""

    work: Phase
    drain: Phase | None
    """The drain after the work; None if nothing was waited for."""
    baselines: tuple[Phase, ...]

    @classmethod
    def of(cls, phases: Sequence[Phase], repeat: int) -> Cycle | None:
        """The cycle of one repeat; None if its work did not finish."""
        of_repeat = [phase for phase in phases if phase.repeat == repeat]
        work = next((phase for phase in of_repeat if phase.role in WORKED), None)
        if work is None:
            return None
        after = of_repeat[of_repeat.index(work) :]
        drain = next((phase for phase in after if phase.role is Role.DRAIN), None)
        return cls(work, drain, tuple(phase for phase in of_repeat if phase.role is Role.BASELINE))


def worked_repeats(phases: Sequence[Phase]) -> list[int]:
    """Numbers of the repeats whose work finished, in order."""
    return sorted({phase.repeat for phase in phases if phase.role is Role.WORK})


def blocks_repeat(phases: Sequence[Phase]) -> int | None:
    """Number under which the work in randomised blocks stands; None where there was none."""
    return next((phase.repeat for phase in phases if phase.role is Role.BLOCKS), None)


def whole_repeats(phases: Sequence[Phase], traced_until_board_ns: int) -> list[Phase]:
    """The phases of an interrupted measurement, without those of an unfinished repeat.

    A repeat has come to its end when the baseline after its work, or whatever follows that, is in the trace.
    """
    traced = [phase for phase in phases if phase.end_board_ns <= traced_until_board_ns]
    if not traced:
        return []
    last = traced[-1]
    of_repeat = [phase for phase in traced if phase.repeat == last.repeat]
    has_worked = any(phase.role in WORKED for phase in of_repeat)
    if last.role is Role.CONTROL or (last.role is Role.BASELINE and has_worked):
        return traced
    return [phase for phase in traced if phase.repeat < last.repeat]
