"""Measures bursts far shorter than a conversion with the real firmware: host/validation/fast_bursts.py [--seeds 2].

SIMULATED sensor and microcontroller. Each run plays 3 s of bursts between 0.5 and 1.3 A behind a supply of 0, 0.15 or
0.3 ohm. Bursts and pauses have random lengths: exponential with a mean of 5 or 20 us, or 20 to 100 us or 0.2 to 5 ms,
uniform on a logarithmic scale. Gain, offset and clock are known, so they cannot hide other errors. Prints the error of
the energy and the stated u (k = 2). Exit code 1 if more than one interval in ten misses the true value.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from opjoule.energy.cells import Cells
from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout
from rig_session import record

LOW_A, HIGH_A = 0.5, 1.3
BEGIN_S, END_S = 1.0, 4.0
BURSTS_S = ((5e-6, 5e-6), (20e-6, 20e-6), (20e-6, 100e-6), (200e-6, 5e-3))
"""Two equal numbers: mean of exponential lengths. Otherwise limits of lengths uniform on a logarithmic scale."""


def rows(rng: np.random.Generator, shortest_s: float, longest_s: float) -> list[tuple[float, float]]:
    """Times [s] and currents [A] of a profile."""
    made, at_s = [(0.0, LOW_A)], BEGIN_S
    while at_s < END_S:
        made.append((round(at_s, 9), HIGH_A if len(made) % 2 else LOW_A))
        if shortest_s == longest_s:
            length_s = float(rng.exponential(shortest_s))
        else:
            length_s = float(np.exp(rng.uniform(np.log(shortest_s), np.log(longest_s))))
        at_s += max(length_s, 1e-7)
    return made


def measured(seed: int, source_ohm: float, lengths_s: tuple[float, float]) -> tuple[float, float]:
    """Relative error of the energy, and its stated relative expanded uncertainty."""
    rng = np.random.default_rng(seed)
    bounds = replace(ina219_breakout(seen_fraction=1.0), calibration=SensorCalibration("exact"), clock_error_max=0.0)
    with tempfile.TemporaryDirectory() as folder:
        edges_s = [BEGIN_S - 0.1, END_S + 0.05]
        made = record(Path(folder), rows(rng, *lengths_s), edges_s, source_ohm=source_ohm, end_s=END_S + 1)
    cells = Cells.of(made.trace.on_supply_line()) if made.cells.supply is None else made.cells
    window = Window(int(made.edges_ns[0]), int(made.edges_ns[1]), 500.0)
    energy = window_energy_j(cells, window, bounds).energy
    truth_j = made.truth["intervals"][0]["energy_j"]
    return energy.value / truth_j - 1, (energy.u or 0.0) / truth_j


def main() -> int:
    """Prints the table; exit status 1 if fewer than nine in ten intervals contain the true value."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    print("SIMULATED: | supply, ohm | bursts, us | error of each seed, % | stated u, % |")
    every: list[bool] = []
    for source_ohm in (0.0, 0.15, 0.3):
        for lengths_s in BURSTS_S:
            trials = [measured(seed, source_ohm, lengths_s) for seed in range(1, options.seeds + 1)]
            every += [abs(error) <= u for error, u in trials]
            errors = ", ".join(f"{100 * error:+.3f}" for error, _ in trials)
            u = 100 * float(np.median([u for _, u in trials]))
            name = " to ".join(f"{1e6 * length_s:g}" for length_s in dict.fromkeys(lengths_s))
            print(f"| {source_ohm:g} | {name} | {errors} | {u:.3f} |", flush=True)
    print(f"SIMULATED: {sum(every)} of {len(every)} intervals contain the true value")
    return 0 if sum(every) >= 0.9 * len(every) else 1


if __name__ == "__main__":
    sys.exit(main())
