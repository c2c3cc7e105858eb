"""Exact energy of each part of the simulated board over time, on the board's clock."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from opjoule.energy.operations.operation_table import ACTIVITIES, LOADER_KINDS
from opjoule.energy.trace.power_trace import Float64Array

COURSE: Final = "simulator-course.csv"
"""File of the record: true energy over time."""
PARTS: Final = "simulator-parts.csv"
"""File of the record: true energy over time by kind of operation and by activity."""
WRITE_BACK: Final = "write_back"
TAIL: Final = "tail"
READING: Final = "reading"
"""Part: the medium while it is being read."""
OTHER: Final = "other"
"""Part: the processor while no operation and no activity is known to be running."""
NAMES: Final = (*LOADER_KINDS, *ACTIVITIES, WRITE_BACK, TAIL, READING, OTHER)
ROW_NS: Final = 100_000_000
"""Time between two rows of the file; there is an additional row where work begins."""


class PartCourseWriter:
    """Sums each part's energy above idle and writes it at intervals, so that the file grows with time alone."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")
        self._file.write(",".join(("board_ns", *NAMES)) + "\n")
        self._drawn_j = np.zeros(len(NAMES))
        self._written_ns = self._end_ns = 0
        self._were_at_work = {"operations": False, "anything": False}

    def add(self, edge_ns: np.ndarray, energy_j: Mapping[str, Float64Array]) -> None:
        """Adds energies between edges, which continue those of the last call, by part; parts without any are absent."""
        if not self._written_ns:
            self._row(int(edge_ns[0]), {}, 0)
        for whose, were in self._were_at_work.items():
            names = energy_j if whose == "anything" else energy_j.keys() & set(LOADER_KINDS)
            drawn = [energy_j[name] for name in names]
            at_work = np.flatnonzero(sum(drawn, np.zeros(edge_ns.size - 1)))
            if at_work.size and not were:
                self._row(int(edge_ns[at_work[0]]), energy_j, int(at_work[0]))
            self._were_at_work[whose] = bool(at_work.size)
        for name, step_j in energy_j.items():
            self._drawn_j[NAMES.index(name)] += float(step_j.sum())
        self._end_ns = int(edge_ns[-1])
        if self._end_ns - self._written_ns >= ROW_NS:
            self._row(self._end_ns, {}, 0)

    def _row(self, board_ns: int, energy_j: Mapping[str, Float64Array], steps: int) -> None:
        """Writes the energies up to a moment, including the first steps of the next call."""
        if board_ns <= self._written_ns:
            return
        until_j = self._drawn_j.copy()
        for name, step_j in energy_j.items():
            until_j[NAMES.index(name)] += float(step_j[:steps].sum())
        cells = [f"{drawn_j:.9g}" for drawn_j in until_j.tolist()]
        self._file.write(",".join([str(board_ns), *cells]) + "\n")
        self._written_ns = board_ns

    def close(self) -> None:
        """Writes the energy since the last row, and closes the file."""
        self._row(self._end_ns, {}, 0)
        self._file.close()


@dataclass(frozen=True)
class PartCourse:
    """Cumulative energy of each part, or of the whole, at moments of the board's clock."""

    board_ns: np.ndarray
    """shape (n,), increasing"""
    energy_j: Mapping[str, Float64Array]
    """shape (n,) each"""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the simulator's file in a record: board_ns, then one column per part."""
        with path.open(encoding="utf-8") as file:
            header, *rows = list(csv.reader(file))
        cells = np.array(rows, np.float64)
        times = np.array([int(row[0]) for row in rows], np.int64)
        return cls(times, {name: cells[:, at] for at, name in enumerate(header) if at})

    def between(self, start_ns: int, end_ns: int) -> dict[str, float]:
        """Energy [J] of each part between two times."""
        moments_s = np.array([start_ns - self.board_ns[0], end_ns - self.board_ns[0]]) * 1e-9
        rows_s = (self.board_ns - self.board_ns[0]) * 1e-9
        return {
            name: float(np.diff(np.interp(moments_s, rows_s, drawn_j))[0]) for name, drawn_j in self.energy_j.items()
        }
