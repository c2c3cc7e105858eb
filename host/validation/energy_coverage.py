"""Counts how often the stated interval contains the true value, for many kinds of load and supply. SIMULATED.

    .venv/bin/python host/validation/energy_coverage.py --trials 200

Each trial draws
- a board's current and supply on a grid of 20 us,
- a sensor with every error that its data sheet allows (shunt, gains, offset, noise, codes truncated or rounded, the
  chip's clock +-10 %),
- a microcontroller up to 5000 ppm off and a board's crystal up to 160 ppm off,
- windows displaced by the uncertainty of the clock map.

The table covers run energy, marginal energy and idle power, each uncalibrated and with gain and offset known. It gives
how many of 100 intervals contain the true value, and the median of the stated u over the value.
Nothing here is a measurement of a board.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from coverage_loads import (
    GRID_S,
    fast_bursts,
    flicker,
    long_bursts,
    mixed_bursts,
    noisy,
    quiet,
    ramp,
    short_bursts,
    switching,
)
from opjoule.base.units import Quantity
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import idle_power, marginal_energy
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, CURRENT, SHUNT, ErrorBounds, Shunt
from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.trace.supply_line import BusReadings
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout

Float64Array = npt.NDArray[np.float64]
Generator = np.random.Generator
IDLE_S, RUN_S, REST_S = 5.0, 10.0, 0.5
EDGES_S = (REST_S, REST_S + IDLE_S, 2 * REST_S + IDLE_S, 2 * REST_S + IDLE_S + RUN_S)
AFTER_S = (3 * REST_S + IDLE_S + RUN_S, 3 * REST_S + 2 * IDLE_S + RUN_S)
LENGTH_S = AFTER_S[1] + REST_S
BUS_EVERY = 128
BUS_SLOT_PERIODS = 1.15
"""Length of a bus conversion with the switch to the bus and back, in conversions."""
MAP_U_S = 50e-6
QUANTITIES = ("energy", "marginal", "idle power")


@dataclass(frozen=True)
class Supply:
    """Current and voltage of the board, on the grid."""

    current_a: Float64Array
    voltage_v: Float64Array


@dataclass(frozen=True)
class Kind:
    """A kind of load on a kind of supply."""

    load: Callable[[Generator, int], Float64Array]
    resistance_ohm: tuple[float, float] = (0.0, 0.1)
    ripple_v: float = 0.0
    """Peak to peak."""


KINDS = {
    "steady, quiet": Kind(quiet),
    "steady, noisy": Kind(noisy),
    "bursts of 40 ms": Kind(long_bursts),
    "bursts of 50 us to 1 ms": Kind(short_bursts),
    "bursts of 50 us to 1 s": Kind(mixed_bursts),
    "steps each 11 ms": Kind(flicker),
    "ramp": Kind(ramp),
    "quiet, ripple 50 mV": Kind(quiet, ripple_v=0.05),
    "bursts of 40 ms, ripple 50 mV": Kind(long_bursts, ripple_v=0.05),
    "bursts of 40 ms, 0.3 ohm": Kind(long_bursts, (0.3, 0.3)),
    "bursts of 50 us to 1 s, 0.3 ohm": Kind(mixed_bursts, (0.3, 0.3)),
    "noisy, 0.3 ohm": Kind(noisy, (0.3, 0.3)),
    "bursts of 50 us to 1 s, 0.78 ohm": Kind(mixed_bursts, (0.78, 0.78)),
    "bursts of 20 to 100 us, 0.15 ohm": Kind(fast_bursts, (0.15, 0.15)),
    "bursts of 20 to 100 us, 0.3 ohm": Kind(fast_bursts, (0.3, 0.3)),
    "on and off at random each 20 us, 0.3 ohm": Kind(switching, (0.3, 0.3)),
}


def supply_of(rng: Generator, kind: Kind) -> Supply:
    """Draws a board's current and voltage through idle, run and idle."""
    count = round(LENGTH_S / GRID_S)
    idle_a = rng.uniform(0.3, 0.6)
    current_a = idle_a + np.linspace(-0.5, 0.5, count) * rng.normal(0, 5e-4)
    first, last = (round(edge / GRID_S) for edge in EDGES_S[2:])
    current_a[first:last] = kind.load(rng, last - first)
    current_a += rng.normal(0, 10 ** rng.uniform(-4.5, -2), count)
    time_s = np.arange(count) * GRID_S
    source_v = rng.uniform(5.0, 5.25) + rng.normal(0, 2e-3) * time_s / LENGTH_S
    if kind.ripple_v:
        frequency_hz = np.exp(rng.uniform(np.log(50), np.log(5000)))
        source_v += kind.ripple_v / 2 * np.sin(2 * np.pi * (frequency_hz * time_s + rng.random()))
    return Supply(current_a, source_v - rng.uniform(*kind.resistance_ohm) * current_a)


@dataclass(frozen=True)
class Sensor:
    """One INA219 breakout with its errors."""

    current_gain: float
    offset_a: float
    voltage_gain: float
    noise_a: float
    cut: bool
    period_s: float
    meter_rate: float

    @classmethod
    def drawn(cls, rng: Generator, bounds: ErrorBounds) -> Sensor:
        """Draws each error uniformly within its bound."""

        def within(bound: float) -> float:
            return float(rng.uniform(-bound, bound))

        return cls(
            (1 + within(bounds.gain_errors_max[SHUNT])) * (1 + within(bounds.gain_errors_max[CURRENT])),
            within(bounds.current_offset_max_a),
            1 + within(bounds.voltage_gain_error_max),
            float(10 ** rng.uniform(-6, -4.3)) / Shunt.ohm,
            bool(rng.random() < 0.5),
            532e-6 * (1 + within(0.1)),
            1 + within(5e-3),
        )


def _mean(running: Float64Array, start_s: Float64Array, end_s: Float64Array) -> Float64Array:
    def at(time_s: Float64Array) -> Float64Array:
        place = time_s / GRID_S
        whole = np.clip(place.astype(np.int64), 0, running.size - 2)
        return np.asarray(running[whole] + (place - whole) * (running[whole + 1] - running[whole]))

    return (at(end_s) - at(start_s)) / ((end_s - start_s) / GRID_S)


def _codes(values: Float64Array, step: float, cut: bool) -> Float64Array:
    return np.floor(values / step + (0.0 if cut else 0.5)) * step


def recorded(rng: Generator, supply: Supply, sensor: Sensor, bounds: ErrorBounds, pairs: bool) -> PowerTrace:
    """Trace of the supply as the meter reads it, on the meter's clock."""
    running_a = np.concatenate([np.zeros(1), np.cumsum(supply.current_a)])
    running_v = np.concatenate([np.zeros(1), np.cumsum(supply.voltage_v)])
    period_s = sensor.period_s
    if pairs:
        start_s = np.arange(0.01, LENGTH_S - 3 * period_s, 2 * period_s)
        bus_start_s = start_s + period_s
    else:
        row_s = (BUS_EVERY + BUS_SLOT_PERIODS) * period_s
        rows_s = np.arange(0.01, LENGTH_S - row_s - 2 * period_s, row_s)
        bus_start_s = rows_s + 0.1 * period_s
        start_s = (rows_s[:, None] + (BUS_SLOT_PERIODS + np.arange(BUS_EVERY)) * period_s).ravel()
    current_a = _mean(running_a, start_s, start_s + period_s) + rng.normal(0, sensor.noise_a, start_s.size)
    current_a = _codes(current_a * sensor.current_gain + sensor.offset_a, bounds.current_step_a, sensor.cut)
    bus_v = _mean(running_v, bus_start_s, bus_start_s + period_s) * sensor.voltage_gain
    bus_v = _codes(bus_v, bounds.voltage_step_v, sensor.cut)
    meter_ns = _meter_ns(start_s + period_s / 2, sensor)
    if pairs:
        return PowerTrace.of(meter_ns, current_a, bus_v)
    bus = BusReadings(_meter_ns(bus_start_s + period_s, sensor), bus_v)
    held_v = np.repeat(bus_v, BUS_EVERY)
    return replace(PowerTrace.of(meter_ns, current_a, held_v), bus=bus)


def _meter_ns(time_s: Float64Array, sensor: Sensor) -> npt.NDArray[np.int64]:
    return np.asarray(np.rint(time_s * sensor.meter_rate * 1e9), np.int64)


def corrected(trace: PowerTrace, sensor: Sensor, bounds: ErrorBounds) -> PowerTrace:
    """Corrects a trace by the true gains and offset, and for truncated codes."""
    half = 0.5 if sensor.cut else 0.0
    current_a = (trace.current_a + half * bounds.current_step_a - sensor.offset_a) / sensor.current_gain

    def volts(values: Float64Array) -> Float64Array:
        return np.asarray((values + half * bounds.voltage_step_v) / sensor.voltage_gain, np.float64)

    bus = BusReadings(trace.bus.meter_ns, volts(trace.bus.voltage_v)) if trace.bus else None
    return replace(trace, current_a=current_a, voltage_v=volts(trace.voltage_v), bus=bus)


def estimates(rng: Generator, trace: PowerTrace, sensor: Sensor, bounds: ErrorBounds) -> list[tuple[str, Quantity]]:
    """Run energy, marginal energy and idle power with their intervals."""
    board_rate = 1 + float(rng.uniform(-CRYSTAL_ERROR_MAX, CRYSTAL_ERROR_MAX))
    late_ns = round(float(rng.normal(0, MAP_U_S)) * 1e9)
    board_to_meter = ClockMap(
        "board", "meter", 0, late_ns, sensor.meter_rate / board_rate, MAP_U_S * 1e9, 0.0, "trial", 0.0, 9
    )
    cells = Cells.of(trace.on_supply_line())

    def window(start_s: float, end_s: float) -> Window:
        return Window.on_meter(board_to_meter, round(start_s * board_rate * 1e9), round(end_s * board_rate * 1e9))

    run = window_energy_j(cells, window(*EDGES_S[2:]), bounds)
    idle = idle_power(cells, [window(*EDGES_S[:2]), window(*AFTER_S)], bounds)
    figures = (run.energy, marginal_energy(run, idle, bounds).energy, idle.power)
    return list(zip(QUANTITIES, figures, strict=True))


def truths(supply: Supply, share: float) -> dict[str, float]:
    """True values of the same quantities, from the grid.

    Args:
        share: place of the idle power during the run between the idle power before (0) and after it (1).
    """
    power_w = supply.current_a * supply.voltage_v

    def mean_w(start_s: float, end_s: float) -> float:
        return float(power_w[round(start_s / GRID_S) : round(end_s / GRID_S)].mean())

    energy_j = mean_w(*EDGES_S[2:]) * RUN_S
    before_w, after_w = mean_w(*EDGES_S[:2]), mean_w(*AFTER_S)
    idle_w = before_w + share * (after_w - before_w)
    return dict(zip(QUANTITIES, (energy_j, energy_j - idle_w * RUN_S, idle_w), strict=True))


def known(bounds: ErrorBounds) -> ErrorBounds:
    """Bounds with exact gain and offset, which cannot hide a mistake in the other parts of the budget."""
    return replace(bounds, calibration=SensorCalibration("exact"))


@dataclass(frozen=True)
class Trial:
    """One quantity of one simulated measurement."""

    quantity: str
    calibrated: bool
    stated: Quantity
    truth: float

    @property
    def held(self) -> bool:
        """True if the interval contains the true value."""
        return self.stated.covers(self.truth)


def trial(kind: Kind, seed: int, *, pairs: bool = False) -> list[Trial]:
    """Simulates one measurement and evaluates it twice: uncalibrated, and with gain and offset known."""
    rng = np.random.default_rng(seed)
    bounds = ina219_breakout(seen_fraction=0.5 if pairs else 1.0)
    supply, sensor = supply_of(rng, kind), Sensor.drawn(rng, bounds)
    trace, truth = recorded(rng, supply, sensor, bounds, pairs), truths(supply, rng.random())
    exact = corrected(trace, sensor, bounds)
    results = []
    for calibrated, one, model in ((False, trace, bounds), (True, exact, known(bounds))):
        for name, estimate in estimates(rng, one, sensor, model):
            results.append(Trial(name, calibrated, estimate, truth[name]))
    return results


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Coverage of stated intervals, SIMULATED.")
    parser.add_argument("--trials", type=int, default=100, help="measurements of each kind of load")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind of load; may be repeated")
    parser.add_argument("--pairs", action="store_true", help="use shunt+bus mode instead of shunt mode")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"SIMULATED; intervals of 100 that hold the true value (median u / value), {options.trials} trials")
    columns = [(calibrated, name) for calibrated in (False, True) for name in QUANTITIES]
    titles = [f"{name}{', known' if calibrated else ''}" for calibrated, name in columns]
    print(f"| load | {' | '.join(titles)} |\n|---|{'---|' * len(titles)}", flush=True)
    every: list[Trial] = []
    for name in options.kind or KINDS:
        results = [
            one
            for n in range(options.trials)
            for one in trial(KINDS[name], options.seed + 1000 * n, pairs=options.pairs)
        ]
        every += results
        print(_row(name, results, columns), flush=True)
    print(_row("all", every, columns))
    return 0


def _row(name: str, results: list[Trial], columns: list[tuple[bool, str]]) -> str:
    cells = []
    for calibrated, quantity in columns:
        some = [one for one in results if (one.calibrated, one.quantity) == (calibrated, quantity)]
        share = 100 * sum(one.held for one in some) / len(some)
        width = 100 * float(np.median([one.stated.relative_u for one in some]))
        cells.append(f"{share:.0f} ({width:.3f} %)")
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
