"""Checks that intervals contain the true energy if packets are lost: host/validation/lost_packets.py [--trials 100].

SIMULATED profiles and meters. Each profile lasts 10 s: a constant load, square waves of 1 ms to 1 s, short bursts, a
ramp, or random work. 5 % of the packets are dropped, singly or up to 10 in a row. The sensor is ideal (no gain or
offset error), so nothing else widens the interval. Exit code 1 if fewer than 95 of 100 intervals contain the true
value.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from opjoule.energy.error_bounds import RESONATOR_ERROR_MAX, ErrorBounds
from opjoule.energy.trace.power_trace import Gap, PowerTrace
from opjoule.energy.window import EnergyResult, Window, window_energy_j

Float64Array = npt.NDArray[np.float64]
GRID_NS = 19_000
"""Step over which the true current is constant; 56 steps make an INA219's pair of conversions."""
SECONDS = 10.0
VOLTAGE_V = 5.1
LOSS = 0.05
COVERED_MIN = 0.95


@dataclass(frozen=True)
class Meter:
    """A meter that sends packets of samples."""

    name: str
    grid_steps: int
    """Grid steps from one sample to the next."""
    seen_steps: int
    """Number of these steps, from the first on, that are converted."""
    packet_samples: int
    keeps_sums: bool
    """True if the next packet gives the charge of a lost one."""
    lsb_a: float

    def sensor(self) -> ErrorBounds:
        """The meter without gain and offset errors."""
        return ErrorBounds(
            gain_errors_max={},
            current_offset_max_a=0.0,
            current_step_a=self.lsb_a,
            voltage_step_v=0.0,
            current_max_a=3.2,
            seen_fraction=self.seen_steps / self.grid_steps,
            clock_error_max=RESONATOR_ERROR_MAX,
        )


METERS = (
    Meter("INA219 shunt+bus, sums in every frame", 56, 28, 8, True, 1e-4),
    Meter("INA219 shunt+bus, without sums", 56, 28, 8, False, 1e-4),
    Meter("INA219 12-bit shunt only, without sums", 28, 28, 16, False, 1e-4),
    Meter("Monsoon 5 kHz, 3 samples a packet", 10, 10, 3, False, 1e-5),
)


def constant(rng: np.random.Generator, time_s: Float64Array) -> Float64Array:
    """Constant load."""
    return np.full(time_s.size, rng.uniform(0.3, 1.2))


def square(rng: np.random.Generator, time_s: Float64Array) -> Float64Array:
    """Two levels, period 1 ms to 1 s."""
    period_s = 10 ** rng.uniform(-3, 0)
    return np.where((time_s / period_s + rng.random()) % 1 < rng.uniform(0.2, 0.8), 1.2, 0.5)


def bursts(rng: np.random.Generator, time_s: Float64Array) -> Float64Array:
    """Bursts of 0.1 to 20 ms at random times, 5 to 200 a second."""
    current_a = np.full(time_s.size, 0.5)
    for start in rng.integers(0, time_s.size, int(SECONDS * rng.uniform(5, 200))).tolist():
        current_a[start : start + int(rng.uniform(0.1e-3, 20e-3) * 1e9 / GRID_NS)] = 1.3
    return current_a


def ramp(rng: np.random.Generator, time_s: Float64Array) -> Float64Array:
    """Slow change from one current to another."""
    first_a, last_a = rng.uniform(0.3, 1.3, 2)
    return first_a + (last_a - first_a) * time_s / SECONDS


def work(rng: np.random.Generator, time_s: Float64Array) -> Float64Array:
    """Levels that change at random times, on average every 3 to 100 ms."""
    changes = np.cumsum(rng.exponential(rng.uniform(3e-3, 100e-3), int(SECONDS / 3e-3) * 3))
    return rng.uniform(0.4, 1.3, changes.size + 1)[np.searchsorted(changes, time_s)]


Profile = Callable[[np.random.Generator, Float64Array], Float64Array]
PROFILES: tuple[Profile, ...] = (constant, square, bursts, ramp, work)


def trial(seed: int, meter: Meter, profile: Profile) -> tuple[EnergyResult, float]:
    """Simulates one recording with losses; returns the measured energy and the true one [J]."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(int(SECONDS * 1e9 / GRID_NS)) * GRID_NS * 1e-9
    current_a = profile(rng, time_s) + rng.normal(0, 0.01, time_s.size)
    samples = time_s.size // meter.grid_steps
    cells_a = current_a[: samples * meter.grid_steps].reshape(samples, meter.grid_steps)
    seen_a = np.rint(cells_a[:, : meter.seen_steps].mean(axis=1) / meter.lsb_a) * meter.lsb_a
    trace = lose_packets(rng, meter, seen_a)
    first, last = 100, samples - 100
    edge_ns = (2 * 100 - 1) * meter.grid_steps * GRID_NS // 2 + meter.seen_steps * GRID_NS // 2
    length_ns = (last - first) * meter.grid_steps * GRID_NS
    start = edge_ns // GRID_NS
    truth_j = float(current_a[start : start + length_ns // GRID_NS].sum()) * GRID_NS * 1e-9 * VOLTAGE_V
    return window_energy_j(trace, Window(edge_ns, edge_ns + length_ns, 0.0), meter.sensor()), truth_j


def lose_packets(rng: np.random.Generator, meter: Meter, seen_a: Float64Array) -> PowerTrace:
    """Trace without 5 % of its packets, lost singly or 1 to 10 in a row."""
    run = int(rng.integers(1, 11)) if rng.random() < 0.5 else 1
    packets = -(-seen_a.size // meter.packet_samples)
    runs = packets // run
    lost_run = np.isin(np.arange(runs + 1), rng.choice(runs, round(LOSS * runs), replace=False))
    lost_packet = np.repeat(lost_run, run)[:packets]
    lost = np.repeat(lost_packet, meter.packet_samples)[: seen_a.size]
    lost[:20] = lost[-20:] = False
    period_ns = meter.grid_steps * GRID_NS
    centre_ns = np.arange(seen_a.size, dtype=np.int64) * period_ns + meter.seen_steps * GRID_NS // 2
    steps = np.flatnonzero(np.diff(lost.astype(np.int8)))
    gaps = [
        Gap.between(
            int(centre_ns[before]),
            int(centre_ns[last + 1]),
            int(last - before),
            "packet lost",
            float(seen_a[before + 1 : last + 1].mean()) if meter.keeps_sums else None,
        )
        for before, last in zip(steps[::2], steps[1::2], strict=True)
    ]
    current_a = np.where(lost, np.nan, seen_a)
    return PowerTrace.of(centre_ns, current_a, np.where(lost, np.nan, VOLTAGE_V), gaps)


def validate(meter: Meter, trials: int, first_seed: int) -> bool:
    """Runs the trials of one meter and prints a line for each profile; True if enough intervals contain the truth."""
    held = True
    for number, profile in enumerate(PROFILES):
        trials_made = [trial(first_seed + 1000 * number + at, meter, profile) for at in range(trials)]
        covered = float(np.mean([result.energy.covers(truth) for result, truth in trials_made]))
        errors = [abs(result.energy.value - truth) / truth for result, truth in trials_made]
        widths = [result.energy.u / truth for result, truth in trials_made]
        lost = float(np.mean([result.lost_samples for result, _ in trials_made]))
        print(
            f"SIMULATED {meter.name}, {profile.__name__}: {100 * covered:.0f} % of {trials} intervals hold the true "
            f"value, {lost:.0f} samples lost, median error {100 * np.median(errors):.4f} %, "
            f"median u {100 * np.median(widths):.4f} %"
        )
        held = held and covered >= COVERED_MIN
    return held


def main() -> int:
    """Validates all meters; exit status 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100, help="trials of each meter and profile")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    held = [validate(meter, options.trials, options.seed) for meter in METERS]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
