"""Powers of board and medium by least squares: measured power on what the power model says each watt does.

Idle power is the mean of the baselines. Above it, no part draws less than nothing. The length of the medium's tail is
the one that explains the power best. Source: docs/method/twin.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.attribution.least_squares import inverse, non_negative
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.systematic import systematic
from opjoule.errors import DataFault
from opjoule.record.phases import Role
from opjoule.trace.power_trace import Float64Array
from opjoule.twin.fitting.estimate import LEAST_W, Estimate, assumed, found
from opjoule.twin.fitting.rates import WRITE_RUN
from opjoule.twin.fitting.recorded import Recorded
from opjoule.twin.fitting.replay import core_columns, medium_shares, medium_work
from opjoule.twin.power_model import BoardModel, MediumModel

TAILS_S: Final = tuple(np.geomspace(0.05, 30.0, 24).tolist())
"""Lengths of the tail that are tried first."""
FINER: Final = 8
ROUNDS: Final = 2
BLOCK_S: Final = 2.0
"""What the model gets wrong lasts: windows of one block are taken as wrong together."""
BUSY_MIN_S: Final = 0.3
"""A part that was at work for less than this says nothing of its power."""
CHI2_95: Final = 4.0
TAIL_WORTH: Final = 20.0
"""A tail is believed where it lowers minus twice the logarithm of the likelihood by this, or more."""
TAIL_MIN_S: Final = 0.1
"""The board's counters are read so often: within less a tail is no different from the writing."""
CORES_RUN: Final = "a run that keeps 1, 2, ... all cores busy: host/measure.py twin prints it"
TAIL_RUN: Final = "a run that writes, then rests for longer than the tail: host/measure.py twin prints it"


@dataclass(frozen=True)
class Observed:
    """Windows of all records together, on which powers are fitted; n windows."""

    power_w: Float64Array
    cores: Float64Array
    """Shape (n, cores)."""
    span_s: Float64Array
    weight: Float64Array
    baseline: npt.NDArray[np.bool_]
    block: npt.NDArray[np.int64]
    """Windows that are wrong together."""
    phase: npt.NDArray[np.int64]
    """Record and phase of each, as one number."""
    record: npt.NDArray[np.int64]


def observed(records: Sequence[Recorded], cores: int) -> tuple[Observed, list[npt.NDArray[np.bool_]]]:
    """The windows that count, and which those of each record are. Raises: DataFault: no window of a baseline."""
    parts, chosen = [], []
    for number, one in enumerate(records):
        windows = one.windows
        played = np.zeros(len(windows), np.bool_)
        for at, phase in enumerate(one.phases):
            if phase.name == "signature":
                played |= windows.phase == at
        used = np.isfinite(windows.power_w) & ~played
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
                np.full(int(used.sum()), number, np.int64),
            )
        )
    joined = Observed(
        *(np.concatenate([getattr(each, name) for each in parts]) for name in Observed.__dataclass_fields__)
    )
    if not joined.baseline.any():
        raise DataFault("no idle power was measured (--idle 0): the fit rests on it; measure with --idle")
    return joined, chosen


@dataclass(frozen=True)
class Solved:
    """Least squares with one length of the tail."""

    tail_s: float
    idle_w: float
    watts: Float64Array
    """Of each core in turn, the medium at work, its tail, shape (cores + 2,)."""
    unlikely: float
    """Weighted sum of squares [W^2]."""
    matrix: Float64Array
    residual_w: Float64Array


@dataclass(frozen=True)
class PowerFit:
    """The powers with what they are known to."""

    best: Solved
    idle_u_w: float
    covariances: tuple[Float64Array, ...]
    """Of the watts, from the scatter of blocks, of phases, and from idle power's doubt, shape (cores + 2,) squared."""
    busy_s: Float64Array
    """For how long each part was at work, shape (cores + 2,)."""
    tails_s: tuple[float, float]
    """Lengths of the tail between which the power does not decide."""
    tail_worth: float
    """By how much a tail lowers minus twice the logarithm of the likelihood."""

    def u_w(self, parts: npt.ArrayLike) -> float:
        """Standard uncertainty of a sum of watts [W]; `parts` says how often each counts, shape (cores + 2,)."""
        counts = np.asarray(parts, np.float64)
        own = [float(counts @ each @ counts) for each in self.covariances]
        return math.sqrt(max(max(own, default=math.inf), 0.0))


def fit_powers(records: Sequence[Recorded], medium: MediumModel, cores: int) -> PowerFit:
    """Powers of cores, medium and tail, and the tail's length; the medium's rates are as given."""
    seen, chosen = observed(records, cores)
    work = [medium_work(medium, one) for one in records]

    def solve(tail_s: float) -> Solved:
        timed = replace(medium, tail_s=tail_s)
        own = [medium_shares(timed, each, one.windows) for each, one in zip(work, records, strict=True)]
        active = np.concatenate([each[0][used] for each, used in zip(own, chosen, strict=True)])
        tail = np.concatenate([each[1][used] for each, used in zip(own, chosen, strict=True)])
        return _solved(seen, np.column_stack([seen.cores, active, tail]), tail_s, records)

    tried = [solve(each) for each in TAILS_S]
    best = min(tried, key=lambda each: each.unlikely)
    ratio = TAILS_S[1] / TAILS_S[0]
    for _ in range(ROUNDS):
        tried += [
            solve(each) for each in (best.tail_s * np.geomspace(1 / ratio, ratio, 2 * FINER + 1)).tolist()
        ]
        best, ratio = min(tried, key=lambda each: each.unlikely), ratio ** (1 / FINER)
    idle_u_w = _mean_u_w(seen)
    busy_s = np.asarray(seen.span_s @ best.matrix)
    short_s, long_s, worth = _tails(seen, tried, best, solve(0.0))
    covariances = _covariances(seen, best, records, idle_u_w)
    return PowerFit(best, idle_u_w, covariances, busy_s, (short_s, long_s), worth)


def _solved(seen: Observed, matrix: Float64Array, tail_s: float, records: Sequence[Recorded]) -> Solved:
    """Coefficients, none below zero; the baselines' mean is met exactly."""
    idle, rest_w, rest = seen.baseline, *_at_rest(seen, matrix)
    own, power_w = matrix - rest, seen.power_w - rest_w
    weight = np.where(idle, 0.0, seen.weight)
    gram, moment = (own * weight[:, None]).T @ own, (own * weight[:, None]).T @ power_w
    for pattern, step_w, count in _signatures(seen, records, matrix.shape[1]):
        gram += count * np.outer(pattern, pattern)
        moment += count * pattern * step_w
    watts = non_negative(gram, moment, np.zeros(moment.size, np.bool_))
    residual_w = power_w - own @ watts
    unlikely = float(weight @ residual_w**2)
    return Solved(tail_s, rest_w - float(rest @ watts), watts, unlikely, matrix, residual_w)


def _at_rest(seen: Observed, matrix: Float64Array) -> tuple[float, Float64Array]:
    """Means of power and columns over the baselines: what the rest is counted from."""
    own = seen.baseline
    return float(seen.power_w[own].mean()), np.asarray(matrix[own].mean(axis=0))


def _signatures(
    seen: Observed, records: Sequence[Recorded], width: int
) -> list[tuple[Float64Array, float, float]]:
    """(columns, step [W], for how many windows it counts) of each load signature."""
    found_w = []
    for one in records:
        if one.signature:
            pattern = np.zeros(width)
            pattern[: width - 2] = core_columns(np.array([one.signature.busy_cores]), width - 2)[0]
            count = max(float(np.sum(seen.weight)) / 10, 50.0)
            found_w.append((pattern, one.signature.busy_w - one.signature.idle_w, count))
    return found_w


def _covariances(
    seen: Observed, best: Solved, records: Sequence[Recorded], idle_u_w: float
) -> tuple[Float64Array, ...]:
    """Covariances of the watts, one for each way in which windows may be wrong together.

    Source: cluster-robust covariance, Liang and Zeger, Biometrika 73, 13 (1986).
    """
    _, rest = _at_rest(seen, best.matrix)
    own = best.matrix - rest
    weight = np.where(seen.baseline, 0.0, seen.weight)
    gram = (own * weight[:, None]).T @ own
    for pattern, _, count in _signatures(seen, records, own.shape[1]):
        gram += count * np.outer(pattern, pattern)
    bread = inverse(gram)
    score = own * (weight * best.residual_w)[:, None]
    # what is wrong of the baselines' mean goes into every watt
    shift = bread @ (own * weight[:, None]).sum(axis=0) * idle_u_w
    found_w2 = []
    for group in (seen.block, seen.phase):
        _, place = np.unique(group[~seen.baseline], return_inverse=True)
        clusters = int(place.max(initial=-1)) + 1
        if clusters > own.shape[1] + 2:
            meat = np.zeros((clusters, own.shape[1]))
            np.add.at(meat, place, score[~seen.baseline])
            scale = clusters / (clusters - own.shape[1] - 1)
            found_w2.append(scale * bread @ (meat.T @ meat) @ bread + np.outer(shift, shift))
    return tuple(found_w2)


def _mean_u_w(seen: Observed) -> float:
    """Standard uncertainty of the baselines' mean [W], from how far single baselines stray."""
    own_w, group = seen.power_w[seen.baseline], seen.phase[seen.baseline]
    means_w = np.array([own_w[group == each].mean() for each in np.unique(group)])
    noise_w = float(own_w.std()) / math.sqrt(own_w.size / 3)
    return math.hypot(
        noise_w, float(means_w.std(ddof=1)) / math.sqrt(means_w.size) if means_w.size > 1 else noise_w
    )


def _tails(seen: Observed, tried: Sequence[Solved], best: Solved, none: Solved) -> tuple[float, float, float]:
    """Shortest and longest tail that the windows do not tell from the best one, and how much that beats no tail.

    Residuals go together: the sum of squares counts by how far blocks stray from what independent windows would.
    """
    own = ~seen.baseline
    _, place = np.unique(seen.block[own], return_inverse=True)
    blocks = np.bincount(place, best.residual_w[own])
    variance = float(np.mean(best.residual_w[own] ** 2))
    together = max(float(np.sum(blocks**2)) / max(variance * own.sum(), 1e-300), 1.0)
    limit = best.unlikely + CHI2_95 * variance * together
    alike = [each.tail_s for each in tried if each.unlikely <= limit]
    return min(alike), max(alike), (none.unlikely - best.unlikely) / (variance * together)


def power_estimates(
    fit: PowerFit, records: Sequence[Recorded], board: BoardModel, medium: MediumModel, rate: Estimate
) -> list[Estimate]:
    """Idle power, power by busy cores, the medium's powers, the tail's length; priors where the records do not tell."""
    sensors = [one.sensor for one in records if one.sensor]
    volts = float(np.mean([np.nanmean(one.trace.voltage_v) for one in records]))
    cores = len(board.busy_cores_w) - 1
    idle_w = fit.best.idle_w - medium.idle_w
    u_w = math.hypot(fit.idle_u_w, _systematic_u_w(sensors, fit.best.idle_w, volts, offset=True))
    shared = f", the medium's assumed idle {medium.idle_w:g} W taken off" if medium.idle_w else ""
    made = [
        found(
            "board.busy_cores_w.0", idle_w, u_w, "W", f"mean of the baselines{shared}", board.busy_cores_w[0],
            least=LEAST_W, tell="a run with --idle 30",
        )
    ]  # fmt: skip
    made += _core_estimates(fit, board, made[0], sensors, volts)
    parts = np.eye(cores + 2)
    gain = [_systematic_u_w(sensors, float(each), volts) for each in fit.best.watts]
    standard_u = np.hypot([fit.u_w(each) for each in parts], gain)
    made.append(
        assumed(
            "medium.idle_w", medium.idle_w, "W", "the medium draws from the board's supply",
            "a further sensor on the storage's supply",
        )
    )  # fmt: skip
    why = f"the medium was busy for {fit.busy_s[cores]:.2g} s"
    if fit.busy_s[cores] < BUSY_MIN_S:
        made.append(assumed("medium.active_w", medium.active_w, "W", why, WRITE_RUN))
    else:
        given = "" if rate.identified else ", at the assumed rate: its joules per byte are what is known"
        made.append(
            found(
                "medium.active_w", float(fit.best.watts[cores]), float(standard_u[cores]), "W",
                f"power while the medium worked, {fit.busy_s[cores]:.3g} s{given}", medium.active_w,
                least=LEAST_W, tell=WRITE_RUN,
            )
        )  # fmt: skip
    return made + _tail_estimates(fit, medium, float(standard_u[cores + 1]))


def _core_estimates(
    fit: PowerFit, board: BoardModel, idle: Estimate, sensors: Sequence[ErrorBounds], volts: float
) -> list[Estimate]:
    """Power with 1, 2, ... busy cores; where a core was never busy its prior step is put on top."""
    made, above_w, known = [], 0.0, True
    counted = np.zeros(len(fit.best.watts))
    for core in range(1, len(board.busy_cores_w)):
        key, own = f"board.busy_cores_w.{core}", np.eye(counted.size)[core - 1]
        prior_w = board.busy_cores_w[core] - board.busy_cores_w[core - 1]
        step_w, busy_s = float(fit.best.watts[core - 1]), float(fit.busy_s[core - 1])
        known = known and busy_s >= BUSY_MIN_S and 2 * fit.u_w(own) <= max(step_w, LEAST_W)
        above_w += step_w if known else prior_w
        value_w = idle.value + above_w
        if not known:
            why = (
                f"core {core} was busy for {busy_s:.2g} s; the assumed step of {prior_w:.3g} W is put on top"
            )
            made.append(assumed(key, value_w, "W", why, CORES_RUN))
            continue
        counted += own
        systematic_u_w = _systematic_u_w(sensors, value_w, volts, offset=True)
        u_w = math.hypot(fit.u_w(counted), fit.idle_u_w, systematic_u_w)
        origin = f"power against busy cores, core {core} busy for {busy_s:.3g} s"
        made.append(found(key, value_w, u_w, "W", origin, value_w, least=LEAST_W, tell=CORES_RUN))
    return made


def _tail_estimates(fit: PowerFit, medium: MediumModel, standard_u_w: float) -> list[Estimate]:
    """Power and length of the tail."""
    value_w, busy_s = float(fit.best.watts[-1]), float(fit.busy_s[-1])
    short_s, long_s = fit.tails_s
    told = busy_s >= BUSY_MIN_S and fit.tail_worth >= TAIL_WORTH and fit.best.tail_s >= TAIL_MIN_S
    told = told and 2 * standard_u_w <= value_w
    if not told:
        why = (
            f"the power shows none of {LEAST_W * 1e3:.0f} mW or more"
            if busy_s >= BUSY_MIN_S
            else "no rest followed a write"
        )
        return [
            assumed("medium.tail_w", medium.tail_w, "W", why, TAIL_RUN),
            assumed("medium.tail_s", medium.tail_s, "s", why, TAIL_RUN),
        ]
    origin = f"power after the last write, {busy_s:.3g} s in the tail"
    u_s = max(long_s - fit.best.tail_s, fit.best.tail_s - short_s, 0.05) / 2
    return [
        found(
            "medium.tail_w", value_w, standard_u_w, "W", origin, medium.tail_w, least=LEAST_W, tell=TAIL_RUN
        ),
        found("medium.tail_s", fit.best.tail_s, u_s, "s", origin, medium.tail_s, least=0.0, tell=TAIL_RUN),
    ]


def _systematic_u_w(
    sensors: Sequence[ErrorBounds], power_w: float, volts: float, *, offset: bool = False
) -> float:
    """Standard uncertainty of a power from gain, and of a whole one from offset [W]; of the least known sensor."""
    found_w = []
    for sensor in sensors:
        own = systematic(sensor, power_w, volts if offset else 0.0, power_w / volts)
        found_w.append(math.hypot(own.gain_u, own.offset_u if offset else 0.0))
    return max(found_w, default=0.0)
