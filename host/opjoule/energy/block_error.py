"""Standard error of the mean of values that are not independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from opjoule.energy.repeats import student_t
from opjoule.trace.power_trace import Float64Array
from opjoule.units import COVERAGE_FACTOR

BLOCKS_MIN: Final = 16
"""Fewest block averages from which a standard error is taken."""
LONG_BLOCKS: Final = 5
"""Block averages of a stretch that may stay correlated for a large part of it."""


def standard_error(values: Float64Array) -> float:
    """Standard error of the mean of autocorrelated values: the greatest over block lengths 1, 2, 4, ...

    Blocks longer than the correlation are independent; of every block length that leaves 16 blocks or more
    the greatest error counts. 0 for fewer than 16 values.
    Source: Flyvbjerg and Petersen, J. Chem. Phys. 91, 461 (1989).
    """
    error, blocks = 0.0, values
    while blocks.size >= BLOCKS_MIN:
        error = max(error, float(blocks.std(ddof=1)) / math.sqrt(blocks.size))
        even = blocks[: blocks.size // 2 * 2]
        blocks = (even[0::2] + even[1::2]) / 2
    return error


def long_block_errors(stretches: Sequence[Float64Array]) -> list[float]:
    """Standard error of the mean of each stretch of one noise, widened so that k = 2 means 95.45 % (Student's t).

    A block is a fifth of a stretch, long enough that correlations over seconds and events of a few times a minute lie
    inside blocks. All stretches together give the noise, with four degrees of freedom each. 0 for a stretch of fewer
    than 5 values.
    Source: Ibragimov and Mueller, J. Business Econ. Stat. 28, 453 (2010): few long groups and Student's t, which holds
    also where the groups scatter unequally.
    """
    long = [stretch for stretch in stretches if stretch.size >= LONG_BLOCKS]
    if not long:
        return [0.0] * len(stretches)
    # variance of a block's mean times its length: the same for blocks of any length beyond the correlation
    rates = []
    for stretch in long:
        length = stretch.size // LONG_BLOCKS
        blocks = stretch[: length * LONG_BLOCKS].reshape(LONG_BLOCKS, length).mean(axis=1)
        rates.append(blocks.var(ddof=1) * length)
    rate = float(np.mean(rates))
    widening = student_t(len(long) * (LONG_BLOCKS - 1)) / COVERAGE_FACTOR
    return [
        widening * math.sqrt(rate / stretch.size) if stretch.size >= LONG_BLOCKS else 0.0
        for stretch in stretches
    ]
