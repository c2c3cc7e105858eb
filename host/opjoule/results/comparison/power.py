"""Power of a campaign: which differences its blocks find, and how many blocks an interval needs.

Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 4; sample size of a t-test by the sum of
the two quantiles of Student's t.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Self

from opjoule.base.coverage import student_t
from opjoule.base.units import counted
from opjoule.energy.repeats import student_t_of
from opjoule.results.comparison.contrasts import LIMIT, Compared
from opjoule.results.rounding import percent

POWER: Final = 0.8
"""Probability with which a difference is found that the preview names; a few hundredths less with few blocks."""
TYPICAL_SPREAD: Final = 0.1
"""Spread of the runs of a cell that is assumed before any is measured (docs/how-to/run-a-campaign.md)."""
BLOCKS_MIN: Final = 2
"""Fewest blocks with a spread."""


@dataclass(frozen=True)
class Spread:
    """How uncertain the runs of a cell are, relative to their mean; each is a standard deviation."""

    relative: float
    """Between the runs of one cell."""
    fixed: float = 0.0
    """Part of a cell's mean that more blocks do not reduce."""
    runs: int = 0
    """Number of runs that show it; 0 if it is assumed."""

    @classmethod
    def of(cls, compared: Sequence[Compared]) -> Self:
        """The spread of the compared runs, pooled over their cells; the typical one if no cell has two runs."""
        sides = [
            (side, len(group.runs))
            for answer in compared[:1]  # each answer has all runs
            for group in answer.groups
            for of in (*answer.quantities, *answer.told)
            if len(group.runs) > 1 and (side := group.side(of)) and float(side) > 0
        ]
        freedom = sum(runs - 1 for _, runs in sides)
        if not freedom:
            return cls(TYPICAL_SPREAD)
        squares = sum((runs - 1) * runs * (side.spread_u / float(side)) ** 2 for side, runs in sides)
        fixed = math.sqrt(fmean((side.own_u / float(side)) ** 2 for side, _ in sides))
        return cls(math.sqrt(squares / freedom), fixed, sum(runs for _, runs in sides))

    def half_width(self, blocks: int) -> float:
        """Expected half-width of the interval (95.45 %) of a ratio of two cells, relative to the ratio."""
        standard_u, freedom = self._of_ratio(blocks)
        return standard_u * student_t(freedom) if standard_u else 0.0

    def difference_found(self, blocks: int, contrasts: int = 1) -> float:
        """Relative difference of two cells that is found with probability POWER.

        Args:
            contrasts: number of contrasts that are judged together, each of them by the strictest of Holm's limits.
        """
        standard_u, freedom = self._of_ratio(blocks)
        if not standard_u:
            return 0.0
        together = student_t_of(LIMIT / contrasts, freedom) + student_t_of(2 * (1 - POWER), freedom)
        return math.expm1(min(together * standard_u, _EXPONENT_MAX))

    def blocks_for(self, half_width: float, limit: int) -> int | None:
        """Fewest blocks that make the interval of a ratio this narrow; None if the limit's blocks do not."""
        return next((n for n in range(BLOCKS_MIN, limit + 1) if self.half_width(n) <= half_width), None)

    def blocks_to_find(self, difference: float, contrasts: int, limit: int) -> int | None:
        """Fewest blocks with which a relative difference is found; None if the limit's blocks do not find it."""
        counts = range(BLOCKS_MIN, limit + 1)
        return next((n for n in counts if self.difference_found(n, contrasts) <= difference), None)

    def _of_ratio(self, blocks: int) -> tuple[float, float]:
        """Relative standard uncertainty of a ratio of two cells, and its degrees of freedom.

        The degrees are those that Welch and Satterthwaite's formula gives on average: where two estimated spreads
        differ by chance, it gives fewer than for equal ones, by a factor of n / (n + 1) for n blocks.
        """
        if blocks < BLOCKS_MIN:
            raise ValueError(f"{counted(blocks, 'block')}: a spread needs at least {BLOCKS_MIN}")
        spread_u = self.relative / math.sqrt(blocks)
        standard_u = math.hypot(self.fixed, spread_u) * math.sqrt(2)
        inverse = 2 * (spread_u / standard_u) ** 4 * (blocks + 1) / (blocks * (blocks - 1)) if standard_u else 0.0
        return standard_u, max(1 / inverse, 1.0) if inverse else _MANY


_EXPONENT_MAX: Final = 20.0
_MANY: Final = 1e6
"""Degrees of freedom of an uncertainty without a spread."""


def contrast_count(conditions: Iterable[Mapping[str, str]]) -> int:
    """Number of contrasts in a campaign's answer: the pairs of values of each axis, in each stratum."""
    known = [tuple(condition.items()) for condition in conditions]
    return sum(
        math.comb(values, 2)
        for axis in dict.fromkeys(axis for condition in known for axis, _ in condition)
        for values in Counter(tuple(item for item in condition if item[0] != axis) for condition in known).values()
    )


def power_words(spread: Spread, blocks: int, contrasts: int) -> str:
    """What a number of blocks finds, and the spread from which that follows."""
    if blocks < BLOCKS_MIN:
        return f"no difference is found with {counted(blocks, 'block')}: a spread needs at least {BLOCKS_MIN}"
    found = 100 * spread.difference_found(blocks, contrasts)
    size = f"{found:.2g}" if found < 10 else f"{found:.0f}"
    together = f"; {contrasts} contrasts are judged together" if contrasts > 1 else ""
    known = f"that of {spread.runs} runs so far" if spread.runs else "assumed, as no cell has two runs yet"
    return (
        f"with {counted(blocks, 'block')} differences of about {size} % are found in about {100 * POWER:.0f} "
        f"of 100 campaigns (spread of the runs {percent(spread.relative)}, {known}{together})"
    )
