"""The best systems that a study's paper prints for its cells: winners.csv in the study's folder.

It has the columns figure, measure, phase and system, and one for each axis of a figure's cells.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.base.scripts import STUDIES

WINNERS: Final = "winners.csv"
_COLUMNS: Final = ("figure", "measure", "phase", "system")


@dataclass(frozen=True)
class Winner:
    """The best system of one cell of a printed figure."""

    figure: str
    measure: str
    phase: str
    system: str
    cell: Mapping[str, str]
    """Axis -> value."""

    def is_of(self, measure: str, phase: str, cell: Mapping[str, str]) -> bool:
        """Whether the paper names this winner for a cell of ours; the cell may have axes that the paper lacks."""
        same = (self.measure, self.phase) == (measure, phase)
        return same and all(cell.get(axis) == value for axis, value in self.cell.items())


def winners(study: str, folder: Path = STUDIES) -> list[Winner]:
    """The printed winners of a study; empty if it has none."""
    path = folder / study / WINNERS
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            Winner(
                row["figure"],
                row["measure"],
                row["phase"],
                row["system"],
                {axis: value for axis, value in row.items() if axis not in _COLUMNS},
            )
            for row in csv.DictReader(lines)
        ]


def printed_words(printed: Iterable[Winner]) -> str:
    """Winners of one cell with their figures, as "4.2 sqlite"; figures with the same winner together."""
    figures: dict[str, list[str]] = {}
    for winner in printed:
        figures.setdefault(winner.system, []).append(winner.figure)
    return "; ".join(f"{', '.join(of)} {system}" for system, of in figures.items())
