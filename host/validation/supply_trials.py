"""SIMULATED: counts the drawn rigs for which a measurement would report a voltage below the board's limit.

Each trial draws the rig as a simulated measurement does (board, medium, seed), and a load between idle and the board's
greatest power: changes at random times, random levels, single bursts, or a beat. The meter samples as in shunt mode,
with the voltage once in 129 conversions of 532 us, and with ripple, gains, offset, noise and steps. The lowest voltage
stated from these samples is compared with the board's limit and with the truth.

    .venv/bin/python host/validation/supply_trials.py --seeds 200
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from opjoule.bench.simulation.power_model import Models
from opjoule.bench.simulation.simulators import Imperfections
from opjoule.bench.simulation.supply import drawn_for
from opjoule.boards.profiles import BoardAndMedium, find_profile
from opjoule.energy.least_voltage import least_voltage
from opjoule.energy.trace.power_trace import Float64Array, PowerTrace
from opjoule.energy.trace.supply_line import BusReadings
from opjoule.meters.chips import ina219_breakout

BOARDS: Final = ("rpi5", "rpi4", "rpi3", "odroid-c2")
MEDIA: Final = ("sd", "sd-folding", "emmc", "ssd-usb3", "nvme")
STEP_S: Final = 133e-6
STEPS: Final = 4
"""Duration of a conversion in steps of STEP_S."""
BUS_EVERY: Final = 129
LENGTH_S: Final = 20.0
SENSOR: Final = ina219_breakout()


@dataclass(frozen=True)
class Stated:
    """Result of one trial."""

    is_fault: bool
    """True if a measurement would report that the supply fell below the limit."""
    true_margin_v: float
    """Lowest true voltage as the sensor's gain reads it, minus the limit [V]."""
    error_v: float
    """Stated lowest voltage plus k = 2 of the supply line's uncertainty, minus the lowest true voltage as read [V]."""


def _changes(rng: np.random.Generator, low_w: float, high_w: float, count: int) -> Float64Array:
    changed = rng.random(count) < STEP_S / 10 ** rng.uniform(-3.6, -1)
    return np.where(np.cumsum(changed) % 2, high_w, low_w)


def _levels(rng: np.random.Generator, low_w: float, high_w: float, count: int) -> Float64Array:
    changed = rng.random(count) < STEP_S / 10 ** rng.uniform(-3.6, -1)
    return np.asarray(rng.uniform(low_w, high_w, count)[np.cumsum(changed)])


def _bursts(rng: np.random.Generator, low_w: float, high_w: float, count: int) -> Float64Array:
    power_w = np.full(count, low_w)
    for start in rng.integers(0, count, rng.integers(1, 40)):
        power_w[start : start + int(10 ** rng.uniform(0.3, 3.5))] = high_w
    return power_w


def _beat(rng: np.random.Generator, low_w: float, high_w: float, count: int) -> Float64Array:
    period_s = 10 ** rng.uniform(-3, -0.5)
    return np.where((np.arange(count) * STEP_S) % period_s < period_s * rng.uniform(0.1, 0.9), high_w, low_w)


LOADS: Final[tuple[Callable[[np.random.Generator, float, float, int], Float64Array], ...]] = (
    _changes,
    _levels,
    _bursts,
    _beat,
)


def sampled(rig: Imperfections, power_w: Float64Array, rng: np.random.Generator) -> tuple[PowerTrace, float]:
    """The meter's trace of a power in steps of STEP_S, shape (n,), and the lowest true voltage [V]."""
    source_v, ohm = rig.supply.open_voltage_v, rig.supply.resistance_ohm
    root_v = np.sqrt(source_v**2 - 4 * ohm * power_w)
    current_a = (source_v - root_v) / (2 * ohm) if ohm else power_w / source_v
    amplitude_mv, hz = (float(number) for number in rig.ripple.split(","))
    phase = 2 * np.pi * (hz * STEP_S * (np.arange(power_w.size) + 0.5) + rng.random())
    volts = source_v - ohm * current_a + 1e-3 * amplitude_mv * np.sinc(hz * STEP_S) * np.sin(phase)
    converted_a, converted_v = (column.reshape(-1, STEPS).mean(axis=1) for column in (current_a, volts))
    slot = np.arange(converted_a.size)
    is_bus = slot % BUS_EVERY == BUS_EVERY - 1
    centre_ns = np.round((slot + 0.5) * STEPS * STEP_S * 1e9).astype(np.int64)
    scale = rig.shunt_ohm / 0.1 * (1 + rig.gain_error)
    offset_a, noise_a = rig.offset_uv * 1e-5, rig.noise_uv * 1e-5
    read_a = converted_a * scale + offset_a + rng.normal(0, noise_a, slot.size)
    read_v = np.floor(converted_v[is_bus] * (1 + rig.bus_gain_error) / 0.004) * 0.004
    bus = BusReadings(centre_ns[is_bus] + round(STEPS * STEP_S * 0.5e9), read_v)
    held_v = np.full(int(np.sum(~is_bus)), float(read_v.mean()))
    trace = PowerTrace.of(centre_ns[~is_bus], np.round(read_a[~is_bus], 4), held_v)
    return replace(trace, bus=bus).on_supply_line(), float(volts.min())


def trial(board: str, medium: str, seed: int, load: int | None = None) -> Stated:
    """Simulates one rig under one load, which begins and ends with 2 s of idle."""
    limit_v = find_profile(board).least_voltage_v
    if limit_v is None:
        raise ValueError(f"the profile of {board} states no lowest voltage")
    model = Models.stated().load(BoardAndMedium(find_profile(board), medium))
    rig = drawn_for(find_profile(board), model.greatest_w, seed)
    rng = np.random.default_rng([seed, 7])
    count = int(LENGTH_S / STEP_S) // STEPS * STEPS
    idle_w = model.board.power_w(0.0)
    power_w = LOADS[rng.integers(len(LOADS)) if load is None else load](rng, idle_w, model.greatest_w, count)
    idle = int(2.0 / STEP_S)
    power_w[:idle] = power_w[-idle:] = idle_w
    trace, true_v = sampled(rig, power_w, rng)
    least = least_voltage(trace, SENSOR)
    if least is None:
        raise ValueError("the trace contains no voltage")
    gained_v = true_v * (1 + rig.bus_gain_error)
    return Stated(least.is_under(limit_v), gained_v - limit_v, least.voltage_v + 2 * least.line_u_v - gained_v)


def main() -> None:
    """Prints one row for each board and medium."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="rigs of each cell (default: 200)")
    options = parser.parse_args()
    print("SIMULATED")
    print("| board | medium | rigs | faults | smallest true margin [V] | greatest error to the low side [V] |")
    for board in BOARDS:
        for medium in MEDIA:
            trials = [trial(board, medium, seed) for seed in range(options.seeds)]
            print(
                f"| {board} | {medium} | {len(trials)} | {sum(trial.is_fault for trial in trials)} "
                f"| {min(trial.true_margin_v for trial in trials):.3f} "
                f"| {max(0.0, -min(trial.error_v for trial in trials)):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
