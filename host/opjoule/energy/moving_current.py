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

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from opjoule.trace.power_trace import Float64Array

CORRELATION_MIN_S: Final = 0.5e-6
"""Least correlation time that is assumed. A random on-off current with a mean of 20 us has 10 us; if the lengths are
alike within a half, a twelfth of that remains, so that regular bursts of 20 us are covered, and random ones of 1 us.
The board's own capacitors supply anything faster: 100 uF behind 0.2 ohm of supply, cable and shunt need 20 us."""
SWING_MAX: Final = 4.0
"""Greatest ratio of a board's currents (all cores busy over idle) between which it could switch unseen."""
BLOCK: Final = 512
"""Samples per block of differences."""
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
    above_a = _greatest_around(current_a) - current_a
    below_a = current_a + _greatest_around(-current_a)
    of_levels = above_a * below_a
    # The greatest variance of a quantity between two values of a given ratio (Kantorovich's inequality).
    most_a2 = np.maximum(current_a, 0.0) ** 2 * ((SWING_MAX - 1) ** 2 / (4 * SWING_MAX))
    fast_a2 = np.minimum(_fast_a2(current_a, period_ns), most_a2)
    unseen = np.maximum(fast_a2 - of_levels, 0.0) / 2
    return MovingCurrent(of_levels + unseen, of_levels + unseen)


def _fast_a2(current_a: Float64Array, period_ns: int) -> Float64Array:
    """Greatest variance of movement faster than the conversions [A^2], shape (m,); constant within blocks."""
    if current_a.size < BLOCK:
        return np.zeros(current_a.size)
    starts = np.arange(0, current_a.size - 2, BLOCK)
    one = np.add.reduceat((current_a[1:-1] - current_a[:-2]) ** 2, starts)
    two = np.add.reduceat((current_a[2:] - current_a[:-2]) ** 2, starts)
    bend = (current_a[1:-1] - (current_a[:-2] + current_a[2:]) / 2) ** 2
    # The median ignores the edges of longer bursts, which affect few of the differences.
    seen = np.array([np.median(bend[at : at + BLOCK]) for at in starts.tolist()])
    around = np.ones(2 * BLOCKS_AROUND + 1)
    columns = one, two, np.full(starts.size, float(BLOCK))
    one_around, two_around, count = (
        np.convolve(column, around)[BLOCKS_AROUND:-BLOCKS_AROUND] for column in columns
    )
    ratio = two_around / np.maximum(one_around, 1e-300) - 4.0 / np.sqrt(count)
    fast = seen / MEDIAN_OF_SQUARE / 1.5 * _hidden_over_seen(ratio, period_ns)
    held = np.repeat(fast, BLOCK)[np.minimum(np.arange(current_a.size), fast.size * BLOCK - 1)]
    return np.asarray(held, np.float64)


def _hidden_over_seen(ratio: Float64Array, period_ns: int) -> Float64Array:
    """Variance within a conversion over half the mean square of lag-1 differences, by the ratio of lag 2 to lag 1."""
    fading = np.exp(-1 / _X)
    of_means = 2 * _X * (1 - _X * (1 - fading))
    lag_1 = (_X * (1 - fading)) ** 2
    by_lag_1, by_lag_2 = of_means - lag_1, of_means - lag_1 * fading
    hidden = (1 - of_means) / by_lag_1
    most = np.interp(CORRELATION_MIN_S / (period_ns * 1e-9), _X, hidden)
    return np.asarray(np.minimum(np.interp(ratio, by_lag_2 / by_lag_1, hidden), most), np.float64)


def _greatest_around(values: Float64Array) -> Float64Array:
    """The greatest of each value and the 8 on either side of it."""
    greatest = values.copy()
    for distance in (1, 1, 2, 4):
        widened = greatest.copy()
        np.maximum(widened[distance:], greatest[:-distance], out=widened[distance:])
        np.maximum(widened[:-distance], greatest[distance:], out=widened[:-distance])
        greatest = widened
    return greatest
