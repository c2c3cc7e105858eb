"""The phases of a record while it grows, placed on the meter's clock.

The notes of the progress say which phase is being done, but not where it begins in the trace: samples arrive late, and
a workload takes its time to start. A phase is placed once the board has said when it began, by the round trips between
host, board and meter so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, fit_exchanges, read_exchanges
from opjoule.drawing.stretches import phase_kind
from opjoule.errors import OpJouleError
from opjoule.record.phases import Phase
from opjoule.record.run_record import RunRecord
from opjoule.view.growing import GrowingNotes

SETTLE: Final = "settle"
_REPEAT: Final = re.compile(r"\((\d+) of \d+\)")
"""In a phase's title on the terminal: "run (1 of 3)"."""


@dataclass(frozen=True)
class PlacedPhase:
    """A phase on the meter's clock."""

    name: str
    repeat: int
    start_ns: int
    """[meter_ns]"""
    end_ns: int | None
    """[meter_ns]; None while it goes on."""

    @property
    def kind(self) -> str:
        """What its colour stands for."""
        return phase_kind(self.name)


class GrowingPhases:
    """Keeps up with run.json and the round trips of one record."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._mark: tuple[int, int] = (0, 0)
        self._phases: tuple[Phase, ...] = ()
        self._placed: tuple[tuple[object, ...], list[PlacedPhase]] = ((), [])
        self.simulated = False
        self.late_ns = 0
        """So much before the meter's clock notes of the progress are: the newest sample then was older than they."""

    def known(self, notes: GrowingNotes) -> list[PlacedPhase]:
        """The phases that have ended, and the one that goes on once its beginning is known; none without a board."""
        self._look()
        reached = tuple(notes.reached)
        title = notes.phases[-1][1] if notes.phases else ""
        about = (self._mark, title, reached)
        if about != self._placed[0] or not self._placed[1]:
            self._placed = about, list(self._place(title, reached))
        return self._placed[1]

    def _look(self) -> None:
        try:
            stat = (self._directory / "run.json").stat()
            if (mark := (stat.st_mtime_ns, stat.st_ino)) != self._mark:
                run = RunRecord.open(self._directory).run
                self._mark, self._phases, self.simulated = mark, run.phases, run.simulated
        except (OpJouleError, OSError):
            return  # not begun yet

    def _place(self, title: str, reached: tuple[tuple[int, int], ...]) -> Iterator[PlacedPhase]:
        if not (self._phases or reached) or (to_meter := self._map()) is None:
            return
        for phase in self._phases:
            ends_ns = to_meter.to_target(phase.start_board_ns), to_meter.to_target(phase.end_board_ns)
            yield PlacedPhase(phase.name, phase.repeat, *ends_ns)
        if not reached:
            return
        name, (noted_ns, began_board_ns) = title.split(" (", maxsplit=1)[0].strip(), reached[0]
        start_ns = to_meter.to_target(began_board_ns)
        if name != SETTLE:  # which begins with the end of what is before it, noted later
            self.late_ns = start_ns - noted_ns
        if not any(phase.start_board_ns == began_board_ns for phase in self._phases):
            end_ns = to_meter.to_target(reached[1][1]) if len(reached) > 1 else None
            numbered = _REPEAT.search(title)
            last = self._phases[-1].repeat if self._phases else 1
            yield PlacedPhase(name, int(numbered[1]) if numbered else last, start_ns, end_ns)

    def _map(self) -> ClockMap | None:
        """From the board's clock to the meter's; None before there are enough round trips."""
        raw = self._directory / "raw"
        try:
            to_host = fit_exchanges(read_exchanges(raw / BOARD_EXCHANGES), "host", "board").inverse()
            return to_host.then(fit_exchanges(read_exchanges(raw / METER_EXCHANGES), "host", "meter"))
        except (OpJouleError, OSError):
            return None
