"""Draws a board's supply current over one measurement, and the idle part of it. SIMULATED.

The phases are idle before, run, settle and idle after. The idle current is a level plus noise of mean zero; the level
steps to another one during run or settle. The run adds one of several kinds of load. Settle adds a write-back and a
tail.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Rows = list[tuple[float, float]]
"""(time [s], current [A]); each row applies until the next"""
Float64Array = npt.NDArray[np.float64]
LEAD_S = 0.4
"""Time before the first phase and after the last one."""
LEAST_ROW_S = 2e-6
"""Shortest length of a noise row."""
CURRENT_MAX_A = 2.4


@dataclass(frozen=True)
class Load:
    """One measurement's current, its phases, and its idle part."""

    kind: str
    rows: Rows
    end_s: float
    phases_s: dict[str, tuple[float, float]]
    """name -> start and end [s]"""
    levels_a: tuple[float, float]
    """mean idle current before and after its step"""
    step_s: float
    noise_a: float
    """half-width of the idle current's noise, uniformly distributed"""

    def idle_j(self, start_s: float, end_s: float, open_v: float, ohm: float) -> float:
        """Expected energy of the idle board between two times, behind a supply's resistance."""
        before_s = min(max(self.step_s, start_s), end_s) - start_s
        return sum(
            held_s * (level_a * open_v - ohm * (level_a**2 + self.noise_a**2 / 3))
            for level_a, held_s in zip(self.levels_a, (before_s, end_s - start_s - before_s), strict=True)
        )


def _pieces(
    chance: random.Random, length_s: Callable[[], float], value: Callable[[], float]
) -> Callable[[float], Rows]:
    def rows(seconds: float) -> Rows:
        at_s, levels = 0.0, []
        while at_s < seconds:
            levels.append((at_s, value()))
            at_s += length_s()
        return levels

    return rows


def _alternating(
    low_s: Callable[[], float], high_s: Callable[[], float], high_a: Callable[[], float]
) -> Callable[[float], Rows]:
    def rows(seconds: float) -> Rows:
        at_s, levels = 0.0, []
        while at_s < seconds:
            levels.append((at_s, high_a()))
            at_s += high_s()
            levels.append((at_s, 0.0))
            at_s += low_s()
        return levels

    return rows


def _log_uniform(chance: random.Random, least: float, most: float) -> float:
    return math.exp(chance.uniform(math.log(least), math.log(most)))


def run_load(kind: str, chance: random.Random) -> Callable[[float], Rows]:
    """Current that a run of this kind adds to the idle current, as a function of the run's length [s]."""
    top_a = chance.uniform(0.2, 0.9)
    if kind == "steady":
        return lambda _: [(0.0, top_a)]
    if kind == "noisy":
        return _pieces(chance, lambda: chance.uniform(1e-3, 30e-3), lambda: top_a * chance.uniform(0.2, 1.0))
    if kind == "bursts of 40 ms":
        return _alternating(lambda: chance.uniform(0.02, 0.2), lambda: 0.04, lambda: top_a)
    if kind == "bursts of 50 us to 5 ms":

        def length_s() -> float:
            return _log_uniform(chance, 50e-6, 5e-3)

        return _alternating(length_s, length_s, lambda: top_a * chance.uniform(0.5, 1.0))
    if kind == "square":
        half_s = _log_uniform(chance, 1e-3, 0.25)
        return _alternating(lambda: half_s, lambda: half_s, lambda: top_a)
    if kind == "ramp":
        return lambda seconds: [(i * 2e-3, top_a * i * 2e-3 / seconds) for i in range(round(seconds / 2e-3))]
    raise ValueError(kind)


KINDS = ("steady", "noisy", "bursts of 40 ms", "bursts of 50 us to 5 ms", "square", "ramp")


def _settle_load(chance: random.Random, seconds: float) -> Rows:
    """Write-back at the medium's power, then a decaying tail; both may be absent."""
    drain_s = chance.choice([0.0, chance.uniform(0.1, 0.5)]) * seconds
    tail_s = chance.choice([0.0, chance.uniform(0.1, 0.4)]) * seconds
    drain_a, tail_a = chance.uniform(0.05, 0.4), chance.uniform(0.02, 0.2)
    rows = [(0.0, drain_a)] if drain_s else []
    rows += [(drain_s + tail_s * i / 20, tail_a * (1 - i / 20)) for i in range(20) if tail_s]
    return [*rows, (drain_s + tail_s, 0.0)]


def draw_load(chance: random.Random) -> Load:
    """Draws the load of one measurement of about 5 s, so that hundreds of them take minutes."""
    lengths_s = {
        "idle-before": chance.uniform(0.9, 1.5),
        "run": chance.uniform(0.9, 1.8),
        "settle": chance.uniform(0.5, 0.9),
        "idle-after": chance.uniform(0.9, 1.5),
    }
    phases_s, at_s = {}, LEAD_S
    for name, length_s in lengths_s.items():
        phases_s[name] = (round(at_s, 6), round(at_s + length_s, 6))
        at_s += length_s
    end_s = round(at_s + LEAD_S, 6)
    idle_a = chance.uniform(0.3, 0.7)
    levels_a = (idle_a, idle_a * (1 + chance.uniform(-0.01, 0.01)))
    step_s = chance.uniform(phases_s["run"][0], phases_s["settle"][1])
    noise_a = chance.choice([0.0, chance.uniform(0.002, 0.05)])
    kind = chance.choice(KINDS)
    length_s = _log_uniform(chance, 1e-3, 20e-3)
    noise = _pieces(
        chance,
        lambda: chance.expovariate(1 / length_s) + LEAST_ROW_S,
        lambda: chance.uniform(-noise_a, noise_a),
    )
    parts = [
        [(0.0, levels_a[0]), (step_s, levels_a[1])],
        noise(end_s) if noise_a else [(0.0, 0.0)],
        _placed(run_load(kind, chance)(lengths_s["run"]), *phases_s["run"]),
        _placed(_settle_load(chance, lengths_s["settle"]), *phases_s["settle"]),
    ]
    return Load(kind, _sum(parts, end_s), end_s, phases_s, levels_a, step_s, noise_a)


def _placed(rows: Rows, start_s: float, end_s: float) -> Rows:
    inside = [(start_s + at_s, value) for at_s, value in rows if start_s + at_s < end_s]
    return [(0.0, 0.0), *inside, (end_s, 0.0)]


def _sum(parts: list[Rows], end_s: float) -> Rows:
    """Sum of step functions that all start at 0."""
    times_s = np.unique(np.round([at_s for part in parts for at_s, _ in part], 9))
    times_s = times_s[times_s < end_s]
    total = np.zeros(times_s.size)
    for part in parts:
        starts_s = np.round([at_s for at_s, _ in part], 9)
        total += np.array([value for _, value in part])[np.searchsorted(starts_s, times_s, side="right") - 1]
    return list(zip(times_s.tolist(), np.minimum(total, CURRENT_MAX_A).tolist(), strict=True))
