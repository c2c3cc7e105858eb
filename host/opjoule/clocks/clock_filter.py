"""Kalman filter and smoother of the two-state clock model: an offset, and a rate that does a random walk.

Several strengths of the walk are processed at once, in columns. Offsets are in ns, rates in ns/s, times in s.
Source: Zucca and Tavella, IEEE Trans. UFFC 52, 289 (2005) for the model; Bierman, Automatica 9, 503 (1973) for the
smoother, which inverts no matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.clocks.clock_map import Float64Array

RATE_PRIOR_U: Final = 3e-3
"""Standard uncertainty of "the rate is 1" before any evidence: a ceramic resonator's 0.5 %, rectangular."""
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Series:
    """Measurements and their times; arrays of shape (m,), except the steps."""

    steps_s: Float64Array
    """Interval from each time to the next, shape (m - 1,)."""
    seen_ns: Float64Array
    """Offsets; arbitrary where nothing was measured."""
    variance: Float64Array
    """Variance of each offset [ns^2]; infinite where nothing was measured."""
    walk_min: Float64Array
    """Least walk in each step [ns^2/s^3], shape (m - 1,)."""


@dataclass(frozen=True)
class Filtered:
    """State after each time, for each walk, with the data for smoother and likelihood."""

    states: Float64Array
    """offset, rate, and their variances (of the offset, of both, of the rate), shape (5, m, walks)"""
    updates: Float64Array
    """innovation (measurement minus prediction), inverse of its variance (0 where nothing was measured), and gains for
    offset and rate, shape (4, m, walks)"""
    squares: Float64Array
    """sum of the squared innovations over their variances, shape (walks,)"""
    logs: Float64Array
    """sum of the logarithms of those variances, shape (walks,)"""
    degrees: float
    """number of innovations in the sums"""

    def only(self, chosen: BoolArray) -> Filtered:
        """The result for some of the walks."""
        kept = self.states[:, :, chosen], self.updates[:, :, chosen], self.squares[chosen], self.logs[chosen]
        return Filtered(*kept, self.degrees)


def filter_forward(series: Series, walks: Float64Array) -> Filtered:
    """Filters forward in time, from the first comparison and an almost unknown rate."""
    size = series.seen_ns.size
    states, updates = np.empty((5, size, walks.size)), np.zeros((4, size, walks.size))
    offset, rate, p00, p01, p11 = np.zeros((5, walks.size))
    offset, p00, p11 = offset + series.seen_ns[0], p00 + series.variance[0], p11 + 1e18 * RATE_PRIOR_U**2
    states[:, 0] = offset, rate, p00, p01, p11
    columns = series.steps_s, series.seen_ns[1:], series.variance[1:], series.walk_min
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for number, (step, seen, variance, floor) in enumerate(rows, 1):
        walk = np.maximum(walks, floor) if floor else walks
        offset = offset + step * rate
        p00 = p00 + step * (2 * p01 + step * p11) + walk * (step**3 / 3)
        p01 = p01 + step * p11 + walk * (step**2 / 2)
        p11 = p11 + walk * step
        if variance < math.inf:
            precision, surprise = 1.0 / (p00 + variance), seen - offset
            gain, turn = p00 * precision, p01 * precision
            offset, rate = offset + gain * surprise, rate + turn * surprise
            p00, p01, p11 = p00 * (1.0 - gain), p01 * (1.0 - gain), p11 - turn * p01
            updates[:, number] = surprise, precision, gain, turn
        states[:, number] = offset, rate, p00, p01, p11
    # The first comparison sets the offset and the second the rate: neither contains information on the scatter.
    measured = np.flatnonzero(np.isfinite(series.variance))[2:]
    surprise, precision = updates[0, measured], updates[1, measured]
    squares, logs = (surprise**2 * precision).sum(axis=0), -np.log(precision).sum(axis=0)
    return Filtered(states, updates, squares, logs, float(measured.size))


@dataclass(frozen=True)
class Smoothed:
    """State at each time from all measurements, for each walk: arrays of shape (m, walks)."""

    offset: Float64Array
    rate: Float64Array
    u2_offset: Float64Array
    u2_rate: Float64Array


def smooth_backward(steps_s: Float64Array, filtered: Filtered, scatter: Float64Array) -> Smoothed:
    """Smooths backward in time, from later comparisons (modified Bryson-Frazier); `scatter` scales all variances."""
    _, size, walks = filtered.states.shape
    smooth = np.empty((4, size, walks))
    l0, l1, m00, m01, m11 = np.zeros((5, walks))
    for number in range(size - 1, -1, -1):
        offset, rate, a, b, c = filtered.states[:, number]
        upper, lower = a * m00 + b * m01, a * m01 + b * m11
        left, right = b * m00 + c * m01, b * m01 + c * m11
        smooth[:, number] = (
            offset - a * l0 - b * l1,
            rate - b * l0 - c * l1,
            a - upper * a - lower * b,
            c - left * b - right * c,
        )
        if number == 0:
            break
        step = float(steps_s[number - 1])
        surprise, precision, gain, turn = filtered.updates[:, number]
        kept = 1.0 - gain
        l0 = kept * l0 - turn * l1 - precision * surprise
        turned = kept * m01 - turn * m11
        m00 = kept * (kept * m00 - turn * m01) - turn * turned + precision
        l1, m11, m01 = l1 + step * l0, m11 + step * (2 * turned + step * m00), turned + step * m00
    if size > 1:
        # At the start the rate is unknown: the difference of two huge variances has no significant digits.
        smooth[1, 0], smooth[3, 0] = smooth[1, 1], smooth[3, 1]
    variances = np.maximum(smooth[2:], np.finfo(np.float64).tiny) * scatter
    return Smoothed(smooth[0], smooth[1], variances[0], variances[1])


def mixture(value: Float64Array, variance: Float64Array, weights: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Mean and standard uncertainty over the walks, including their disagreement."""
    mean = value @ weights
    spread = ((value - mean[:, None]) ** 2) @ weights
    return mean, np.sqrt(variance @ weights + spread)
