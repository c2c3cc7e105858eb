"""Where a clock was against another, from scattered comparisons: its rate does a random walk.

The two-state clock model: an offset, and a rate that changes by a random walk. The Kalman filter and smoother give
the offset and the rate at every comparison, in gaps between them and at the ends, each with its variance. How much
the rate walks is not known beforehand: every strength of a grid is tried, and each counts by how well it foretells
the comparisons, so that a steady clock gets a line and a wandering one a curve.

Source: Zucca and Tavella, IEEE Trans. UFFC 52, 289 (2005) for the model; Bierman, Automatica 9, 503 (1973) for the
smoother; Wahba, J. R. Stat. Soc. B 45, 133 (1983) for what such intervals cover when the truth is a smooth curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.clocks.clock_map import ClockMap, Float64Array, Int64Array, Knot

RATE_PRIOR_U: Final = 3e-3
"""Standard uncertainty of "the rate is 1" before any evidence: a ceramic resonator's 0.5 %, rectangular."""
WANDERS: Final = 10.0 ** np.arange(-20.0, -6.9, 0.5)
"""Strengths of the walk that are tried, variance of the rate in a second [1/s]: 1e-14 is 6 ppm in an hour."""
USUAL_WANDER: Final = 1e-14
"""Stronger walks need evidence: their prior falls off by a standard deviation each decade."""
PRIOR_SCATTER: Final = 4.0
"""The stated uncertainties count as much as so many comparisons that scatter as they say."""
WEIGHT_MIN: Final = 0.005
GAP: Final = 4.0
"""Comparisons farther apart than so many typical distances leave a gap, in which knots may lie."""
GAP_POINTS: Final = 7
KNOT_TOLERANCE: Final = 0.25
"""Between knots the map is off from the smoothed course by at most this part of its uncertainty."""
NS2_PER_S2: Final = 1e18

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Course:
    """One clock against another at some times; each array of shape (m,)."""

    source_ns: Int64Array
    """The comparisons, and points in their gaps."""
    source_ref_ns: int
    target_ref_ns: int
    rate: float
    """Line that `away_ns` is the distance from."""
    away_ns: Float64Array
    u_ns: Float64Array
    local_rate: Float64Array
    u_rate: Float64Array
    wander_per_s: float
    """Variance that the rate gains in a second [1/s], mean over the strengths by their weight."""
    residual_ns: float
    """Root mean square distance of the comparisons from the course."""
    n: int
    """Comparisons."""

    def clock_map(self, source: str, target: str, method: str, u_shared_ns: float) -> ClockMap:
        """The map with as few knots as follow the course within a quarter of its uncertainty.

        Args:
            u_shared_ns: standard uncertainty that all comparisons share [ns].
        """
        kept = _needed(self, u_shared_ns)
        knots = tuple(
            Knot(int(self.source_ns[at]), *(float(column[at]) for column in self._columns())) for at in kept
        )
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
            knots=knots,
            wander_per_s=self.wander_per_s,
        )

    def _columns(self) -> tuple[Float64Array, ...]:
        return np.round(self.away_ns, 3), np.round(self.u_ns, 3), self.local_rate, self.u_rate


def follow(
    source_ns: Int64Array, target_ns: Int64Array, u_ns: Float64Array, wander_min_per_s: float = 0.0
) -> Course:
    """The course of the target clock against the source clock.

    Comparisons that scatter more than their uncertainties say widen those of the course.

    Args:
        source_ns, target_ns: comparisons in order of time, shape (n,), n >= 1.
        u_ns: standard uncertainty of each, independent of the others' [ns], positive.
        wander_min_per_s: what is known of the walk otherwise, for comparisons too few to tell [1/s].
    """
    rate = _mean_rate(source_ns, target_ns)
    source_ref_ns, target_ref_ns = int(source_ns[0]), int(target_ns[0])
    times_ns, place = _with_gap_points(source_ns)
    distance = (source_ns - source_ref_ns).astype(np.float64)
    away_ns = ((target_ns - target_ref_ns) - (source_ns - source_ref_ns)) - distance * (rate - 1.0)
    steps_s = np.diff(times_ns) * 1e-9
    seen = np.full(times_ns.size, np.nan)
    seen[place] = away_ns
    variance = np.full(times_ns.size, np.inf)
    variance[place] = u_ns**2
    walks = WANDERS[min(wander_min_per_s, WANDERS[-1]) <= WANDERS] * NS2_PER_S2
    # The scatter is a factor on the stated variances: walks that are tried relative to it stay on the grid.
    filtered = _filter(steps_s, seen, variance, walks)
    scatter = np.maximum((filtered.squares + PRIOR_SCATTER) / (filtered.degrees + PRIOR_SCATTER), 1.0)
    weights = _weights(filtered, scatter, walks)
    chosen = weights > WEIGHT_MIN * weights.max()
    weights = weights[chosen] / weights[chosen].sum()
    smooth = _smooth(steps_s, filtered.only(chosen), scatter[chosen])
    offset, u_offset = _mixture(smooth.offset, smooth.u2_offset, weights)
    ppb, u_ppb = _mixture(smooth.rate, smooth.u2_rate, weights)
    return Course(
        source_ns=times_ns,
        source_ref_ns=source_ref_ns,
        target_ref_ns=target_ref_ns,
        rate=rate,
        away_ns=offset,
        u_ns=u_offset,
        local_rate=rate + ppb * 1e-9,
        u_rate=u_ppb * 1e-9,
        wander_per_s=float(weights @ (walks * scatter)[chosen]) / NS2_PER_S2,
        residual_ns=math.sqrt(float(np.mean((offset[place] - away_ns) ** 2))),
        n=int(source_ns.size),
    )


def _mean_rate(source_ns: Int64Array, target_ns: Int64Array) -> float:
    """From the first to the last comparison; 1 if they are too close to tell."""
    span_ns = float(source_ns[-1] - source_ns[0])
    beyond_ns = float((target_ns[-1] - target_ns[0]) - (source_ns[-1] - source_ns[0]))
    return 1.0 + beyond_ns / span_ns if abs(beyond_ns) < 0.05 * span_ns else 1.0


def _with_gap_points(source_ns: Int64Array) -> tuple[Int64Array, npt.NDArray[np.intp]]:
    """The times with some more in each gap, and where the comparisons are among them."""
    steps = np.diff(source_ns)
    if steps.size == 0:
        return source_ns, np.zeros(1, np.intp)
    gaps = np.flatnonzero(steps > GAP * max(float(np.median(steps)), 1.0)).tolist()
    if steps.size < 3:
        gaps = list(range(steps.size))
    parts = np.arange(1, GAP_POINTS + 1) / (GAP_POINTS + 1)
    more = [source_ns[at] + np.rint(parts * float(steps[at])).astype(np.int64) for at in gaps]
    times_ns = np.unique(np.concatenate([source_ns, *more]))
    return times_ns, np.searchsorted(times_ns, source_ns)


@dataclass(frozen=True)
class _Filtered:
    """State after each time, for each walk: arrays of shape (m, walks); the likelihood's parts of shape (walks,)."""

    states: tuple[Float64Array, ...]
    """offset, rate, and their variances: offset, both, rate."""
    gain: tuple[Float64Array, Float64Array]
    inverse: Float64Array
    """One over the variance of what was foretold; 0 where nothing was seen."""
    surprise: Float64Array
    """Seen less foretold."""
    squares: Float64Array
    logs: Float64Array
    degrees: float

    def only(self, chosen: BoolArray) -> _Filtered:
        """Some of the walks."""
        return _Filtered(
            tuple(each[:, chosen] for each in self.states),
            (self.gain[0][:, chosen], self.gain[1][:, chosen]),
            self.inverse[:, chosen],
            self.surprise[:, chosen],
            self.squares[chosen],
            self.logs[chosen],
            self.degrees,
        )


def _filter(
    steps_s: Float64Array, seen: Float64Array, variance: Float64Array, walks: Float64Array
) -> _Filtered:
    """Forward in time, from the first comparison and a rate that is hardly known."""
    shape = (seen.size, walks.size)
    states = tuple(np.empty(shape) for _ in range(5))
    gains = np.zeros(shape), np.zeros(shape)
    inverse, surprise = np.zeros(shape), np.zeros(shape)
    offset, rate = np.full(walks.size, seen[0]), np.zeros(walks.size)
    p00, p01, p11 = (
        np.full(walks.size, variance[0]),
        np.zeros(walks.size),
        np.full(walks.size, 1e18 * RATE_PRIOR_U**2),
    )
    for number, (step, value, noise) in enumerate(
        zip([0.0, *steps_s.tolist()], seen.tolist(), variance.tolist(), strict=True)
    ):
        if number:
            offset = offset + step * rate
            p00 = p00 + step * (2 * p01 + step * p11) + walks * (step**3 / 3)
            p01 = p01 + step * p11 + walks * (step**2 / 2)
            p11 = p11 + walks * step
            if noise < math.inf:
                inverse[number] = precision = 1.0 / (p00 + noise)
                surprise[number] = error = value - offset
                gains[0][number] = gain = p00 * precision
                gains[1][number] = turn = p01 * precision
                offset, rate = offset + gain * error, rate + turn * error
                p11 = p11 - turn * p01
                p00, p01 = p00 * (1.0 - gain), p01 * (1.0 - gain)
        for kept, value_now in zip(states, (offset, rate, p00, p01, p11), strict=True):
            kept[number] = value_now
    # The first comparison is the start, the second has a rate to find: neither says anything of the scatter.
    told = np.flatnonzero(np.isfinite(variance))[2:]
    squares = (surprise[told] ** 2 * inverse[told]).sum(axis=0)
    logs = -np.log(inverse[told]).sum(axis=0)
    return _Filtered(states, gains, inverse, surprise, squares, logs, float(told.size))


def _weights(filtered: _Filtered, scatter: Float64Array, walks: Float64Array) -> Float64Array:
    """How much each walk counts: likelihood of the comparisons times the prior, the greatest 1."""
    degrees, squares = filtered.degrees + PRIOR_SCATTER, filtered.squares + PRIOR_SCATTER
    likelihood = -0.5 * (filtered.logs + degrees * np.log(scatter) + squares / scatter)
    decades = np.maximum(np.log10(walks * scatter / NS2_PER_S2 / USUAL_WANDER), 0.0)
    logarithm = likelihood - 0.5 * decades**2
    return np.asarray(np.exp(logarithm - logarithm.max()))


@dataclass(frozen=True)
class _Smoothed:
    offset: Float64Array
    rate: Float64Array
    u2_offset: Float64Array
    u2_rate: Float64Array


def _smooth(steps_s: Float64Array, filtered: _Filtered, scatter: Float64Array) -> _Smoothed:
    """Backward in time: what the later comparisons add (modified Bryson-Frazier, no matrix is inverted)."""
    offset, rate, p00, p01, p11 = (each.copy() for each in filtered.states)
    size, walks = offset.shape
    f00, f01, f11 = (each.copy() for each in (p00, p01, p11))
    l0, l1, m00, m01, m11 = (np.zeros(walks) for _ in range(5))
    for number in range(size - 1, -1, -1):
        a, b, c = f00[number], f01[number], f11[number]
        offset[number] -= a * l0 + b * l1
        rate[number] -= b * l0 + c * l1
        ma, mb = a * m00 + b * m01, a * m01 + b * m11
        mc, md = b * m00 + c * m01, b * m01 + c * m11
        p00[number] = a - (ma * a + mb * b)
        p11[number] = c - (mc * b + md * c)
        if number == 0:
            break
        step = float(steps_s[number - 1])
        precision, kept, turn = (
            filtered.inverse[number],
            1.0 - filtered.gain[0][number],
            filtered.gain[1][number],
        )
        l0 = kept * l0 - turn * l1 - precision * filtered.surprise[number]
        n01 = kept * m01 - turn * m11
        m00 = kept * (kept * m00 - turn * m01) - turn * n01 + precision
        m01 = n01
        l1 = l1 + step * l0
        m11 = m11 + step * (2 * m01 + step * m00)
        m01 = m01 + step * m00
    if size > 1:
        # At the start the filter knew nothing of the rate: the difference of two huge numbers is lost.
        rate[0], p11[0] = rate[1], p11[1]
    floor = np.finfo(np.float64).tiny
    return _Smoothed(offset, rate, np.maximum(p00, floor) * scatter, np.maximum(p11, floor) * scatter)


def _mixture(
    value: Float64Array, variance: Float64Array, weights: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Mean and standard uncertainty over the walks, what they disagree about included."""
    mean = value @ weights
    spread = ((value - mean[:, None]) ** 2) @ weights
    return mean, np.sqrt(variance @ weights + spread)


def _needed(course: Course, u_shared_ns: float) -> list[int]:
    """The points between which straight lines follow both the course and its uncertainty (Douglas and Peucker)."""
    time = (course.source_ns - course.source_ns[0]).astype(np.float64)
    allowed_ns = KNOT_TOLERANCE * np.hypot(course.u_ns, u_shared_ns)
    kept, open_stretches = {0, time.size - 1}, [(0, time.size - 1)]
    while open_stretches:
        first, last = open_stretches.pop()
        if last - first < 2:
            continue
        inner, ends = slice(first + 1, last), [first, last]
        off_ns = np.zeros(last - first - 1)
        for column in (course.away_ns, course.u_ns):
            straight = np.interp(time[inner], time[ends], column[ends])
            off_ns = np.maximum(off_ns, np.abs(column[inner] - straight) / allowed_ns[inner])
        worst = int(np.argmax(off_ns))
        if off_ns[worst] > 1.0:
            middle = first + 1 + worst
            kept.add(middle)
            open_stretches += [(first, middle), (middle, last)]
    return sorted(kept)
