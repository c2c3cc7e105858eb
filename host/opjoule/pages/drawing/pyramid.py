"""The power of a record in several resolutions, so that any stretch can be drawn from a few thousand cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from opjoule.results.tracks import SampleParts, Track, grouped, joined, sampled_track

POWER: Final = "power_w"
FACTOR: Final = 4
COARSEST: Final = 2000
"""Number of cells below which a level has no level above it."""
FINEST: Final = 16
"""Number of samples in a cell of the finest level of a trace longer than WHOLE."""
WHOLE: Final = 1 << 16
HALF_NS: Final = 0.5e-9


@dataclass(frozen=True)
class Pyramid:
    """Levels of cells, finest first; each level has a quarter of the previous level's cells."""

    levels: Sequence[Track]
    """Levels, which contain only POWER."""
    samples: Callable[[float, float], Track] | None = None
    """Function that returns the cells of the samples in a stretch [s]; None if the finest level has them."""

    @classmethod
    def of(cls, samples: SampleParts, period_s: float) -> Self:
        """The levels of a trace's power."""
        cells = samples.count if samples.count <= WHOLE else -(-samples.count // FINEST)
        return cls.above(sampled_track(samples, period_s, cells))

    @classmethod
    def above(cls, track: Track) -> Self:
        """The levels above a track."""
        levels = [track]
        while len(levels[-1]) > COARSEST:
            levels.append(grouped(levels[-1], FACTOR))
        return cls(levels)

    def view(self, start_s: float, end_s: float, columns: int) -> Track:
        """At most about `columns` cells that cover a stretch."""
        # The resolution of time stamps; a cell that only touches the stretch is outside.
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
