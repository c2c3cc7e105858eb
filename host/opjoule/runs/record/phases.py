"""Phases of a measurement on the board clock, and the role of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

RUN: Final = "run"
"""Name of the phase of the work in every study."""
MIX: Final = "mix"
"""Name of the phase of a run in another mix of the operations."""
SIGNATURE: Final = "signature"
"""Name of the phase and of the files of the load signature."""


class Role(StrEnum):
    """Purpose of a phase; the energies follow from it (docs/method/energy.md)."""

    PREPARE = "prepare"
    """Prepares the work, for example its data; no figure depends on it."""
    BASELINE = "baseline"
    """Idle power, before and after the work."""
    WORK = "work"
    """The measured work, one phase a repeat. It may mark phases of its own inside."""
    MIX = "mix"
    """The same work in another mix of operations. It shows what each kind costs all told, and is in no other figure."""
    BLOCKS = "blocks"
    """In records of OpJoule 0.1: the same work in mix blocks, once. No figure depends on it."""
    READS = "reads"
    """In records of a development version: the operations that only read, on their own. No figure depends on it."""
    DRAIN = "drain"
    """Started work finishes: writes, background work, the medium's tail."""
    CONTROL = "control"
    """A run without the measured work, which shows the cost of measuring itself, or a signal for the clocks."""


WORKED: Final = (Role.WORK, Role.MIX, Role.BLOCKS)
"""Roles of the phases that contain the measured work."""


@dataclass(frozen=True)
class Phase:
    """One stretch of the measurement."""

    name: str
    repeat: int
    start_board_ns: int
    end_board_ns: int
    operations: int = 0
    lead_in_s: float = 0.0
    """Time at its start in which the board comes to rest [s]; left out of the phase's power."""
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
    """The phases from which the figures of one repeat are computed."""

    work: Phase
    drain: Phase | None
    """The drain after the work; None if nothing was waited for."""
    baselines: tuple[Phase, ...]

    @classmethod
    def of(cls, phases: Sequence[Phase], repeat: int) -> Cycle | None:
        """The cycle of one repeat; None if its work did not finish.

        Work that has no baseline of its own before it started in that of the repeat before.
        """
        of_repeat = [phase for phase in phases if phase.repeat == repeat]
        work = next((phase for phase in of_repeat if phase.role in WORKED), None)
        if work is None:
            return None
        after = of_repeat[of_repeat.index(work) :]
        drain = next((phase for phase in after if phase.role is Role.DRAIN), None)
        baselines = [phase for phase in of_repeat if phase.role is Role.BASELINE]
        if baselines and baselines[0].start_board_ns > work.start_board_ns:
            before = [phase for phase in phases if phase.role is Role.BASELINE and phase.repeat < repeat]
            baselines = [*before[-1:], *baselines]
        return cls(work, drain, tuple(baselines))


def worked_repeats(phases: Sequence[Phase], role: Role = Role.WORK) -> list[int]:
    """Numbers of the repeats, or of the runs of another role, whose work finished, in order."""
    return sorted({phase.repeat for phase in phases if phase.role is role})


def whole_repeats(phases: Sequence[Phase], traced_until_board_ns: int) -> list[Phase]:
    """The phases of an interrupted measurement, without those of an unfinished repeat.

    A repeat is finished if the trace contains the baseline after its work, or a later phase.
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
