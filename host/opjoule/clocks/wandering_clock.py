"""Course of one clock against another, from scattered comparisons; its rate does a random walk.

The two-state clock model has an offset, and a rate that changes by a random walk. The Kalman filter and smoother give
the offset and the rate at every comparison, in gaps between them and at the ends, each with its variance. The strength
of the walk is unknown: every strength of a grid is tried and weighted by its likelihood, so that a steady clock has a
straight course and a wandering one a curve.

Source: Zucca and Tavella, IEEE Trans. UFFC 52, 289 (2005) for the model; Bierman, Automatica 9, 503 (1973) for the
smoother, which inverts no matrix; Wahba, J. R. Stat. Soc. B 45, 133 (1983) for what such intervals cover when the truth
is a smooth curve. Several strengths of the walk are processed at once, in columns. Offsets are in ns, rates in ns/s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opjoule.clocks.clock_map import ClockMap, Float64Array, Int64Array, Knot

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


WANDERS: Final = 10.0 ** np.arange(-20.0, -6.9, 0.5)
"""Strengths of the walk that are tried, as variance of the rate per second [1/s]: 1e-14 is 6 ppm in an hour."""
USUAL_WANDER: Final = 1e-14
"""Strength above which a walk needs evidence: the prior decreases by a standard deviation per decade."""
PRIOR_SCATTER: Final = 4.0
"""Weight of the stated uncertainties, as a number of comparisons with that scatter."""
WEIGHT_MIN: Final = 0.005
GAP: Final = 4.0
"""Distance of two comparisons, in typical distances, above which there is a gap, in which knots may be placed."""
GAP_POINTS: Final = 7
BOWED: Final = 1.5
BOWED_S: Final = 2.5
"""Distance of two comparisons above which the course between them is not treated as straight, if it is also a little
more than typical: a warm-up of 2 ppm a second deviates by 6 us in 5 s."""
BOWED_POINTS: Final = 3
LAG_MIN_S: Final = 16.0
"""Length of gaps from which the walk is taken from changes of rate over times up to that length."""
LAGS_IN_SPAN: Final = 4.0
"""Ratio of the whole time to the longest lag: longer lags have too few values."""
CHANGE_LAGS_S: Final = (8.0, 16.0, 32.0, 64.0)
"""Times over which a change of rate is compared with the mean walk."""
SURPRISE: Final = 3.0
"""Standard deviations above which a change belongs to the clock's own behaviour at that time."""
KNOT_TOLERANCE: Final = 0.25
"""Greatest deviation of the map from the smoothed course between knots, as a fraction of its uncertainty."""
KNOT_U_TOLERANCE: Final = 0.1
"""Greatest relative deviation of its uncertainty from the course's."""
NS2_PER_S2: Final = 1e18


@dataclass(frozen=True)
class Course:
    """One clock against another at some times; arrays of shape (m,)."""

    source_ns: Int64Array
    """Times of the comparisons, and of points in their gaps."""
    source_ref_ns: int
    target_ref_ns: int
    rate: float
    """Rate of the line from which `away_ns` is measured."""
    away_ns: Float64Array
    u_ns: Float64Array
    local_rate: Float64Array
    u_rate: Float64Array
    wander_per_s: float
    """Variance that the rate gains per second [1/s], weighted mean over the strengths."""
    residual_ns: float
    """Root mean square distance of the comparisons from the course."""
    n: int
    """Number of comparisons."""

    def clock_map(self, source: str, target: str, method: str, u_shared_ns: float) -> ClockMap:
        """Map with the fewest knots that follow the course within a quarter of its uncertainty.

        `u_shared_ns`: standard uncertainty common to all comparisons.
        """
        kept = _needed(self, u_shared_ns)
        columns = np.round(self.away_ns, 3), np.round(self.u_ns, 3), self.local_rate, self.u_rate
        knots = (Knot(int(self.source_ns[at]), *(float(column[at]) for column in columns)) for at in kept)
        span_ns = max(float(self.source_ns[-1] - self.source_ns[0]), 1.0)
        u_mean = float(self.u_ns[0] + self.u_ns[-1]) / span_ns
        return ClockMap(
            source=source,
            target=target,
            source_ref_ns=self.source_ref_ns,
            target_ref_ns=self.target_ref_ns,
            rate=self.rate,
            u_offset_ns=u_shared_ns,
            u_rate=min(u_mean, float(self.u_rate.max())),
            method=method,
            residual_ns=self.residual_ns,
            n=self.n,
            knots=tuple(knots),
            wander_per_s=self.wander_per_s,
        )


def follow(source_ns: Int64Array, target_ns: Int64Array, u_ns: Float64Array, wander_min_per_s: float = 0.0) -> Course:
    """Course of the target clock against the source clock.

    If comparisons scatter more than their uncertainties, those of the course are widened.

    Args:
        source_ns, target_ns: comparisons in order of time, shape (n,), n >= 1; u_ns: their independent uncertainties.
        wander_min_per_s: known lower limit of the walk, for too few comparisons to show it [1/s].
    """
    rate = _mean_rate(source_ns, target_ns)
    source_ref_ns, target_ref_ns = int(source_ns[0]), int(target_ns[0])
    times_ns, place = _with_gap_points(source_ns)
    distance = (source_ns - source_ref_ns).astype(np.float64)
    away_ns = ((target_ns - target_ref_ns) - (source_ns - source_ref_ns)) - distance * (rate - 1.0)
    seen, variance = np.zeros(times_ns.size), np.full(times_ns.size, np.inf)
    seen[place], variance[place] = away_ns, u_ns**2
    steps_s = np.diff(times_ns) * 1e-9
    walks = WANDERS[min(wander_min_per_s, WANDERS[-1]) <= WANDERS] * NS2_PER_S2
    solved = _solve(Series(steps_s, seen, variance, np.zeros(steps_s.size)), walks)
    slow = _slow_walks(distance * 1e-9, solved.rate[place], solved.u_rate[place])
    changing = _where_it_changes(times_ns - source_ref_ns, solved)
    walk_min = np.maximum(_in_gaps(slow, times_ns, source_ns), changing)
    if np.any(walk_min > solved.walk):
        solved = _solve(Series(steps_s, seen, variance, walk_min / solved.scatter), walks)
    walk = max([solved.walk, *slow.values(), *walk_min[[0, -1]].tolist()] if walk_min.size else [solved.walk])
    return Course(
        source_ns=times_ns,
        source_ref_ns=source_ref_ns,
        target_ref_ns=target_ref_ns,
        rate=rate,
        away_ns=solved.offset,
        u_ns=solved.u_offset,
        local_rate=rate + solved.rate * 1e-9,
        u_rate=solved.u_rate * 1e-9,
        wander_per_s=walk / NS2_PER_S2,
        residual_ns=math.sqrt(float(np.mean((solved.offset[place] - away_ns) ** 2))),
        n=int(source_ns.size),
    )


class _Solved(NamedTuple):
    """Offsets [ns] and rates [ns/s] with their standard uncertainties, shape (m,), and the mean walk [ns^2/s^3]."""

    offset: Float64Array
    u_offset: Float64Array
    rate: Float64Array
    u_rate: Float64Array
    walk: float
    scatter: float
    """Mean factor of the stated variances."""


def _solve(series: Series, walks: Float64Array) -> _Solved:
    """Weighted mean over the walks.

    The scatter of the comparisons is a factor of their variances, and of all variances that follow from them. Each
    walk is tried relative to it.
    """
    filtered = filter_forward(series, walks)
    scatter = np.maximum((filtered.squares + PRIOR_SCATTER) / (filtered.degrees + PRIOR_SCATTER), 1.0)
    weights = _weights(filtered, scatter, walks)
    chosen = weights > WEIGHT_MIN * weights.max()
    weights = weights[chosen] / weights[chosen].sum()
    smooth = smooth_backward(series.steps_s, filtered.only(chosen), scatter[chosen])
    return _Solved(
        *mixture(smooth.offset, smooth.u2_offset, weights),
        *mixture(smooth.rate, smooth.u2_rate, weights),
        walk=float(weights @ (walks * scatter)[chosen]),
        scatter=float(weights @ scatter[chosen]),
    )


def _slow_walks(time_s: Float64Array, rate: Float64Array, u_rate: Float64Array) -> dict[float, float]:
    """Lag [s] -> walk from the change of rates over that lag [ns^2/s^3].

    Changes from second to second show little of changes over minutes, for example when air conditioning starts or a
    board warms up. For long gaps, changes over times up to the gap's length count.
    """
    walks: dict[float, float] = {}
    lag_s, span_s = LAG_MIN_S, float(time_s[-1] - time_s[0])
    while lag_s <= span_s / LAGS_IN_SPAN:
        first = time_s <= time_s[-1] - lag_s
        change = np.interp(time_s[first] + lag_s, time_s, rate) - rate[first]
        noise = 2.0 * float(np.mean(u_rate**2))
        walks[lag_s] = max(float(np.mean(change**2)) - noise, 0.0) / lag_s
        lag_s *= 2.0
    return walks


def _in_gaps(slow: Mapping[float, float], times_ns: Int64Array, source_ns: Int64Array) -> Float64Array:
    """Least walk of each step between the times, from the gap of the comparisons that contains the step."""
    after = np.searchsorted(source_ns, times_ns[:-1], side="right")
    gap_s = (source_ns[after] - source_ns[after - 1]) * 1e-9
    walk_min = np.zeros(gap_s.size)
    for lag_s, walk in slow.items():
        # Also shorter gaps: a swing with the gap's period has returned to its start.
        walk_min = np.where(gap_s >= lag_s / math.sqrt(2.0), np.maximum(walk_min, walk), walk_min)
    return walk_min


def _where_it_changes(since_ns: Int64Array, solved: _Solved) -> Float64Array:
    """Walk of each step between the times from the rates around it, if the mean walk cannot explain them; else 0.

    A clock that warms up changes its rate fast at first and hardly later: one walk for the whole time is too weak for
    the beginning, where its intervals would be too narrow.
    """
    time_s = since_ns.astype(np.float64) * 1e-9
    middle_s = (time_s[1:] + time_s[:-1]) / 2
    walks = np.zeros(middle_s.size)
    for lag_s in CHANGE_LAGS_S:
        if lag_s > float(time_s[-1] - time_s[0]):
            break
        start_s = np.clip(middle_s - lag_s / 2, time_s[0], time_s[-1] - lag_s)
        ends_s = start_s, start_s + lag_s
        before, after = (np.interp(bound_s, time_s, solved.rate) for bound_s in ends_s)
        both_u2 = sum(np.interp(bound_s, time_s, solved.u_rate**2) for bound_s in ends_s)
        change2 = (after - before) ** 2
        surprising = change2 > SURPRISE**2 * (solved.walk * lag_s + both_u2)
        walks = np.maximum(walks, np.where(surprising, change2 / lag_s, 0.0))
    return walks


def _mean_rate(source_ns: Int64Array, target_ns: Int64Array) -> float:
    """Rate from the first to the last comparison; 1 if it is implausible."""
    span_ns = float(source_ns[-1] - source_ns[0])
    beyond_ns = float((target_ns[-1] - target_ns[0]) - (source_ns[-1] - source_ns[0]))
    return 1.0 + beyond_ns / span_ns if abs(beyond_ns) < 0.05 * span_ns else 1.0


def _with_gap_points(source_ns: Int64Array) -> tuple[Int64Array, npt.NDArray[np.intp]]:
    """Times with additional ones in each gap, and the indices of the comparisons among them."""
    steps = np.diff(source_ns)
    if steps.size == 0:
        return source_ns, np.zeros(1, np.intp)
    usual_ns = max(float(np.median(steps)), 1.0)
    wide = steps > GAP * usual_ns if steps.size >= 3 else np.ones(steps.size, np.bool_)
    bowed = (steps > max(BOWED * usual_ns, BOWED_S * 1e9)) & ~wide
    more = []
    for some, points in ((wide, GAP_POINTS), (bowed, BOWED_POINTS)):
        parts = np.arange(1, points + 1) / (points + 1)
        inside_ns = np.rint(parts * steps[some, None].astype(np.float64)).astype(np.int64)
        more.append((source_ns[:-1][some, None] + inside_ns).ravel())
    times_ns = np.unique(np.concatenate([source_ns, *more]))
    return times_ns, np.searchsorted(times_ns, source_ns)


def _weights(filtered: Filtered, scatter: Float64Array, walks: Float64Array) -> Float64Array:
    """Weight of each walk: likelihood of the comparisons times the prior, scaled to a maximum of 1."""
    degrees, squares = filtered.degrees + PRIOR_SCATTER, filtered.squares + PRIOR_SCATTER
    likelihood = -0.5 * (filtered.logs + degrees * np.log(scatter) + squares / scatter)
    decades = np.maximum(np.log10(walks * scatter / NS2_PER_S2 / USUAL_WANDER), 0.0)
    logarithm = likelihood - 0.5 * decades**2
    return np.asarray(np.exp(logarithm - logarithm.max()))


def _needed(course: Course, u_shared_ns: float) -> list[int]:
    """Points between which straight lines follow both the course and its uncertainty (Douglas and Peucker)."""
    time = (course.source_ns - course.source_ns[0]).astype(np.float64)
    u_ns = np.hypot(course.u_ns, u_shared_ns)
    kept, open_stretches = {0, time.size - 1}, [(0, time.size - 1)]
    while open_stretches:
        first, last = open_stretches.pop()
        if last - first < 2:
            continue
        inner, ends = slice(first + 1, last), [first, last]
        off_ns = np.zeros(last - first - 1)
        for column, part in ((course.away_ns, KNOT_TOLERANCE), (course.u_ns, KNOT_U_TOLERANCE)):
            straight = np.interp(time[inner], time[ends], column[ends])
            off_ns = np.maximum(off_ns, np.abs(column[inner] - straight) / (part * u_ns[inner]))
        worst = int(np.argmax(off_ns))
        if off_ns[worst] > 1.0:
            middle = first + 1 + worst
            kept.add(middle)
            open_stretches += [(first, middle), (middle, last)]
    return sorted(kept)
