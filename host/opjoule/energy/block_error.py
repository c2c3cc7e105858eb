"""Standard error of the mean of values that are not independent."""

from __future__ import annotations

import math
from typing import Final

from opjoule.trace.power_trace import Float64Array

BLOCKS_MIN: Final = 16
"""Fewest block averages from which a standard error is taken."""


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
