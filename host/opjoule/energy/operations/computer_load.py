"""Load of the computer behind a simulated board, from raw/computer.csv: processor time of the rig and of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from opjoule.base.errors import RecordFault
from opjoule.energy.trace.power_trace import Float64Array, Int64Array

COMPUTER: Final = "computer.csv"
"""File in raw/."""
COLUMNS: Final = ("board_ns", "processors", "busy_s", "own_s")


@dataclass(frozen=True)
class ComputerLoad:
    """Processor time at moments of the simulated board's clock, which is the computer's; each array of shape (n,)."""

    board_ns: Int64Array
    processors: Float64Array
    """Number of processors at work."""
    busy_s: Float64Array
    """Time of all processors together that was not idle, cumulative; time taken by other virtual machines counts."""
    own_s: Float64Array
    """Part of it of the simulated rig, the programs on its board, and the kernel's threads, cumulative."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the file; a last line that was cut off is left out. Raises: RecordFault: it has other contents."""
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            head, *rows = [line.split(",") for line in lines] or [[]]
            if tuple(head) != COLUMNS:
                raise ValueError("expected a header line")
            stamps = np.array([int(row[0]) for row in rows], np.int64)
            numbers = np.array([row[1:] for row in rows], np.float64).reshape(-1, len(COLUMNS) - 1)
        except (OSError, ValueError) as error:
            raise RecordFault(f"{path}: not samples of a computer's processors: {error}") from None
        return cls(stamps, *numbers.T)

    def others_share(self, start_board_ns: int, end_board_ns: int) -> float:
        """Mean share of the processors that other programs took in a stretch of time; 0 where it was not sampled."""
        if not self.board_ns.size:
            return 0.0
        first_ns, last_ns = self.board_ns[[0, -1]].tolist()
        start_ns, end_ns = max(start_board_ns, first_ns), min(end_board_ns, last_ns)
        lasts_s = float(end_ns - start_ns) * 1e-9
        if lasts_s <= 0.0:
            return 0.0
        since_s = (self.board_ns - start_ns) * 1e-9
        taken_s = np.diff(np.interp([0.0, lasts_s], since_s, self.busy_s - self.own_s))
        return max(float(taken_s[0]), 0.0) / (float(self.processors.mean()) * lasts_s)
