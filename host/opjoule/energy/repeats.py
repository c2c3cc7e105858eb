"""Spread of repeated runs, and of values that are not independent: standard errors."""

import functools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR, student_t
from opjoule.energy.trace.power_trace import Float64Array

BLOCKS_MIN: Final = 16
"""Fewest block averages for a standard error."""
LONG_BLOCKS: Final = 5
"""Number of blocks that a stretch is cut into if its values may stay correlated for a large part of it."""


def repeat_standard_u(values: Sequence[float]) -> float:
    """Standard uncertainty of the mean of repeated runs, widened so that k = 2 covers 95.45 % (Student's t).

    Raises: ValueError: fewer than two runs.
    Source: JCGM 100:2008, 4.2.3 and G.3.
    """
    if len(values) < 2:
        raise ValueError(f"{len(values)} runs: the spread of repeats needs at least two")
    standard_error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return standard_error * student_t(len(values) - 1) / COVERAGE_FACTOR


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
    return [widening * math.sqrt(rate / stretch.size) if stretch.size >= LONG_BLOCKS else 0.0 for stretch in stretches]


def student_probability(t: float, degrees_of_freedom: float) -> float:
    """Two-sided tail probability of `t` in Student's distribution.

    Computed from the angle whose tangent is t over the root of the degrees of freedom: its density is a power of the
    cosine. With infinitely many degrees of freedom it is the normal distribution.
    Source: Abramowitz, Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.7.3.
    """
    if math.isinf(degrees_of_freedom) or degrees_of_freedom > _NORMAL_FROM:
        return math.erfc(abs(t) / math.sqrt(2.0))
    nodes, weights = _quadrature()
    start = math.atan2(abs(t), math.sqrt(degrees_of_freedom))
    angles = start + (math.pi / 2 - start) * (nodes + 1) / 2
    tail = float(weights @ np.cos(angles) ** (degrees_of_freedom - 1)) * (math.pi / 2 - start) / 2
    half = (degrees_of_freedom + 1) / 2
    scale = math.exp(math.lgamma(half) - math.lgamma(degrees_of_freedom / 2)) / math.sqrt(math.pi)
    return min(2.0 * scale * tail, 1.0)


def student_t_of(probability: float, degrees_of_freedom: float) -> float:
    """The absolute value that a variable of Student's distribution reaches or exceeds with this probability."""
    low, high = 0.0, 1.0
    while student_probability(high, degrees_of_freedom) > probability and high < _T_MAX:
        high *= 2.0
    while high - low > _T_RESOLUTION * high:
        middle = (low + high) / 2
        beyond = student_probability(middle, degrees_of_freedom) > probability
        low, high = (middle, high) if beyond else (low, middle)
    return high


def chi_square_probability(chi_square: float, degrees_of_freedom: int) -> float:
    """Probability that a chi-square variable is at least this large.

    Source: Abramowitz, Stegun, Handbook of Mathematical Functions, 26.4.4 and 26.4.5.
    """
    half = chi_square / 2.0
    odd = degrees_of_freedom % 2
    tail = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.exp(-half) * (math.sqrt(half) / math.gamma(1.5) if odd else 1.0)
    for step in range(degrees_of_freedom // 2):
        tail += term
        term *= half / (step + (1.5 if odd else 1.0))
    return min(tail, 1.0)


@functools.cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature on -1 to 1."""
    return np.polynomial.legendre.leggauss(200)


_NORMAL_FROM: Final = 1e5
"""Degrees of freedom from which the normal distribution agrees to 5 digits."""
_T_MAX: Final = 1e9
_T_RESOLUTION: Final = 1e-6
