"""Supply power of a board with known truth, and the meters that measure it, for the validation scripts.

SIMULATED throughout. Nothing here is a measurement of a board.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.signature import LoadPattern, signature_chips

GRID_NS = 20_000
"""Step over which the true power is constant: 20 us."""
CHIP_NS = 20_000_000
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Meter:
    """Sampling period, conversion time, resolution and noise of a meter."""

    name: str
    period_ns: int
    conversion_ns: int
    step_w: float
    noise_w: float
    gap_every_ns: int = 0
    """Interval between pauses for the meter's own calibration; 0 for none."""
    gap_ns: int = 0


INA219 = Meter("INA219 12-bit shunt+bus", 1_064_000, 532_000, 5e-4, 1e-3)
MONSOON = Meter("Monsoon 5 kHz", 200_000, 200_000, 1e-4, 5e-3, 1_250_000_000, 1_000_000)


@dataclass(frozen=True)
class Run:
    """Synthetic run: power on a grid of board time, with patterns before and after the work."""

    power_w: Float64Array
    """Mean power of each grid step from board_ns = start_ns on."""
    start_ns: int
    patterns: tuple[LoadPattern, ...]
    """Patterns as the board's log states them."""


def random_run(rng: np.random.Generator, seconds: float) -> Run:
    """Draws a board that idles, plays a pattern, works for some seconds, plays another pattern and idles.

    Disturbances: a supply that lags the load by 10 to 80 us, edges late by 0 to 60 us (a thread that wakes up),
    regulator noise with a slow wander, wake-ups of the system, and work at random levels between idle and full power.
    """
    start_ns = int(rng.integers(10**9, 10**14))
    first_ns = start_ns + int(rng.integers(1, 3 * 10**9))
    before = LoadPattern.of_chips(signature_chips(0), CHIP_NS, first_ns)
    work_ns = int(before.change_ns[-1]) + 200_000_000
    after = LoadPattern.of_chips(signature_chips(1), CHIP_NS, work_ns + int(seconds * 1e9))
    count = int((after.change_ns[-1] - start_ns + 2 * 10**9) // GRID_NS)
    busy_w = float(np.exp(rng.uniform(np.log(0.5), np.log(3.5))))
    load = np.zeros(count)
    for pattern in (before, after):
        _play(rng, load, pattern.change_ns - start_ns)
    _work(rng, load, (work_ns - start_ns) // GRID_NS, (after.start_ns - 200_000_000 - start_ns) // GRID_NS)
    _wake_ups(rng, load)
    power_w = 2.7 + busy_w * _lagging(load, rng.uniform(10e3, 80e3))
    power_w += _wander(rng, count, 0.03) + rng.normal(0, 0.05, count)
    return Run(power_w, start_ns, (before, after))


def _play(rng: np.random.Generator, load: Float64Array, change_ns: npt.NDArray[np.int64]) -> None:
    late_ns = rng.uniform(0, 60_000, change_ns.size) - 30_000
    places = (change_ns + late_ns) / GRID_NS
    for start, end in zip(places[::2], places[1::2], strict=True):
        first, last = int(start), int(end)
        load[first + 1 : last] += 1.0
        load[first] += first + 1 - start
        load[last] += end - last


def _work(rng: np.random.Generator, load: Float64Array, first: int, last: int) -> None:
    at = first
    while at < last:
        span = int(rng.exponential(0.03 * 1e9 / GRID_NS)) + 1
        load[at : min(at + span, last)] += rng.uniform(0.0, 1.0)
        at += span


def _wake_ups(rng: np.random.Generator, load: Float64Array) -> None:
    for place in rng.integers(0, load.size, int(load.size * GRID_NS * 1e-9 * 20)).tolist():
        load[place : place + int(rng.integers(2, 60))] += rng.uniform(0.05, 0.4)


def _lagging(load: Float64Array, lag_ns: float) -> Float64Array:
    """Applies a first-order lag, by its impulse response (cut off after 12 time constants)."""
    decay = GRID_NS / lag_ns
    later = np.arange(int(12 / decay) + 2)
    response = np.concatenate([[1 + np.expm1(-decay) / decay], np.expm1(-decay) ** 2 / decay * np.exp(-decay * later)])
    return np.convolve(load, response)[: load.size]


def _wander(rng: np.random.Generator, count: int, amplitude_w: float) -> Float64Array:
    """Slow random wander, an interpolated random walk with steps of 50 ms."""
    knots = np.cumsum(rng.normal(0, amplitude_w / 5, count * GRID_NS // 50_000_000 + 2))
    return np.interp(np.arange(count) * (GRID_NS / 50e6), np.arange(knots.size), knots - knots.mean())


def watch(
    rng: np.random.Generator, run: Run, meter: Meter, ppm: float
) -> tuple[npt.NDArray[np.int64], Float64Array, ClockMap]:
    """Simulates a meter with its own clock; returns sample centres, power, and the true map board -> meter."""
    truth = ClockMap("board", "meter", run.start_ns, int(rng.integers(0, 10**10)), 1 + ppm * 1e-6, 0, 0, "truth", 0, 0)
    running = np.concatenate([[0.0], np.cumsum(run.power_w)])
    length_ns = run.power_w.size * GRID_NS
    centre_ns = truth.target_ref_ns + np.arange(
        int(rng.integers(meter.period_ns, 2 * meter.period_ns)),
        length_ns - 2 * meter.period_ns,
        meter.period_ns,
    )
    if meter.gap_every_ns:
        centre_ns = centre_ns[(centre_ns % meter.gap_every_ns) >= meter.gap_ns]
    on_board = (centre_ns - truth.target_ref_ns) / truth.rate
    half = meter.conversion_ns / truth.rate / 2
    power_w = (_at(running, on_board + half) - _at(running, on_board - half)) / (2 * half / GRID_NS)
    power_w += rng.normal(0, meter.noise_w, power_w.size)
    return centre_ns, np.rint(power_w / meter.step_w) * meter.step_w, truth


def _at(running: Float64Array, time_ns: Float64Array) -> Float64Array:
    place = time_ns / GRID_NS
    whole = np.clip(place.astype(np.int64), 0, running.size - 2)
    return running[whole] + (place - whole) * (running[whole + 1] - running[whole])
