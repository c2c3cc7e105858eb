"""Where the phase of a workload begins and ends: by the lines it prints, or by the probe's marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from opjoule.operations.board_files import PhaseMark


class Bounds(NamedTuple):
    """Limits of one workload's phase."""

    start_board_ns: int
    end_board_ns: int
    operations: int = 0


class PrintedMarks:
    """Collects the `phase` lines that a workload prints."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[int, int]] = {}
        self.settled = False
        """The workload itself has seen to it that its engine is done and its writes are on the medium."""

    def add(self, line: Mapping[str, Any]) -> None:
        """Takes one JSON line; lines without a phase are left alone."""
        if "phase" in line and "board_ns" in line:
            self._marks[str(line["phase"])] = (int(line["board_ns"]), int(line.get("operations", 0)))
            self.settled = bool(line.get("settled", self.settled))

    def between(self, start: str, end: str) -> Bounds | None:
        """The stretch between two of them, or None if either is missing."""
        first, last = self._marks.get(start), self._marks.get(end)
        return Bounds(first[0], last[0], last[1]) if first and last else None


def process_bounds(marks: Iterable[PhaseMark], name: str) -> Bounds | None:
    """The stretch from the first begin to the last end of one name; None if either is missing."""
    of_this_name = [mark for mark in marks if mark.name == name]
    begins = [mark.board_ns for mark in of_this_name if mark.begins]
    ends = [mark.board_ns for mark in of_this_name if not mark.begins]
    return Bounds(begins[0], ends[-1]) if begins and ends else None
