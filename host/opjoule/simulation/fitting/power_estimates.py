"""FittedTwin powers as parameters: intervals with the meter's own errors in them, and what the records do not tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.systematic import Integrals, systematic
from opjoule.simulation.fitting.estimate import LEAST_W, Estimate, assumed, fitted_or_prior
from opjoule.simulation.fitting.powers import PowerFit, TailKnowledge
from opjoule.simulation.fitting.rates import WRITE_RUN
from opjoule.simulation.fitting.recorded import Recorded
from opjoule.simulation.power_model import BoardModel, MediumModel

BUSY_MIN_S: Final = 0.3
"""A part that was at work for less than this says nothing of its power."""
EDGE_U_S: Final = 0.003
"""Standard uncertainty of when a write ended [s]: bytes are counted when whole requests are done."""
TAIL_LEAST_U_S: Final = 0.05
"""Expanded uncertainty of its length, at least: when in a sample of the counters a write ended is not known."""
CORES_RUN: Final = "a run that keeps 1, 2, ... all cores busy: host/measure.py twin prints it"
TAIL_RUN: Final = "a run that writes, then rests for longer than the tail: host/measure.py twin prints it"


def power_estimates(
    fit: PowerFit, records: Sequence[Recorded], board: BoardModel, medium: MediumModel, rate: Estimate
) -> list[Estimate]:
    """Idle power, power by busy cores, the medium's powers, the tail's length; priors where the records do not tell."""
    sensors = [one.sensor for one in records if one.sensor]
    volts = float(np.mean([np.nanmean(one.trace.voltage_v) for one in records]))
    cores = len(board.busy_cores_w) - 1
    idle_w = fit.best.idle_w - medium.idle_w
    u_w = math.hypot(fit.idle_u_w, _systematic_u_w(sensors, fit.best.idle_w, volts, offset=True))
    shared = f", the medium's assumed idle {medium.idle_w:g} W subtracted" if medium.idle_w else ""
    made = [
        fitted_or_prior(
            "board.busy_cores_w.0", idle_w, u_w, "W", f"mean of the baselines{shared}", board.busy_cores_w[0],
            least=LEAST_W, needed_run="a run with --idle 30",
        )
    ]  # fmt: skip
    made += _core_estimates(fit, board, made[0], sensors, volts)
    parts = np.eye(cores + 2)
    gain = [_systematic_u_w(sensors, float(watts), volts) for watts in fit.best.watts]
    standard_u = np.hypot([fit.u_w(counts) for counts in parts], gain)
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
        given = "" if rate.identified else ", at the assumed rate: only its joules per byte are known"
        made.append(
            fitted_or_prior(
                "medium.active_w", float(fit.best.watts[cores]), float(standard_u[cores]), "W",
                f"power while the medium worked, {fit.busy_s[cores]:.3g} s{given}", medium.active_w,
                least=LEAST_W, needed_run=WRITE_RUN,
            )
        )  # fmt: skip
    misplaced_w = float(fit.best.watts[cores]) * EDGE_U_S / max(fit.best.tail_s, EDGE_U_S)
    return made + _tail_estimates(fit, medium, math.hypot(float(standard_u[cores + 1]), misplaced_w))


def _core_estimates(
    fit: PowerFit, board: BoardModel, idle: Estimate, sensors: Sequence[ErrorBounds], volts: float
) -> list[Estimate]:
    """Power with 1, 2, ... busy cores; the prior step is added for a core that was never busy."""
    made, above_w, known = [], 0.0, True
    counted = np.zeros(len(fit.best.watts))
    for core in range(1, len(board.busy_cores_w)):
        key, only_core = f"board.busy_cores_w.{core}", np.eye(counted.size)[core - 1]
        prior_w = board.busy_cores_w[core] - board.busy_cores_w[core - 1]
        step_w, busy_s = float(fit.best.watts[core - 1]), float(fit.busy_s[core - 1])
        known = known and busy_s >= BUSY_MIN_S and 2 * fit.u_w(only_core) <= max(step_w, LEAST_W)
        above_w += step_w if known else prior_w
        value_w = idle.value + above_w
        if not known:
            why = f"core {core} was busy for {busy_s:.2g} s; the assumed step of {prior_w:.3g} W is added"
            made.append(assumed(key, value_w, "W", why, CORES_RUN))
            continue
        counted += only_core
        systematic_u_w = _systematic_u_w(sensors, value_w, volts, offset=True)
        u_w = math.hypot(fit.u_w(counted), fit.idle_u_w, systematic_u_w)
        origin = f"power against busy cores, core {core} busy for {busy_s:.3g} s"
        made.append(
            fitted_or_prior(key, value_w, u_w, "W", origin, value_w, least=LEAST_W, needed_run=CORES_RUN)
        )
    return made


def _tail_estimates(fit: PowerFit, medium: MediumModel, standard_u_w: float) -> list[Estimate]:
    """Estimates of the tail's power and length."""
    value_w, busy_s, tail_s = float(fit.best.watts[-1]), float(fit.busy_s[-1]), fit.best.tail_s
    key = "medium.tail_w", "medium.tail_s"
    if busy_s < BUSY_MIN_S or fit.tail is TailKnowledge.NOTHING:
        why = (
            "no rest followed a write" if busy_s < BUSY_MIN_S else "other activity changed the power by more"
        )
        return [
            assumed(key[0], medium.tail_w, "W", why, TAIL_RUN),
            assumed(key[1], medium.tail_s, "s", why, TAIL_RUN),
        ]
    length = "" if fit.tail is TailKnowledge.LENGTH else f", its length taken as {tail_s:.3g} s"
    origin = f"power after the last write, {busy_s:.3g} s in the tail{length}"
    u_s = max(fit.tails_s[1] - tail_s, tail_s - fit.tails_s[0], TAIL_LEAST_U_S) / 2
    if fit.tail is TailKnowledge.LENGTH:  # only the product of the tail's power and length is well determined
        standard_u_w = math.hypot(standard_u_w, value_w * u_s / tail_s)
    power = fitted_or_prior(
        key[0], value_w, standard_u_w, "W", origin, medium.tail_w, least=LEAST_W, needed_run=TAIL_RUN
    )
    if fit.tail is not TailKnowledge.LENGTH:
        why = "no length of a tail stands out in the power"
        return [power, assumed(key[1], medium.tail_s, "s", why, TAIL_RUN)]
    return [
        power,
        fitted_or_prior(key[1], tail_s, u_s, "s", origin, medium.tail_s, least=0.0, needed_run=TAIL_RUN),
    ]


def _systematic_u_w(
    sensors: Sequence[ErrorBounds], power_w: float, volts: float, *, offset: bool = False
) -> float:
    """Standard uncertainty of a power from gain, and of a whole one from offset [W]; of the least known sensor."""
    found_w = []
    for sensor in sensors:
        errors = systematic(sensor, Integrals(power_w, volts if offset else 0.0, power_w / volts))
        found_w.append(math.hypot(errors.gain_u, errors.offset_u if offset else 0.0))
    return max(found_w, default=0.0)
