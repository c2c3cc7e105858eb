"""The power of a record in several resolutions, so that any stretch of it is drawn from a few thousand cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from opjoule.drawing.tracks import SampleParts, Track, grouped, joined, sampled_track

POWER: Final = "power_w"
FACTOR: Final = 4
COARSEST: Final = 2000
"""A level with this few cells has no level above it."""
FINEST: Final = 16
"""Samples in a cell of the finest level of a trace that is longer than WHOLE."""
WHOLE: Final = 1 << 16
HALF_NS: Final = 0.5e-9


@dataclass(frozen=True)
class Pyramid:
    """Levels of cells, each of a quarter of the cells of the one before, the finest first."""

    levels: Sequence[Track]
    """Each has POWER alone."""
    samples: Callable[[float, float], Track] | None = None
    """The cells of the samples in a stretch [s]; None where the finest level has a cell for each."""

    @classmethod
    def of(cls, samples: SampleParts, period_s: float) -> Pyramid:
        """The levels of a trace's power."""
        cells = samples.count if samples.count <= WHOLE else -(-samples.count // FINEST)
        return cls.above(sampled_track(samples, period_s, cells))

    @classmethod
    def above(cls, track: Track) -> Pyramid:
        """The levels above one."""
        levels = [track]
        while len(levels[-1]) > COARSEST:
            levels.append(grouped(levels[-1], FACTOR))
        return cls(levels)

    def view(self, start_s: float, end_s: float, columns: int) -> Track:
        """At most about `columns` cells that cover a stretch."""
        # Time stamps are no finer; a cell that only touches the stretch is outside.
        start_s, end_s = start_s + HALF_NS, end_s - HALF_NS
        cells = self.levels[0].inside(start_s, end_s)
        if self.samples and len(cells) < columns:
            cells = self.samples(start_s, end_s)
        else:
            for level in self.levels[1:]:
                coarser = level.inside(start_s, end_s)
                if len(cells) <= columns or len(coarser) < columns:
                    break
                cells = coarser
        return joined(cells, max(columns, 1))
