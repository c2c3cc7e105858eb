"""Phases of a measurement on the board clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Phase:
    """One stretch of the measurement: load, idle, run, settle or harness."""

    name: str
    repeat: int
    start_board_ns: int
    end_board_ns: int
    operations: int = 0
    lead_in_s: float = 0.0
    """At its start, left out where the phase's power is taken: a board comes to rest first [s]."""

    @property
    def steady(self) -> Phase:
        """The phase without its lead-in."""
        return replace(self, start_board_ns=self.start_board_ns + round(self.lead_in_s * 1e9), lead_in_s=0.0)

    @property
    def duration_s(self) -> float:
        """Length [s]."""
        return (self.end_board_ns - self.start_board_ns) * 1e-9

    def to_json(self) -> dict[str, Any]:
        """As it stands in run.json."""
        return asdict(self)


def phase_from_json(entry: dict[str, Any]) -> Phase:
    """The phase that to_json() wrote."""
    return Phase(**entry)


def whole_repeats(phases: Sequence[Phase], traced_until_board_ns: int) -> list[Phase]:
    """The phases of an interrupted measurement without those of a repeat that did not come to its end.

    A repeat has come to its end when its idle-after, or whatever follows it, is in the trace.
    """
    traced = [phase for phase in phases if phase.end_board_ns <= traced_until_board_ns]
    if not traced:
        return []
    last = traced[-1]
    if last.name in ("idle-after", "harness"):
        return traced
    return [each for each in traced if each.repeat < last.repeat]


class PhaseMarks:
    """Collects the loader's `phase` lines and pairs them into phases."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[int, int]] = {}
        self.settled = False
        """The loader itself has seen to it that its engine is done and its writes are on the medium."""

    def add(self, line: dict[str, Any]) -> None:
        """Takes one JSON line of the loader; lines without a phase are left alone."""
        if "phase" in line:
            self._marks[str(line["phase"])] = (int(line["board_ns"]), int(line.get("operations", 0)))
            self.settled = bool(line.get("settled", self.settled))

    def phase(
        self, name: str, repeat: int, *, called: str | None = None, lead_in_s: float = 0.0
    ) -> Phase | None:
        """The phase between NAME-start and NAME-end, or None if either is missing."""
        start, end = self._marks.get(f"{name}-start"), self._marks.get(f"{name}-end")
        if start is None or end is None:
            return None
        return Phase(called or name, repeat, start[0], end[0], end[1], lead_in_s)


def of_name(phases: Iterable[Phase], name: str, repeat: int) -> list[Phase]:
    """All phases of one name in one repeat, in order."""
    return [phase for phase in phases if phase.name == name and phase.repeat == repeat]
