"""Variance of the current within one conversion, estimated from the conversions themselves.

Behind a supply of resistance R the voltage falls while the current rises, so mean current times mean voltage is too
large by R times the variance of the current within a conversion. Two things show that variance:

* levels: a mean between two levels has a variance of at most (upper - mean) (mean - lower). The levels, the extremes of
  the samples around, are visible if a burst is longer than a conversion;
* random differences between conversions: of a faster current only a small part remains in the conversions. That part
  depends on the correlation time x (in conversions): the autocovariance of the averages gives the lag-1 and lag-2
  differences, and their ratio gives x as long as it is above CORRELATION_MIN_S.

Source: averages of an exponentially correlated process, for example Vanmarcke, Random Fields (1983), 5.1; the
greatest variance between two levels is Bhatia and Davis, Am. Math. Mon. 107, 353 (2000).
"""

from typing import Final, NamedTuple

import numpy as np

from opjoule.energy.step_integral import pieces
from opjoule.energy.trace.power_trace import Float64Array

CORRELATION_MIN_S: Final = 0.5e-6
"""Least correlation time that is assumed. A random on-off current with a mean of 20 us has 10 us; if the lengths are
alike within a half, a twelfth of that remains, so that regular bursts of 20 us are covered, and random ones of 1 us.
The board's own capacitors supply anything faster: 100 uF behind 0.2 ohm of supply, cable and shunt need 20 us."""
SWING_MAX: Final = 4.0
"""Greatest ratio of a board's currents (all cores busy over idle) between which it could switch unseen."""
BLOCK: Final = 512
"""Samples per block of differences."""
TOGETHER: Final = 64 * BLOCK
"""Samples per step of the calculation."""
AROUND: Final = 8
"""Samples on either side among which the levels are looked for."""
BLOCKS_AROUND: Final = 4
"""Blocks on either side over which the ratio of differences is taken: it needs many."""
MEDIAN_OF_SQUARE: Final = 0.4549
"""Median of the square of a normal deviate."""
_X: Final = np.geomspace(1e-4, 100.0, 400)


class MovingCurrent(NamedTuple):
    """Variance of the current within each conversion [A^2], shape (m,)."""

    a2: Float64Array
    """Correction: the middle of the variance's range."""
    half_a2: Float64Array
    """Half of that range, rectangular."""


def moving_current(current_a: Float64Array, period_ns: int) -> MovingCurrent:
    """Variance within conversions of a period, from the conversions' values [A], shape (m,)."""
    fast_a2 = _fast_a2(current_a, period_ns)
    half_a2 = np.empty(current_a.size)
    for some in pieces(current_a.size, TOGETHER):
        piece_a, first = current_a[some], some.start // BLOCK
        least_a, greatest_a = _extremes_around(current_a, some)
        of_levels = (greatest_a - piece_a) * (piece_a - least_a)
        held_a2 = np.repeat(fast_a2[first : first + TOGETHER // BLOCK], BLOCK)[: piece_a.size]
        fast = np.minimum(held_a2, most_fast_a2(piece_a))
        half_a2[some] = of_levels + np.maximum(fast - of_levels, 0.0) / 2
    return MovingCurrent(half_a2, half_a2)


def most_fast_a2(current_a: Float64Array | float) -> Float64Array:
    """Greatest variance of a quantity between two values of the ratio SWING_MAX (Kantorovich's inequality)."""
    return np.asarray(np.maximum(current_a, 0.0) ** 2 * ((SWING_MAX - 1) ** 2 / (4 * SWING_MAX)), np.float64)


def _extremes_around(current_a: Float64Array, some: slice) -> tuple[Float64Array, Float64Array]:
    """The least and the greatest of each value in a piece and the 8 on either side of it, shape (n,) each."""
    low, high = max(some.start - AROUND, 0), min(some.stop + AROUND, current_a.size)
    inside = slice(some.start - low, some.stop - low)
    wide_a = current_a[low:high]
    return _widened(np.minimum, wide_a)[inside], _widened(np.maximum, wide_a)[inside]


def _widened(choose: np.ufunc, values: Float64Array) -> Float64Array:
    for distance in (1, 1, 2, 4):  # 8 in all, AROUND
        widened = values.copy()
        choose(values[distance:], values[:-distance], out=widened[distance:])
        choose(widened[:-distance], values[distance:], out=widened[:-distance])
        values = widened
    return values


def _fast_a2(current_a: Float64Array, period_ns: int) -> Float64Array:
    """Greatest variance of movement faster than the conversions [A^2] in each block, shape (n,); 0 in a short trace."""
    if current_a.size < BLOCK:
        return np.zeros(1)
    sums = [_differences(current_a[some.start : some.stop + 2]) for some in pieces(current_a.size - 2, TOGETHER)]
    one, two, seen = (np.concatenate(column) for column in zip(*sums, strict=True))
    around = np.ones(2 * BLOCKS_AROUND + 1)
    columns = one, two, np.full(one.size, float(BLOCK))
    one_around, two_around, count = (np.convolve(column, around)[BLOCKS_AROUND:-BLOCKS_AROUND] for column in columns)
    ratio = two_around / np.maximum(one_around, 1e-300) - 4.0 / np.sqrt(count)
    fast = seen / MEDIAN_OF_SQUARE / 1.5 * _hidden_over_seen(ratio, period_ns)
    return np.append(fast, fast[-1])  # the last two samples may begin a block of their own


def _differences(current_a: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Sums of squared lag-1 and lag-2 differences and median squared bend of each block [A^2], shape (n,) each."""
    before, here, after = current_a[:-2], current_a[1:-1], current_a[2:]
    starts = np.arange(0, here.size, BLOCK)
    one = np.add.reduceat((here - before) ** 2, starts)
    two = np.add.reduceat((after - before) ** 2, starts)
    bend = (here - (before + after) / 2) ** 2
    # The median ignores the edges of longer bursts, which affect few of the differences.
    whole = here.size // BLOCK * BLOCK
    seen = np.median(bend[:whole].reshape(-1, BLOCK), axis=1)
    return one, two, np.append(seen, np.median(bend[whole:])) if whole < here.size else seen


def _hidden_over_seen(ratio: Float64Array, period_ns: int) -> Float64Array:
    """Variance within a conversion over half the mean square of lag-1 differences, by the ratio of lag 2 to lag 1."""
    fading = np.exp(-1 / _X)
    of_means = 2 * _X * (1 - _X * (1 - fading))
    lag_1 = (_X * (1 - fading)) ** 2
    by_lag_1, by_lag_2 = of_means - lag_1, of_means - lag_1 * fading
    hidden = (1 - of_means) / by_lag_1
    most = np.interp(CORRELATION_MIN_S / (period_ns * 1e-9), _X, hidden)
    return np.asarray(np.minimum(np.interp(ratio, by_lag_2 / by_lag_1, hidden), most), np.float64)
