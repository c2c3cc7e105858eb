"""Standard error of the mean of values that are not independent."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from opjoule.energy.repeats import student_t
from opjoule.trace.power_trace import Float64Array
from opjoule.units import COVERAGE_FACTOR

BLOCKS_MIN: Final = 16
"""Fewest block averages for a standard error."""
LONG_BLOCKS: Final = 5
"""Number of blocks that a stretch is cut into if its values may stay correlated for a large part of it."""


def standard_error(values: Float64Array) -> float:
    """Standard error of the mean of autocorrelated values: the greatest over block lengths 1, 2, 4, ...

    Blocks longer than the correlation are independent. The greatest error counts, over all block lengths that leave 16
    blocks or more. 0 for fewer than 16 values.
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

    A block is a fifth of a stretch: correlations over seconds, and events a few times a minute, stay inside one block.
    The noise is pooled over all stretches, with four degrees of freedom each. 0 for a stretch of fewer than 5 values.
    Source: Ibragimov and Mueller, J. Business Econ. Stat. 28, 453 (2010): few long groups and Student's t, which is
    valid even if the groups have unequal variances.
    """
    long = [stretch for stretch in stretches if stretch.size >= LONG_BLOCKS]
    if not long:
        return [0.0] * len(stretches)
    # variance of a block's mean times its length: the same for all blocks longer than the correlation
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
