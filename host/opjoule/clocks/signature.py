"""Clock map from the load signature: patterns of busy and idle, located in the power trace.

A pattern is first located by correlation. Then the positions of all patterns and the supply's lag are fitted together.
Each sample is compared with the mean of the played load over its own conversion, so that an edge is placed to a small
part of the sampling period. Around each pattern the power may drift linearly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from opjoule.base.errors import AlignmentError
from opjoule.clocks.clock_map import ClockMap, Float64Array, Int64Array
from opjoule.clocks.load_pattern import Find, LoadPattern, find_pattern
from opjoule.clocks.wandering_clock import follow

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
