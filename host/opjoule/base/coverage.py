"""Coverage factors: of a sum of errors by its kurtosis, and of a spread of few values by Student's t.

The interval value +- u contains the true value with a probability of 95.45 %. k is 2 if the error is normal, less if it
comes mostly from bounds, and more if it comes from few repeats.
Source: JCGM 100:2008 (GUM), 5.1.2, 6.2.1, G.1 to G.3.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

COVERAGE_FACTOR: Final = 2.0
"""k of a normal error for 95.45 %: expanded uncertainty u = k * standard uncertainty."""
RECTANGULAR: Final = -1.2
"""Excess kurtosis of an error for which only a bound is known; a normal error has 0."""
_EXCESS: Final = tuple(-number / 10 for number in range(12, -1, -1))
_FACTORS: Final = (
    *(1.653, 1.717, 1.772, 1.817, 1.855, 1.887, 1.913, 1.934, 1.952, 1.968, 1.980, 1.991),
    COVERAGE_FACTOR,
)
"""k for 95.45 % of a symmetric beta distribution (Pearson's type II) with each excess kurtosis of _EXCESS."""


def coverage_factor(excess_kurtosis: float) -> float:
    """k for 95.45 % of a sum of independent errors: 1.65 for one rectangle, 2 for a normal error.

    Args:
        excess_kurtosis: excess kurtosis of the sum, from `excess_kurtosis()`.
    Returns: k to three decimals. Its interval contains 95.2 to 95.9 % of any sum of rectangles and a normal error.
    Source: JCGM 100:2008, G.1.3 and G.2; by moments after R. Willink, Metrologia 42 (2005), 329-343.
    """
    k = round(_interpolated(excess_kurtosis, _EXCESS, _FACTORS), 3)
    return k if k < COVERAGE_FACTOR else COVERAGE_FACTOR  # this same object, which msgspec omits


def _interpolated(at: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    """Linear interpolation, constant outside of the table. Lists of records do without numpy, which loads slowly."""
    after = bisect_right(xs, at)
    if after in (0, len(xs)):
        return ys[0] if after == 0 else ys[-1]
    slope = (ys[after] - ys[after - 1]) / (xs[after] - xs[after - 1])
    return slope * (at - xs[after - 1]) + ys[after - 1]


def excess_kurtosis(parts: Iterable[tuple[float, float]]) -> float:
    """Excess kurtosis of a sum of independent errors, from (standard uncertainty, excess kurtosis) of each."""
    listed = list(parts)
    variance = math.fsum(u**2 for u, _ in listed)
    return math.fsum(excess * (u**2 / variance) ** 2 for u, excess in listed) if variance > 0 else 0.0


def excess_of(k: float) -> float:
    """Excess kurtosis of the error whose coverage factor is k."""
    return _interpolated(k, _FACTORS, _EXCESS)


T_95: Final = {
    1: 13.97, 1.25: 8.67, 1.5: 6.42, 1.75: 5.24,
    2: 4.53, 3: 3.31, 4: 2.87, 5: 2.65, 6: 2.52, 7: 2.43, 8: 2.37, 9: 2.32, 10: 2.28,
    11: 2.25, 12: 2.23, 13: 2.21, 14: 2.20, 15: 2.18, 16: 2.17, 17: 2.16, 18: 2.15, 19: 2.14, 20: 2.13,
    25: 2.11, 30: 2.09, 35: 2.07, 40: 2.06, 45: 2.06, 50: 2.05, 100: 2.025,
}  # fmt: skip
"""Student's t for 95.45 % by degrees of freedom. Source: JCGM 100:2008, table G.2; from 1.25 to 1.75 `student_t_of`."""
_INVERSES: Final = (0.0, *(1.0 / tabulated for tabulated in reversed(T_95)))
_LOGARITHMS: Final = tuple(math.log(t) for t in (COVERAGE_FACTOR, *reversed(T_95.values())))


def student_t(degrees_of_freedom: float) -> float:
    """Student's t for 95.45 %; its logarithm is interpolated by reciprocal degrees of freedom, within 1 %.

    Raises: ValueError: fewer than one.
    """
    if degrees_of_freedom < 1:
        raise ValueError(f"{degrees_of_freedom:g} degrees of freedom: Student's t needs at least one")
    if degrees_of_freedom in T_95:
        return T_95[degrees_of_freedom]
    return math.exp(_interpolated(1.0 / degrees_of_freedom, _INVERSES, _LOGARITHMS))
