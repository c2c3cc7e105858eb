"""Compares energy, marginal energy and idle power from the real firmware with the truth. SIMULATED.

    .venv/bin/python host/validation/firmware_budget.py --trials 16

Each trial plays idle, a run and idle to the firmware in the rig simulator, with a random load, supply, ripple, noise,
chip clock and resonator of the board's controller. The sensor has no gain or offset error, which could hide a mistake
in the other parts of the budget. Prints how many intervals contain the true value, and each interval that does not.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from opjoule.base.units import Quantity
from opjoule.energy.baseline import idle_power, marginal_energy
from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.energy.window import Timebase, Window, window_energy_j
from rig_session import PERFECT_SENSOR, Recording, record

SENSOR = replace(PERFECT_SENSOR, calibration=SensorCalibration("exact"), seen_fraction=1.0)
EDGES_S = [0.4, 3.4, 3.9, 8.9, 9.4, 12.4]
"""Start and end of the idle before, the run and the idle after."""
END_S = 12.8
EDGE_U_NS = 500.0
Rows = list[tuple[float, float]]


def _quiet(chance: random.Random, start_s: float, end_s: float) -> Rows:
    return [(start_s, chance.uniform(0.5, 1.3))]


def _switched(shortest_s: float, longest_s: float) -> Callable[[random.Random, float, float], Rows]:
    def rows(chance: random.Random, start_s: float, end_s: float) -> Rows:
        low_a, high_a = chance.uniform(0.35, 0.6), chance.uniform(0.9, 1.5)
        levels, at_s, high = [], start_s, True
        while at_s < end_s:
            levels.append((at_s, high_a if high else low_a))
            at_s, high = at_s + np.exp(chance.uniform(np.log(shortest_s), np.log(longest_s))), not high
        return levels

    return rows


def _ramp(chance: random.Random, start_s: float, end_s: float) -> Rows:
    low_a, high_a = chance.uniform(0.35, 0.6), chance.uniform(0.9, 1.5)
    times_s = np.arange(start_s, end_s, 0.01)
    return [(t, low_a + (high_a - low_a) * (t - start_s) / (end_s - start_s)) for t in times_s.tolist()]


LOADS = {
    "quiet": _quiet,
    "40 ms": _switched(0.035, 0.046),
    "50 us to 100 ms": _switched(50e-6, 0.1),
    "10 ms to 1 s": _switched(0.01, 1.0),
    "ramp": _ramp,
}


def recording(seed: int, folder: Path) -> tuple[str, Recording]:
    """Records one measurement; returns the load's name and the recording."""
    chance = random.Random(seed)
    name = chance.choice(list(LOADS))
    idle_a = chance.uniform(0.3, 0.6)
    drift_a = chance.gauss(0, 2e-4)
    rows = [
        (0.0, idle_a - drift_a),
        *LOADS[name](chance, EDGES_S[2], EDGES_S[3]),
        (EDGES_S[3], idle_a + drift_a),
    ]
    options = {
        "--noise-uv": f"{10 ** chance.uniform(0, 1.7):.2f}",
        "--sensor-clock-error-ppm": f"{chance.uniform(-9e4, 9e4):.0f}",
        "--clock-error-ppm": f"{chance.uniform(-5e3, 5e3):.0f}",
        "--ripple": f"{chance.choice([0, 0, 0, 25])},{10 ** chance.uniform(1.7, 3.2):.1f}",
        "--seed": str(seed),
    }
    flat = [part for pair in options.items() for part in pair]
    rig = record(
        folder,
        rows,
        EDGES_S,
        *flat,
        end_s=END_S,
        voltage_v=chance.uniform(5.0, 5.25),
        source_ohm=chance.choice([0.0, 0.05, 0.1, 0.3]),
    )
    return name, rig


def compared(rig: Recording) -> dict[str, tuple[Quantity, float]]:
    """Quantity -> measured value and true value."""
    windows = [
        Window(start, end, EDGE_U_NS, timebase=Timebase("board", round_s * 1e9 / (end - start), 0.0))
        for start, end, round_s in zip(
            rig.edges_ns[:-1].tolist(), rig.edges_ns[1:].tolist(), np.diff(EDGES_S).tolist(), strict=True
        )
    ]
    true_j = [interval["energy_j"] for interval in rig.truth["intervals"]]
    run = window_energy_j(rig.cells, windows[2], SENSOR)
    idle = idle_power(rig.cells, [windows[0], windows[4]], SENSOR)
    run_s = EDGES_S[3] - EDGES_S[2]
    idle_w = (true_j[0] + true_j[4]) / (EDGES_S[1] - EDGES_S[0] + EDGES_S[5] - EDGES_S[4])
    marginal = marginal_energy(run, idle, SENSOR).energy
    return {
        "energy": (run.energy, true_j[2]),
        "marginal": (marginal, true_j[2] - idle_w * run_s),
        "idle power": (idle.power, idle_w),
    }


def main() -> int:
    """Prints the results; exit status 1 if fewer than 90 in 100 intervals contain the true value."""
    parser = argparse.ArgumentParser(description="Coverage with the real firmware, SIMULATED.")
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    figures: list[tuple[str, bool, float]] = []
    for n in range(options.trials):
        with tempfile.TemporaryDirectory() as folder:
            name, rig = recording(options.seed + n, Path(folder))
        for quantity, (measured, truth) in compared(rig).items():
            held = measured.covers(truth)
            figures.append((quantity, held, measured.relative_u))
            if not held:
                off = 100 * (measured.value / truth - 1)
                print(
                    f"trial {n}, {name}: {quantity} {off:+.4f} %, stated {100 * measured.relative_u:.4f} %",
                    flush=True,
                )
    print(f"SIMULATED; {options.trials} measurements of each quantity, gain and offset known:")
    for quantity in ("energy", "marginal", "idle power"):
        some = [(held, width) for one, held, width in figures if one == quantity]
        width = 100 * float(np.median([width for _, width in some]))
        print(f"{quantity}: {sum(held for held, _ in some)} hold the true value, median u {width:.3f} %")
    return 0 if sum(held for _, held, _ in figures) >= 0.9 * len(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
