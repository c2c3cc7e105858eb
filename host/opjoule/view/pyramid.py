"""The power of a record in several resolutions, so that any stretch of it is drawn from a few thousand cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.energy.cells import Cells
from opjoule.trace.power_trace import BoolArray, Float64Array, Int64Array

FACTOR: Final = 4
COARSEST: Final = 2000
"""A level of so few cells has no further level above it."""
LONG: Final = 1.5
"""A stretch without a value that is longer than so many cells stays a cell of its own: nothing is drawn across it."""


@dataclass(frozen=True)
class Level:
    """Neighbouring cells with their power; NaN where nothing is known of it."""

    bounds_ns: Int64Array
    """On the meter's clock, rising, shape (n + 1,)."""
    mean_w: Float64Array
    """Over the part of the cell that is known, shape (n,)."""
    least_w: Float64Array
    greatest_w: Float64Array

    def __len__(self) -> int:
        return int(self.mean_w.size)

    def inside(self, start_ns: int, end_ns: int) -> Level:
        """The cells that a stretch touches."""
        first = max(int(np.searchsorted(self.bounds_ns, start_ns, side="right")) - 1, 0)
        last = min(int(np.searchsorted(self.bounds_ns, end_ns, side="left")), len(self))
        some = slice(first, max(last, first))
        return Level(
            self.bounds_ns[first : some.stop + 1],
            self.mean_w[some],
            self.least_w[some],
            self.greatest_w[some],
        )

    def joined(self, group: int) -> Level:
        """Each `group` neighbours as one cell: least of the least, greatest of the greatest, mean over time."""
        if group <= 1 or len(self) <= 1:
            return self
        width_s = np.diff(self.bounds_ns) * 1e-9
        unknown = np.isnan(self.mean_w)
        first = _starts(unknown, width_s, group)
        known_s = np.add.reduceat(np.where(unknown, 0.0, width_s), first)
        with np.errstate(invalid="ignore"):
            mean_w = np.add.reduceat(np.where(unknown, 0.0, self.mean_w * width_s), first) / known_s
        return Level(
            np.append(self.bounds_ns[first], self.bounds_ns[-1]),
            mean_w,
            np.fmin.reduceat(self.least_w, first),
            np.fmax.reduceat(self.greatest_w, first),
        )


def _starts(unknown: BoolArray, width_s: Float64Array, group: int) -> npt.NDArray[np.intp]:
    """Index of the first cell of each group."""
    regular = np.arange(0, width_s.size, group)
    if not unknown.any():
        return regular
    alone = np.flatnonzero(unknown & (width_s > LONG * float(np.median(width_s))))
    starts = np.unique(np.concatenate((regular, alone, alone + 1)))
    return starts[starts < width_s.size]


@dataclass(frozen=True)
class Pyramid:
    """Levels from single samples upwards, each of a quarter of the cells of the one before."""

    levels: Sequence[Level]

    @classmethod
    def of(cls, cells: Cells) -> Pyramid:
        """The levels above the cells that energies are integrated over; lost stretches are NaN."""
        power_w = cells.current_a * cells.voltage_v
        power_w[cells.lost_cells(slice(None))] = np.nan
        return cls.above(Level(cells.bounds_ns, power_w, power_w, power_w))

    @classmethod
    def above(cls, level: Level) -> Pyramid:
        """The levels above one."""
        levels = [level]
        while len(levels[-1]) > COARSEST:
            levels.append(levels[-1].joined(FACTOR))
        return cls(levels)

    def view(self, start_ns: int, end_ns: int, columns: int) -> tuple[Level, bool]:
        """At most about `columns` cells that cover a stretch, and whether each of them is a single sample."""
        found, single = self.levels[0].inside(start_ns, end_ns), True
        for level in self.levels[1:]:
            coarser = level.inside(start_ns, end_ns)
            if len(found) <= columns or len(coarser) < columns:
                break
            found, single = coarser, False
        group = -(-len(found) // max(columns, 1))
        return found.joined(group), single and group <= 1
