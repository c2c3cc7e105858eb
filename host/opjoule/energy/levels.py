"""How many values lie on each level of a converter's steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.trace.power_trace import Float64Array

PART_SAMPLES: Final = 1 << 14
LEVELS_MAX: Final = 1 << 20
"""Levels that are counted in a table; more are sorted."""


def parts(count: int, first: int = 0) -> Iterator[slice]:
    """Values of one part: its arrays stay in the processor's cache. A part is a whole number of blocks of samples."""
    return (slice(at, min(at + PART_SAMPLES, count)) for at in range(first, count, PART_SAMPLES))


@dataclass(frozen=True)
class LevelCounts:
    """Values on each level."""

    lowest: int
    """The first level."""
    counts: Float64Array
    """Values, or the sum of their shares, on the levels from the lowest on, shape (levels,)."""
    in_whole_parts: Float64Array
    """The counts that are in whole parts, from where counting goes on, shape (levels,)."""
    values: int
    """How many were counted; 0 where there are so many levels that counting cannot go on."""

    @classmethod
    def of(cls, values: Float64Array, width: float, share: Float64Array | None = None) -> LevelCounts:
        """Counts of values on levels of a width.

        Args:
            share: what each counts for, shape as `values`; None: 1.
        """
        nothing = np.zeros(0)
        return cls(0, nothing, nothing, 0).grown(values, width, share)

    def grown(self, values: Float64Array, width: float, share: Float64Array | None = None) -> LevelCounts:
        """Counts of all values, where these are the counts of the first ones: only the others are looked at."""
        if self.values > values.size:
            return LevelCounts.of(values, width, share)
        if self.values == values.size and values.size:
            return self
        whole_parts = self.values // PART_SAMPLES * PART_SAMPLES
        rest = values[whole_parts:]
        ends = np.floor(np.array([rest.min(), rest.max()]) / width + 0.5).tolist()
        lowest, highest = int(ends[0]), int(ends[1])
        if self.values:
            lowest, highest = min(lowest, self.lowest), max(highest, self.lowest + self.counts.size - 1)
        if highest - lowest >= LEVELS_MAX:
            _, numbered = np.unique(np.floor(values / width + 0.5), return_inverse=True)
            counts = np.bincount(numbered, None if share is None else np.abs(share)).astype(np.float64)
            return LevelCounts(lowest, counts, counts, 0)
        counts = np.zeros(highest - lowest + 1)
        if self.values:
            counts[self.lowest - lowest :][: self.counts.size] = self.in_whole_parts
        in_whole_parts = counts.copy()
        for some in parts(values.size, whole_parts):
            level = values[some] / width
            level += 0.5
            np.floor(level, out=level)
            level -= lowest
            counts += np.bincount(
                level.astype(np.int64), None if share is None else np.abs(share[some]), counts.size
            )
            if some.stop == values.size // PART_SAMPLES * PART_SAMPLES:
                in_whole_parts = counts.copy()
        return LevelCounts(lowest, counts, in_whole_parts, values.size)

    @property
    def same(self) -> float:
        """Probability that two of the values lie on the same level."""
        total = float(self.counts.sum())
        return float(np.sum((self.counts / total) ** 2)) if total > 0 else 1.0
