"""The load signature, pseudo-random patterns of busy and idle, located in the power trace; a clock map from it.

A pattern is first located by correlation. Then the positions of all patterns and the supply's lag are fitted together.
Each sample is compared with the mean of the played load over its own conversion, so that an edge is placed to a small
part of the sampling period. Around each pattern the power may drift linearly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import AlignmentError
from opjoule.clocks.clock_map import ClockMap, Float64Array, Int64Array
from opjoule.clocks.wandering_clock import follow

TAPS: Final = {5: 0x12, 6: 0x21, 7: 0x41, 8: 0x8E, 9: 0x108, 10: 0x204, 11: 0x402}
"""Feedback masks of maximal-length shift registers (Galois form) by their order."""
STEPS_A_CHIP: Final = 4
PEAK_MIN: Final = 0.5
"""Least correlation that counts as the pattern."""
RIVAL_MAX: Final = 0.7
"""Fraction of the peak above which a second position makes the result ambiguous."""


def maximal_sequence(order: int) -> npt.NDArray[np.int8]:
    """One period of a maximal-length sequence: chips of 0 or 1, shape (2^order - 1,).

    Source: Golomb, Shift Register Sequences (1967); the autocorrelation is -1/(2^order - 1) off its peak.
    """
    state, chips = 1, np.empty((1 << order) - 1, np.int8)
    for index in range(chips.size):
        chips[index] = state & 1
        state = (state >> 1) ^ (TAPS[order] if state & 1 else 0)
    return chips


def signature_chips(number: int, order: int = 8) -> npt.NDArray[np.int8]:
    """A sequence by its number, from a family with little cross-correlation: chips, shape (2^order - 1,).

    Each pattern of a run has its own number, so that its position in the trace is unique.
    Source: Gold, IEEE Trans. Inf. Theory 13, 619 (1967), here with a sequence and its own reverse.
    """
    sequence = maximal_sequence(order)
    return sequence ^ np.roll(sequence[::-1], number)


@dataclass(frozen=True)
class LoadPattern:
    """Busy and idle stretches as the board played them.

    The first change goes to busy; before it and after the last one the board is idle.
    """

    change_ns: Int64Array
    """Times of the changes on the board's clock, shape (n,), n even, increasing."""

    def __post_init__(self) -> None:
        if self.change_ns.size % 2 or self.change_ns.size < 2 or bool(np.any(np.diff(self.change_ns) <= 0)):
            raise ValueError("a load pattern needs an even number of changes, in order")

    @classmethod
    def of_chips(cls, chips: npt.NDArray[np.int8], chip_ns: int, start_ns: int) -> LoadPattern:
        """The pattern that plays chips of equal length, shape (n,), 1 for busy."""
        steps = np.diff(chips, prepend=0, append=0)
        return cls((start_ns + chip_ns * np.flatnonzero(steps)).astype(np.int64))

    @property
    def start_ns(self) -> int:
        """First change [board_ns]."""
        return int(self.change_ns[0])

    @property
    def duration_ns(self) -> int:
        """Time from the first change to the last."""
        return int(self.change_ns[-1] - self.change_ns[0])

    @property
    def chip_ns(self) -> int:
        """Length of a chip, from half of a maximal sequence's stretches, so that a few late changes have no effect."""
        return int(np.quantile(np.diff(self.change_ns), 0.25))

    @cached_property
    def _change_s(self) -> Float64Array:
        return np.asarray((self.change_ns - self.start_ns) * 1e-9, np.float64)

    def integral_s(self, time_s: Float64Array, lag_s: float = 0.0) -> Float64Array:
        """Integral of the load (0 idle, 1 busy) up to times after the pattern's start [s].

        `lag_s`: time constant with which the supply current follows the load; 0 for no lag.
        """
        at_change, value = self._states(lag_s)
        latest = np.searchsorted(self._change_s, time_s, side="right") - 1
        inside = latest >= 0
        latest = np.where(inside, latest, 0)
        since = np.maximum(time_s - self._change_s[latest], 0.0)
        level = np.asarray(1 - latest % 2, np.float64)
        integral = at_change[latest] + _follow(level, value[latest], since, lag_s)
        return np.where(inside, integral, 0.0)

    def _states(self, lag_s: float) -> tuple[Float64Array, Float64Array]:
        """Integral and value of the load at each change."""
        integral, value = np.zeros(self.change_ns.size), np.zeros(self.change_ns.size)
        spans = np.diff(self._change_s)
        kept = np.exp(-spans / lag_s) if lag_s > 0 else np.zeros(spans.size)
        for index, span in enumerate(spans.tolist()):
            level = 1.0 - index % 2
            value[index + 1] = level + (value[index] - level) * kept[index]
            lagging = (value[index] - level) * lag_s * (1 - kept[index])
            integral[index + 1] = integral[index] + level * span + lagging
        return integral, value


def _follow(level: Float64Array, value: Float64Array, since: Float64Array, lag_s: float) -> Float64Array:
    """Integral since a change of a first-order step from `value` to `level`."""
    if lag_s <= 0:
        return level * since
    return np.asarray(level * since + (value - level) * lag_s * -np.expm1(-since / lag_s), np.float64)


@dataclass(frozen=True)
class Find:
    """Position of a pattern in a trace."""

    start_meter_ns: int
    """Time of the pattern's first change, within a step of the search."""
    step_ns: int
    peak: float
    """Normalised correlation there, 1 for a perfect copy."""
    rival: float
    """Greatest correlation elsewhere."""


def find_pattern(meter_ns: Int64Array, power_w: Float64Array, pattern: LoadPattern) -> Find:
    """The only position in a trace where the pattern was played.

    Args:
        meter_ns, power_w: samples, shape (n,), increasing, without lost samples.
    Raises: AlignmentError: the trace is too short, or contains the pattern not at all or more than once.
    """
    step_ns = max(pattern.chip_ns // STEPS_A_CHIP, 1)
    power = _resampled(meter_ns, power_w, step_ns)
    edges_s = np.asarray(np.arange(-(-pattern.duration_ns // step_ns) + 1) * step_ns * 1e-9, np.float64)
    template = np.diff(pattern.integral_s(edges_s))
    if power.size < template.size:
        raise AlignmentError(
            f"load signature of {pattern.duration_ns * 1e-9:.1f} s in a trace of "
            f"{power.size * step_ns * 1e-9:.1f} s: record longer"
        )
    likeness = _normalised_correlation(power, template)
    best = int(np.argmax(likeness))
    near = slice(max(best - 2 * STEPS_A_CHIP, 0), best + 2 * STEPS_A_CHIP + 1)
    others = likeness.copy()
    others[near] = -1.0
    peak = float(likeness[best])
    rival = max(float(others.max()), 0.0) if others.size > near.stop - near.start else 0.0
    if peak < PEAK_MIN:
        raise AlignmentError(
            f"load signature not found in the power trace: correlation {peak:.2f}, "
            f"at least {PEAK_MIN:g} is needed: was the board idle around it?"
        )
    if rival > RIVAL_MAX * peak:
        raise AlignmentError(
            f"load signature fits in more than one place of the trace (correlation {peak:.2f} and "
            f"{rival:.2f}): play each pattern once"
        )
    return Find(int(meter_ns[0]) + best * step_ns, step_ns, peak, rival)


def _resampled(meter_ns: Int64Array, power_w: Float64Array, step_ns: int) -> Float64Array:
    """Mean power in steps of equal length; steps without a sample repeat the preceding one."""
    place = (meter_ns - meter_ns[0]) // step_ns
    count = np.bincount(place)
    total = np.bincount(place, weights=power_w)
    filled = np.maximum.accumulate(np.where(count > 0, np.arange(count.size), 0))
    return np.asarray((total / np.maximum(count, 1))[filled], np.float64)


def _normalised_correlation(signal: Float64Array, template: Float64Array) -> Float64Array:
    """Pearson correlation of the template with each stretch of the signal of the same length."""
    size = template.size
    shape = template - template.mean()
    centred = signal - signal.mean()
    length = 1 << int(np.ceil(np.log2(signal.size + size)))
    product = np.fft.irfft(np.fft.rfft(centred, length) * np.conj(np.fft.rfft(shape, length)), length)
    running, squares = (np.concatenate([[0.0], np.cumsum(x)]) for x in (centred, centred**2))
    sums, sums_of_squares = running[size:] - running[:-size], squares[size:] - squares[:-size]
    variance = np.maximum(sums_of_squares - sums**2 / size, 0.0)
    floor = 1e-12 * float(np.max(variance, initial=0.0)) + 1e-300
    scale = np.sqrt(np.maximum(variance, floor) * (shape @ shape))
    return np.asarray(product[: sums.size] / scale, np.float64)


RATE_MAX: Final = 9e-3
"""Greatest deviation from 1 of the rate between patterns of one run."""
MARGIN_CHIPS: Final = 4
"""Idle chips before and after a pattern that are included in its fit."""
SCAN_STEPS: Final = 8
"""Steps of the fine scan on either side, between two steps of the correlation."""
ROUNDS: Final = 12
SETTLED_S: Final = 2e-7
HUBER: Final = 2.0
"""Distance of a sample from the model, in typical distances, above which its weight decreases."""
FIRST_LAG_S: Final = 1e-4
LAG_MAX_S: Final = 1e-3
"""Slowest response of a supply that can be distinguished from a delay of the board."""
DELAY_U_NS: Final = 10_000.0
"""Standard uncertainty of the time from the board's time stamp to the load's start on all cores."""


@dataclass(frozen=True)
class SignatureFit:
    """Positions of the patterns and quality of their fit."""

    board_ns: Int64Array
    """Located moments: the middle of each pattern; for a single pattern two moments, which also give its rate."""
    meter_ns: Int64Array
    u_ns: Float64Array
    """Standard uncertainty of each position, independent of the others'."""
    u_shared_ns: float
    """Standard uncertainty common to all positions."""
    changes: int
    """Changes of the load in all patterns."""
    peak: float
    """Least correlation of the patterns with the trace."""
    rival: float
    """Greatest correlation at another position, as a fraction of the peak."""
    step_w: float
    """Power when busy less power when idle [W]."""
    lag_ns: float
    """Time constant with which the supply current follows the load."""

    @property
    def clock_map(self) -> ClockMap:
        """Map from board to meter, for clocks with the usual wander."""
        return self.map_with(0.0)

    def map_with(self, wander_min_per_s: float) -> ClockMap:
        """Map from board to meter, with an uncertainty between and beyond the patterns that follows from the wander.

        `wander_min_per_s`: wander according to other evidence [1/s], because two patterns do not show it.
        """
        course = follow(self.board_ns, self.meter_ns, self.u_ns, wander_min_per_s)
        made = course.clock_map("board", "meter", "signature", self.u_shared_ns)
        residual_ns = float(np.sqrt(np.mean(self.u_ns**2) * self.changes))
        return replace(made, residual_ns=residual_ns, n=self.changes)


@dataclass(frozen=True)
class _Piece:
    """The samples around one pattern."""

    pattern: LoadPattern
    start_meter_ns: int
    """Start of the pattern from the coarse search."""
    sample_s: Float64Array
    """Centres of the samples after that [s]."""
    power_w: Float64Array
    block: Int64Array
    """Number of each sample's chip-long stretch: errors within a stretch are not independent."""


def fit_signature(
    meter_ns: Int64Array,
    power_w: Float64Array,
    patterns: Sequence[LoadPattern],
    conversion_ns: int,
    u_delay_ns: float = DELAY_U_NS,
) -> SignatureFit:
    """Map from the board's clock to the meter's, from patterns played before and after the run.

    Args:
        meter_ns: centres of the samples, increasing, without lost samples; power_w: their power, or current.
        patterns: in order of time, each with its own sequence.
        conversion_ns: averaging time of a sample, around its centre.
    Raises: AlignmentError: a pattern is not found, or found more than once, or the positions are inconsistent.
    """
    if not patterns:
        raise AlignmentError("load signature: the board played no pattern")
    finds = [find_pattern(meter_ns, power_w, pattern) for pattern in patterns]
    _check_order(patterns, finds)
    pieces = [_cut_out(meter_ns, power_w, *both) for both in zip(patterns, finds, strict=True)]
    fit = _Fit(pieces, conversion_ns * 1e-9)
    shifts_s = [fit.scan(number, find.step_ns * 1e-9) for number, find in enumerate(finds)]
    solved = fit.solve(shifts_s)
    board_ns, meter_ns, u_ns = solved.moments_ns()
    return SignatureFit(
        board_ns,
        meter_ns,
        u_ns,
        # A lag cannot be distinguished from blur: all of the lag may be an offset.
        u_shared_ns=math.hypot(u_delay_ns, solved.lag_s * 1e9 / math.sqrt(3.0)),
        changes=sum(pattern.change_ns.size for pattern in patterns),
        peak=min(find.peak for find in finds),
        rival=max(find.rival / find.peak for find in finds),
        step_w=float(np.mean(solved.steps_w)),
        lag_ns=solved.lag_s * 1e9,
    )


def _check_order(patterns: Sequence[LoadPattern], finds: Sequence[Find]) -> None:
    """Raises AlignmentError if the positions of two patterns imply a rate that no clock has."""
    for index in range(1, len(patterns)):
        board_ns = patterns[index].start_ns - patterns[0].start_ns
        meter_ns = finds[index].start_meter_ns - finds[0].start_meter_ns
        slack_ns = 2 * finds[index].step_ns
        if abs(meter_ns - board_ns) > RATE_MAX * abs(board_ns) + slack_ns:
            raise AlignmentError(
                f"load signatures are {board_ns * 1e-9:.3f} s apart on the board and {meter_ns * 1e-9:.3f} s "
                "in the trace: they are not from one run"
            )


def _cut_out(meter_ns: Int64Array, power_w: Float64Array, pattern: LoadPattern, find: Find) -> _Piece:
    margin_ns = MARGIN_CHIPS * pattern.chip_ns
    bounds = [find.start_meter_ns - margin_ns, find.start_meter_ns + pattern.duration_ns + margin_ns]
    inside = slice(*np.searchsorted(meter_ns, bounds).tolist())
    since_ns = meter_ns[inside] - find.start_meter_ns
    sample_s = np.asarray(since_ns * 1e-9, np.float64)
    return _Piece(pattern, find.start_meter_ns, sample_s, power_w[inside], since_ns // pattern.chip_ns)


@dataclass(frozen=True)
class _Solution:
    """Positions of the patterns' middles."""

    board_ns: Int64Array
    meter_ns: Int64Array
    slope: float
    """Rate minus 1."""
    lag_s: float
    covariance: Float64Array
    """Covariance of the positions [s], and of the slope if it was fitted."""
    steps_w: Sequence[float]

    def moments_ns(self) -> tuple[Int64Array, Int64Array, Float64Array]:
        """Times on the two clocks and standard uncertainties of independent positions.

        A single pattern has its own rate and gives two moments. They are at equal distances from the moment at which
        offset and rate are uncorrelated, such that both keep their uncertainty.
        """
        u_ns = np.sqrt(np.diag(self.covariance)) * 1e9
        if self.board_ns.size > 1:
            return self.board_ns, self.meter_ns, u_ns[: self.board_ns.size]
        (variance, shared), (_, rate_variance) = self.covariance.tolist()
        away_s = -shared / rate_variance
        u_offset_s = math.sqrt(max(variance - shared**2 / rate_variance, 1e-18))
        distance_s = away_s + u_offset_s / math.sqrt(rate_variance) * np.array([-1.0, 1.0])
        board_ns = self.board_ns + np.rint(distance_s * 1e9).astype(np.int64)
        meter_ns = self.meter_ns + np.rint(distance_s * (1.0 + self.slope) * 1e9).astype(np.int64)
        return board_ns, meter_ns, np.full(2, math.sqrt(2.0) * u_offset_s * 1e9)


class _Fit:
    """Least squares over all patterns: lag, and for each pattern position, level, drift and step.

    A position is that of the pattern's middle, which a wrong rate inside the pattern does not move. Several patterns
    use the rate from the first to the last; for a single pattern the rate is fitted.
    """

    def __init__(self, pieces: Sequence[_Piece], conversion_s: float) -> None:
        self._pieces = pieces
        self._half_s = conversion_s / 2
        self._middle_s = [piece.pattern.duration_ns * 0.5e-9 for piece in pieces]
        self._weights = [np.ones(piece.power_w.size) for piece in pieces]

    def scan(self, number: int, step_s: float) -> float:
        """Shift of one pattern from its coarse position with the best fit [s]."""
        shifts = np.linspace(-2 * step_s, 2 * step_s, 4 * SCAN_STEPS + 1)
        errors = [float(np.sum(self._residual(number, shift, 0.0, FIRST_LAG_S)[0] ** 2)) for shift in shifts]
        return float(shifts[int(np.argmin(errors))])

    def solve(self, shifts_s: Sequence[float]) -> _Solution:
        """Gauss-Newton from the scanned shifts, with less weight for samples far from the model."""
        alone = [0.0] if len(self._pieces) == 1 else []
        at = np.array([*shifts_s, *alone, FIRST_LAG_S])
        for _ in range(ROUNDS):
            self._weigh(at)
            residual, jacobian = self._linearised(at)
            step, *_ = np.linalg.lstsq(jacobian, -residual, rcond=None)
            at = at + step
            at[-1] = min(max(at[-1], 1e-6), LAG_MAX_S)
            if np.all(np.abs(step[:-1]) < SETTLED_S):
                break
        return self._solution(at)

    def _slope(self, at: Float64Array) -> float:
        """Rate minus 1 inside the patterns."""
        if len(self._pieces) == 1:
            return float(at[1])
        board_ns, meter_ns = (int(places_ns[-1] - places_ns[0]) for places_ns in self._places_ns(at))
        return float(meter_ns - board_ns) / float(board_ns)

    def _places_ns(self, at: Float64Array) -> tuple[Int64Array, Int64Array]:
        """The patterns' middles on the two clocks."""
        half_ns = np.array([piece.pattern.duration_ns // 2 for piece in self._pieces], np.int64)
        starts_ns = [(piece.pattern.start_ns, piece.start_meter_ns) for piece in self._pieces]
        board_ns, meter_ns = np.array(starts_ns, np.int64).T + half_ns
        return board_ns, meter_ns + np.rint(at[: half_ns.size] * 1e9).astype(np.int64)

    def _residual(self, number: int, shift_s: float, slope: float, lag_s: float) -> tuple[Float64Array, float]:
        """Weighted residuals of one pattern's samples, and its step [W]."""
        piece, weight = self._pieces[number], self._weights[number]
        middle_s = self._middle_s[number]
        centre_s = middle_s + (piece.sample_s - middle_s - shift_s) / (1.0 + slope)
        later = piece.pattern.integral_s(centre_s + self._half_s, lag_s)
        load = (later - piece.pattern.integral_s(centre_s - self._half_s, lag_s)) / (2 * self._half_s)
        model = np.stack([np.ones(load.size), centre_s - centre_s.mean(), load], axis=1)
        solved = np.linalg.solve((model.T * weight) @ model, (model.T * weight) @ piece.power_w)
        return np.sqrt(weight) * (piece.power_w - model @ solved), float(solved[2])

    def _residuals(self, at: Float64Array) -> Float64Array:
        slope = self._slope(at)
        parts = [self._residual(number, at[number], slope, at[-1])[0] for number in range(len(self._pieces))]
        return np.concatenate(parts)

    def _linearised(self, at: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Residuals and their derivatives with respect to the positions, the slope if it is fitted, and the lag."""
        residual = self._residuals(at)
        steps = [5e-6] * at.size
        if len(self._pieces) == 1:
            steps[1] = 1e-6
        columns = []
        for index, step in enumerate(steps):
            moved, back = at.copy(), at.copy()
            moved[index] += step
            back[index] = max(at[index] - step, 1e-6) if index == at.size - 1 else at[index] - step
            columns.append((self._residuals(moved) - self._residuals(back)) / (moved[index] - back[index]))
        return residual, np.stack(columns, axis=1)

    def _weigh(self, at: Float64Array) -> None:
        """Sets the Huber weights from the present residuals."""
        slope = self._slope(at)
        for number, weight in enumerate(self._weights):
            weight[:] = 1.0
            distance = np.abs(self._residual(number, at[number], slope, at[-1])[0])
            limit = HUBER * 1.4826 * float(np.median(distance)) + 1e-12
            weight[:] = np.minimum(1.0, limit / np.maximum(distance, 1e-12))

    def _solution(self, at: Float64Array) -> _Solution:
        residual, jacobian = self._linearised(at)
        inverse = np.linalg.pinv(jacobian.T @ jacobian)
        covariance = inverse @ self._blocked(jacobian * residual[:, None]) @ inverse
        slope, lag_s = self._slope(at), float(at[-1])
        numbers = range(len(self._pieces))
        steps_w = [self._residual(number, at[number], slope, lag_s)[1] for number in numbers]
        return _Solution(
            *self._places_ns(at),
            slope=slope,
            lag_s=lag_s,
            covariance=covariance[:-1, :-1],
            steps_w=steps_w,
        )

    def _blocked(self, scores: Float64Array) -> Float64Array:
        """Covariance of the sum of scores, with the samples of one chip as a cluster."""
        total, first = np.zeros((scores.shape[1], scores.shape[1])), 0
        for piece in self._pieces:
            of_piece = scores[first : first + piece.block.size]
            first += piece.block.size
            starts = np.flatnonzero(np.diff(piece.block, prepend=piece.block[0] - 1))
            sums = np.add.reduceat(of_piece, starts)
            total += sums.T @ sums
        return total
