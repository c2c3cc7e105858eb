"""Clock map from the load signature: patterns of busy and idle found again in the power trace.

A pattern is first found by correlation. Then offset, rate and the supply's lag are fitted together: each
sample is compared with the mean of the played load over the sample's own conversion, so that an edge is
placed to a small part of the sampling period. Around each pattern the power may drift in a straight line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.correlation import Find, find_pattern
from opjoule.clocks.line_fit import Float64Array, Int64Array
from opjoule.clocks.load_pattern import LoadPattern
from opjoule.errors import AlignmentError

RATE_MAX: Final = 6e-3
"""Patterns whose places imply a rate farther from 1 are not of one run."""
MARGIN_CHIPS: Final = 4
"""Idle before and after a pattern that is fitted with it."""
SCAN_STEPS: Final = 8
"""Steps of the scan between two steps of the correlation, to either side."""
ROUNDS: Final = 12
SETTLED_S: Final = 2e-7
SETTLED_SLOPE: Final = 2e-8
HUBER: Final = 2.0
"""Samples farther from the model than so many typical distances weigh less."""
FIRST_LAG_S: Final = 1e-4
LAG_MAX_S: Final = 1e-3
"""A supply that follows its load more slowly than this cannot be told from a late board."""
DELAY_U_NS: Final = 10_000.0
"""Standard uncertainty of the time from the board's stamp to the load's start on all cores."""


@dataclass(frozen=True)
class SignatureFit:
    """The map and how well the patterns were seen."""

    clock_map: ClockMap
    """board -> meter"""
    peak: float
    """Least correlation of the patterns with the trace."""
    rival: float
    """Greatest correlation at another place, as part of the peak."""
    step_w: float
    """Power of busy less power of idle [W]."""
    lag_ns: float
    """Time constant with which the supply current follows the load."""


@dataclass(frozen=True)
class _Piece:
    """The samples around one pattern."""

    pattern: LoadPattern
    start_meter_ns: int
    """Where the coarse search puts the pattern's start."""
    sample_s: Float64Array
    """Centres of the samples after that [s]."""
    power_w: Float64Array
    block: Int64Array
    """Number of the chip-long stretch of each sample: errors inside one are not independent."""


def fit_signature(
    meter_ns: Int64Array,
    power_w: Float64Array,
    patterns: Sequence[LoadPattern],
    conversion_ns: int,
    u_delay_ns: float = DELAY_U_NS,
) -> SignatureFit:
    """Map from the board's clock to the meter's, from patterns played before and after the run.

    Args:
        meter_ns: centres of the samples, increasing; lost samples left out.
        power_w: power, or current, shape (n,).
        patterns: in order of time, each with a sequence of its own.
        conversion_ns: time over which a sample averages, around its centre.
        u_delay_ns: standard uncertainty of the delay from the board's stamp to the load.
    Raises: AlignmentError: a pattern is not found, or in more than one place, or the places contradict.
    """
    if not patterns:
        raise AlignmentError("load signature: the board played no pattern")
    finds = [find_pattern(meter_ns, power_w, pattern) for pattern in patterns]
    _check_order(patterns, finds)
    pieces = [_cut_out(meter_ns, power_w, *both) for both in zip(patterns, finds, strict=True)]
    fit = _Fit(pieces, conversion_ns * 1e-9)
    shifts_s = [fit.scan(number, find.step_ns * 1e-9) for number, find in enumerate(finds)]
    solved = fit.solve(shifts_s)
    return SignatureFit(
        clock_map=solved.clock_map(u_delay_ns),
        peak=min(find.peak for find in finds),
        rival=max(find.rival / find.peak for find in finds),
        step_w=float(np.mean(solved.steps_w)),
        lag_ns=solved.lag_s * 1e9,
    )


def _check_order(patterns: Sequence[LoadPattern], finds: Sequence[Find]) -> None:
    """Raises AlignmentError if the places of two patterns imply a rate that no clock has."""
    for index in range(1, len(patterns)):
        board_ns = patterns[index].start_ns - patterns[0].start_ns
        meter_ns = finds[index].start_meter_ns - finds[0].start_meter_ns
        slack_ns = 2 * finds[index].step_ns
        if abs(meter_ns - board_ns) > RATE_MAX * abs(board_ns) + slack_ns:
            raise AlignmentError(
                f"load signatures lie {board_ns * 1e-9:.3f} s apart on the board and {meter_ns * 1e-9:.3f} s in "
                "the trace: they are not of one run"
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
    """Place of the patterns: meter = start + offset + rate * distance from the first pattern's start."""

    board_ref_ns: int
    meter_ref_ns: int
    offset_s: float
    slope: float
    """Rate less 1."""
    lag_s: float
    covariance: Float64Array
    """Of offset [s] and slope, shape (2, 2)."""
    steps_w: Sequence[float]
    residual_s: float
    changes: int

    def clock_map(self, u_delay_ns: float) -> ClockMap:
        """The map with its reference where offset and rate are uncorrelated."""
        variance, shared, rate_variance = self.covariance[0, 0], self.covariance[0, 1], self.covariance[1, 1]
        away_s = -shared / rate_variance
        u_offset_ns = math.sqrt(max(variance - shared**2 / rate_variance, 0.0)) * 1e9
        return ClockMap(
            source="board",
            target="meter",
            source_ref_ns=self.board_ref_ns + round(away_s * 1e9),
            target_ref_ns=self.meter_ref_ns + round((self.offset_s + away_s * (1 + self.slope)) * 1e9),
            rate=1.0 + self.slope,
            # Whether the current lags or is blurred is not seen: all of the lag may be an offset.
            u_offset_ns=math.hypot(u_offset_ns, u_delay_ns, self.lag_s * 1e9 / math.sqrt(3.0)),
            u_rate=math.sqrt(rate_variance),
            method="signature",
            residual_ns=self.residual_s * 1e9,
            n=self.changes,
        )


class _Fit:
    """Least squares over all patterns: offset, slope and lag, and for each pattern level, drift and step."""

    def __init__(self, pieces: Sequence[_Piece], conversion_s: float) -> None:
        self._pieces = pieces
        self._half_s = conversion_s / 2
        first = pieces[0]
        self._board_s = [(piece.pattern.start_ns - first.pattern.start_ns) * 1e-9 for piece in pieces]
        self._meter_s = [(piece.start_meter_ns - first.start_meter_ns) * 1e-9 for piece in pieces]
        self._weights = [np.ones(piece.power_w.size) for piece in pieces]

    def scan(self, number: int, step_s: float) -> float:
        """Shift of one pattern against the coarse find that fits best [s]."""
        shifts = np.linspace(-2 * step_s, 2 * step_s, 4 * SCAN_STEPS + 1)
        errors = [float(np.sum(self._residual(number, shift, 0.0, FIRST_LAG_S)[0] ** 2)) for shift in shifts]
        return float(shifts[int(np.argmin(errors))])

    def solve(self, shifts_s: Sequence[float]) -> _Solution:
        """Gauss-Newton from the scanned shifts, samples far from the model weighed down."""
        offset_s, slope, lag_s = shifts_s[0], 0.0, FIRST_LAG_S
        if len(self._pieces) > 1:
            moved = self._meter_s[-1] + shifts_s[-1] - shifts_s[0]
            slope = moved / self._board_s[-1] - 1.0
        at = np.array([offset_s, slope, lag_s])
        for _ in range(ROUNDS):
            self._weigh(at)
            residual, jacobian = self._linearised(at)
            step, *_ = np.linalg.lstsq(jacobian, -residual, rcond=None)
            at = at + step
            at[2] = min(max(at[2], 1e-6), LAG_MAX_S)
            if abs(step[0]) < SETTLED_S and abs(step[1]) < SETTLED_SLOPE:
                break
        return self._solution(at)

    def _shift_s(self, number: int, offset_s: float, slope: float) -> float:
        """Where a pattern's start lies after its coarse place."""
        return offset_s + self._board_s[number] * (1.0 + slope) - self._meter_s[number]

    def _residual(
        self, number: int, shift_s: float, slope: float, lag_s: float
    ) -> tuple[Float64Array, float]:
        """Weighted distance of one pattern's samples from the model, and its step [W]."""
        piece, weight = self._pieces[number], self._weights[number]
        centre_s = (piece.sample_s - shift_s) / (1.0 + slope)
        later = piece.pattern.integral_s(centre_s + self._half_s, lag_s)
        load = (later - piece.pattern.integral_s(centre_s - self._half_s, lag_s)) / (2 * self._half_s)
        model = np.stack([np.ones(load.size), centre_s - centre_s.mean(), load], axis=1)
        solved = np.linalg.solve((model.T * weight) @ model, (model.T * weight) @ piece.power_w)
        return np.sqrt(weight) * (piece.power_w - model @ solved), float(solved[2])

    def _residuals(self, at: Float64Array) -> Float64Array:
        parts = [
            self._residual(number, self._shift_s(number, at[0], at[1]), at[1], at[2])[0]
            for number in range(len(self._pieces))
        ]
        return np.concatenate(parts)

    def _linearised(self, at: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Residuals and their derivatives by offset, slope and lag."""
        residual = self._residuals(at)
        columns = []
        for index, step in enumerate((5e-6, 1e-6, 5e-6)):
            moved = at.copy()
            moved[index] += step
            back = at.copy()
            back[index] = max(at[index] - step, 1e-6) if index == 2 else at[index] - step
            columns.append((self._residuals(moved) - self._residuals(back)) / (moved[index] - back[index]))
        return residual, np.stack(columns, axis=1)

    def _weigh(self, at: Float64Array) -> None:
        """Huber weights from the present distances."""
        for number, weight in enumerate(self._weights):
            weight[:] = 1.0
            shift_s = self._shift_s(number, at[0], at[1])
            distance = np.abs(self._residual(number, shift_s, at[1], at[2])[0])
            limit = HUBER * 1.4826 * float(np.median(distance)) + 1e-12
            weight[:] = np.minimum(1.0, limit / np.maximum(distance, 1e-12))

    def _solution(self, at: Float64Array) -> _Solution:
        residual, jacobian = self._linearised(at)
        inverse = np.linalg.pinv(jacobian.T @ jacobian)
        covariance = inverse @ self._blocked(jacobian * residual[:, None]) @ inverse
        steps_w = [
            self._residual(number, self._shift_s(number, at[0], at[1]), at[1], at[2])[1]
            for number in range(len(self._pieces))
        ]
        changes = sum(piece.pattern.change_ns.size for piece in self._pieces)
        return _Solution(
            board_ref_ns=self._pieces[0].pattern.start_ns,
            meter_ref_ns=self._pieces[0].start_meter_ns,
            offset_s=float(at[0]),
            slope=float(at[1]),
            lag_s=float(at[2]),
            covariance=covariance[:2, :2],
            steps_w=steps_w,
            residual_s=math.sqrt(float(covariance[0, 0]) * changes),
            changes=changes,
        )

    def _blocked(self, scores: Float64Array) -> Float64Array:
        """Covariance of the sum of scores, samples of one chip taken as one."""
        total, first = np.zeros((scores.shape[1], scores.shape[1])), 0
        for piece in self._pieces:
            own = scores[first : first + piece.block.size]
            first += piece.block.size
            starts = np.flatnonzero(np.diff(piece.block, prepend=piece.block[0] - 1))
            sums = np.add.reduceat(own, starts)
            total += sums.T @ sums
        return total
