"""Powers of board and medium by least squares: measured power is regressed on the activities of the power model.

Idle power is the mean of the baselines. Above it, no part has a negative power. The length of the medium's tail is the
one that explains the power best. Source: docs/method/twin.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.attribution.least_squares import inverse, non_negative
from opjoule.base.errors import DataFault
from opjoule.bench.simulation.fitting.estimates import LEAST_W
from opjoule.bench.simulation.fitting.recorded import Recorded, core_columns, medium_shares, medium_work, sync_share
from opjoule.bench.simulation.power_model import MediumModel
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array
from opjoule.runs.record.phases import Role

TAILS_S: Final = tuple(np.geomspace(0.05, 30.0, 24).tolist())
"""Lengths of the tail that are tried first."""
FINER: Final = 8
ROUNDS: Final = 2
BLOCK_S: Final = 2.0
"""Length of a block: the model's errors persist, so the windows of one block count as fully correlated."""
CHI2_95: Final = 4.0
SYNC_SHARE: Final = 0.2
"""Fraction of time in syncs from which a window counts as mostly syncs."""
OTHERS_S: Final = 2.0
"""Least other work of the medium with which such windows are left out."""
TAIL_WORTH: Final = 20.0
"""Least decrease of minus twice the log-likelihood for accepting a tail."""
TAIL_MIN_S: Final = 0.1
"""Shortest tail: the counters are read at this interval, within which a tail cannot be distinguished from writing."""


@dataclass(frozen=True)
class Observed:
    """Windows of all records together, to which powers are fitted; n windows."""

    power_w: Float64Array
    cores: Float64Array
    """Shape (n, cores)."""
    span_s: Float64Array
    weight: Float64Array
    baseline: BoolArray
    block: Int64Array
    """Block of each window, for correlated errors."""
    phase: Int64Array
    """Record and phase of each window, as one number."""


def observed(records: Sequence[Recorded], cores: int) -> tuple[Observed, list[BoolArray]]:
    """The windows used for the fit, and their marks in each record. Raises: DataFault: no window of a baseline."""
    parts, chosen = [], []
    mostly_syncs = _mostly_syncs(records)
    for number, one in enumerate(records):
        windows = one.windows
        played = np.zeros(len(windows), np.bool_)
        for at, phase in enumerate(one.phases):
            if phase.name == "signature":
                played |= windows.phase == at
        used = np.isfinite(windows.power_w) & ~played & ~mostly_syncs[number]
        chosen.append(used)
        since_s = (windows.start_ns[used] - windows.start_ns[0]) * 1e-9
        parts.append(
            Observed(
                windows.power_w[used],
                core_columns(windows.busy_cores[used], cores),
                windows.span_s[used],
                windows.span_s[used] / float(np.median(windows.span_s)),
                one.windows_of(Role.BASELINE)[used],
                number * 10**6 + (since_s / BLOCK_S).astype(np.int64),
                number * 10**6 + windows.phase[used] + 1,
            )
        )
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    joined = Observed(*map(np.concatenate, columns))
    if not joined.baseline.any():
        raise DataFault("no idle power was measured (--idle 0): the fit rests on it; measure with --idle")
    return joined, chosen


@dataclass(frozen=True)
class Solved:
    """Least-squares solution with one length of the tail."""

    tail_s: float
    idle_w: float
    watts: Float64Array
    """Power of each core, of the medium at work, and of its tail, shape (cores + 2,)."""
    deviance: float
    """Weighted sum of squares [W^2]."""
    matrix: Float64Array
    residual_w: Float64Array


def _mostly_syncs(records: Sequence[Recorded]) -> list[BoolArray]:
    """Windows of each record that are mostly syncs, if enough other work of the medium is known; else none.

    Such windows determine the flush latency, but their power includes the journal's and the waiting program's.
    """
    shares = [sync_share(one) for one in records]
    others_s = sum(
        float(((one.windows.written_bytes > 0) & (share <= SYNC_SHARE)) @ one.windows.span_s)
        for one, share in zip(records, shares, strict=True)
    )
    return [(share > SYNC_SHARE) & (others_s >= OTHERS_S) for share in shares]


class TailKnowledge(Enum):
    """Which parameters of the medium's tail the power determines."""

    LENGTH = "its power and its length"
    POWER = "its power, at the stated length"
    NOTHING = "nothing: power and length are as stated"


@dataclass(frozen=True)
class PowerFit:
    """The powers with their covariances."""

    best: Solved
    idle_u_w: float
    covariances: tuple[Float64Array, ...]
    """Covariances of the watts, shape (cores + 2, cores + 2): scatter of blocks, of phases, uncertainty of idle."""
    busy_s: Float64Array
    """Time at work of each part [s], shape (cores + 2,)."""
    tails_s: tuple[float, float]
    """Range of tail lengths that fit the power equally well."""
    tail: TailKnowledge

    def u_w(self, parts: npt.ArrayLike) -> float:
        """Standard uncertainty of a sum of watts [W]; `parts`: factor of each, shape (cores + 2,)."""
        counts = np.asarray(parts, np.float64)
        variances = [float(counts @ covariance @ counts) for covariance in self.covariances]
        return math.sqrt(max(max(variances, default=math.inf), 0.0))


def fit_powers(records: Sequence[Recorded], medium: MediumModel, cores: int) -> PowerFit:
    """Powers of cores, medium and tail, and the tail's length; the medium's rates are as given."""
    seen, chosen = observed(records, cores)
    work = [medium_work(medium, one) for one in records]

    def solve(tail_s: float, tail_w: float | None = None) -> Solved:
        timed = replace(medium, tail_s=tail_s)
        worked = zip(work, records, strict=True)
        shares = [medium_shares(timed, stretches, one.windows) for stretches, one in worked]
        active, tail = (
            np.concatenate([share[used] for share, used in zip(of_records, chosen, strict=True)])
            for of_records in zip(*shares, strict=True)
        )
        return _solved(seen, np.column_stack([seen.cores, active, tail]), tail_s, records, tail_w)

    def known(best: Solved, tails_s: tuple[float, float], tail: TailKnowledge) -> PowerFit:
        covariances = _covariances(seen, best, records, _mean_u_w(seen))
        busy_s = np.asarray(seen.span_s @ best.matrix)
        return PowerFit(best, _mean_u_w(seen), covariances, busy_s, tails_s, tail)

    tried = _searched(solve)
    best = min(tried, key=lambda solution: solution.deviance)
    short_s, long_s, worth = _tails(seen, tried, best, solve(0.0))
    made = known(best, (short_s, long_s), TailKnowledge.LENGTH)
    last = np.eye(cores + 2)[-1]
    if worth >= TAIL_WORTH and best.tail_s >= TAIL_MIN_S and 2 * made.u_w(last) <= best.watts[-1]:
        return made
    # the length is not identifiable: fit the power at the stated length, or use the stated power
    stated_s = medium.tail_s, medium.tail_s
    made = known(solve(medium.tail_s), stated_s, TailKnowledge.POWER)
    if 2 * made.u_w(last) <= max(made.best.watts[-1], LEAST_W):
        return made
    return known(solve(medium.tail_s, medium.tail_w), stated_s, TailKnowledge.NOTHING)


def _searched(solve: Callable[[float], Solved]) -> list[Solved]:
    """Solutions with tails of many lengths, at smaller distances around the best."""
    tried = [solve(tail_s) for tail_s in TAILS_S]
    ratio = TAILS_S[1] / TAILS_S[0]
    for _ in range(ROUNDS):
        best = min(tried, key=lambda solution: solution.deviance)
        nearer_s = best.tail_s * np.geomspace(1 / ratio, ratio, 2 * FINER + 1)
        tried += [solve(tail_s) for tail_s in nearer_s.tolist()]
        ratio = ratio ** (1 / FINER)
    return tried


def _solved(
    seen: Observed, matrix: Float64Array, tail_s: float, records: Sequence[Recorded], tail_w: float | None
) -> Solved:
    """Non-negative coefficients that meet the baselines' mean exactly. `tail_w`: known power of the tail, if any."""
    idle, rest_w, rest = seen.baseline, *_at_rest(seen, matrix)
    columns, power_w = matrix - rest, seen.power_w - rest_w
    fitted = columns.copy()
    if tail_w is not None:
        fitted[:, -1] = 0.0
    given_w = 0.0 if tail_w is None else tail_w * columns[:, -1]
    weight = np.where(idle, 0.0, seen.weight)
    weighted = (fitted * weight[:, None]).T
    gram, moment = weighted @ fitted, weighted @ (power_w - given_w)
    for pattern, step_w, count in _signatures(seen, records, matrix.shape[1]):
        gram += count * np.outer(pattern, pattern)
        moment += count * pattern * step_w
    watts = non_negative(gram, moment, np.zeros(moment.size, np.bool_))
    if tail_w is not None:
        watts[-1] = tail_w
    residual_w = power_w - columns @ watts
    idle_w, deviance = rest_w - float(rest @ watts), float(weight @ residual_w**2)
    return Solved(tail_s, idle_w, watts, deviance, matrix, residual_w)


def _at_rest(seen: Observed, matrix: Float64Array) -> tuple[float, Float64Array]:
    """Means of power and columns over the baselines, from which all else is counted."""
    idle = seen.baseline
    return float(seen.power_w[idle].mean()), np.asarray(matrix[idle].mean(axis=0))


def _signatures(seen: Observed, records: Sequence[Recorded], width: int) -> list[tuple[Float64Array, float, float]]:
    """(columns, step [W], equivalent number of windows) of each load signature."""
    steps, rest_w = [], _at_rest(seen, np.zeros((seen.power_w.size, 0)))[0]
    for one in records:
        if one.signature:
            pattern = np.zeros(width)
            cores = np.array(one.signature.busy_cores(rest_w))
            pattern[: width - 2] = -np.diff(core_columns(cores, width - 2), axis=0)[0]
            count = max(float(np.sum(seen.weight)) / 10, 50.0)
            steps.append((pattern, one.signature.busy_w - one.signature.idle_w, count))
    return steps


def _covariances(
    seen: Observed, best: Solved, records: Sequence[Recorded], idle_u_w: float
) -> tuple[Float64Array, ...]:
    """Covariances of the coefficients, one for each possible correlation of the windows' errors.

    Source: cluster-robust covariance, Liang and Zeger, Biometrika 73, 13 (1986).
    """
    _, rest = _at_rest(seen, best.matrix)
    columns = best.matrix - rest
    weight = np.where(seen.baseline, 0.0, seen.weight)
    gram = (columns * weight[:, None]).T @ columns
    for pattern, _, count in _signatures(seen, records, columns.shape[1]):
        gram += count * np.outer(pattern, pattern)
    bread = inverse(gram)
    score = columns * (weight * best.residual_w)[:, None]
    # an error of the baselines' mean shifts every coefficient
    shift = bread @ (columns * weight[:, None]).sum(axis=0) * idle_u_w
    covariances = []
    for group in (seen.block, seen.phase):
        _, place = np.unique(group[~seen.baseline], return_inverse=True)
        clusters = int(place.max(initial=-1)) + 1
        if clusters > columns.shape[1] + 2:
            meat = np.zeros((clusters, columns.shape[1]))
            np.add.at(meat, place, score[~seen.baseline])
            scale = clusters / (clusters - columns.shape[1] - 1)
            covariances.append(scale * bread @ (meat.T @ meat) @ bread + np.outer(shift, shift))
    return tuple(covariances)


def _mean_u_w(seen: Observed) -> float:
    """Standard uncertainty of the baselines' mean [W], from the scatter between baselines."""
    own_w, group = seen.power_w[seen.baseline], seen.phase[seen.baseline]
    means_w = np.array([own_w[group == phase].mean() for phase in np.unique(group)])
    noise_w = float(own_w.std()) / math.sqrt(own_w.size / 3)
    between_w = float(means_w.std(ddof=1)) / math.sqrt(means_w.size) if means_w.size > 1 else noise_w
    return math.hypot(noise_w, between_w)


def _tails(seen: Observed, tried: Sequence[Solved], best: Solved, none: Solved) -> tuple[float, float, float]:
    """Shortest and longest tail that fit as well as the best one, and the deviance that the best one gains over no
    tail.

    Residuals are correlated: the sum of squares is scaled by the ratio of the blocks' scatter to that of independent
    windows.
    """
    at_work = ~seen.baseline
    _, place = np.unique(seen.block[at_work], return_inverse=True)
    blocks = np.bincount(place, best.residual_w[at_work])
    variance = float(np.mean(best.residual_w[at_work] ** 2))
    together = max(float(np.sum(blocks**2)) / max(variance * at_work.sum(), 1e-300), 1.0)
    limit = best.deviance + CHI2_95 * variance * together
    alike = [solution.tail_s for solution in tried if solution.deviance <= limit]
    return min(alike), max(alike), (none.deviance - best.deviance) / (variance * together)
