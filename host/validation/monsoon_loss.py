"""Compares energy from a Monsoon's packets with the truth if samples are dropped in the device or packets are lost.

    .venv/bin/python host/validation/monsoon_loss.py --trials 100

SIMULATED: host/tests/support/software_monsoon.py makes real 64-byte packets, calibration samples included. The scale is
exact, so only loss and rounding widen the stated interval.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import numpy as np
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.interface import GapEvent, Samples
from opjoule.meters.monsoon.assembler import Calibration, MonsoonAssembler
from opjoule.meters.monsoon.models import HVPM
from software_monsoon import HVPM as UNIT
from software_monsoon import Stream, Supply, stream

START_NS, END_NS = 250_000_000, 4_750_000_000


def random_work(seed: int) -> Supply:
    """Supply of a board that switches between three levels at random, about fifty times a second."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.exponential(0.02, 500))
    return Supply((0.0, *steps), tuple(0.5 + rng.choice([0.0, 0.4, 0.9], 501)), tuple(5.1 + rng.normal(0, 0.01, 501)))


def recorded(made: Stream) -> PowerTrace:
    """Trace that the host decodes from the packets."""
    memory = UNIT.memory()
    scale = HVPM.channel_scale("main", lambda opcode, length, signed: memory[opcode])
    events = MonsoonAssembler(Calibration(HVPM, "main", scale)).take(made.packets.tobytes(), made.due_ns + 10**12)
    samples = [event for event in events if isinstance(event, Samples)]
    columns = (
        np.concatenate([getattr(one, name) for one in samples]) for name in ("meter_ns", "current_a", "voltage_v")
    )
    return PowerTrace.of(*columns, [event.gap for event in events if isinstance(event, GapEvent)])


def ideal(sensor: ErrorBounds) -> ErrorBounds:
    """The sensor without gain and offset errors."""
    return replace(sensor, gain_errors_max={}, current_offset_max_a=0.0)


def main() -> int:
    """Prints a line for each kind of loss; exit status 1 if fewer than 95 % of the intervals contain the truth."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    trials = parser.parse_args().trials
    sensor, failed = ideal(HVPM.error_bounds("main")), False
    kinds = {
        "nothing lost": {},
        "5 % dropped in the device": {"drop_rate": 0.05},
        "5 % of packets lost": {"lose_rate": 0.05},
    }
    for title, losses in kinds.items():
        errors, stated = [], []
        for seed in range(trials):
            supply = random_work(seed)
            made = stream(supply, 5, seed=seed, burst=3, noise_a=2e-3, **losses)
            energy = window_energy_j(recorded(made), Window(START_NS, END_NS, 0), sensor).energy
            truth_j = supply.energy_j(START_NS * 1e-9, END_NS * 1e-9)
            errors.append(abs(energy.value - truth_j) / truth_j)
            stated.append(energy.u / truth_j)
        inside = float(np.mean(np.array(errors) <= np.array(stated)))
        failed |= inside < 0.95
        print(
            f"SIMULATED Monsoon, {title}: {inside:.0%} of {trials} stated intervals hold the true value, "
            f"median error {np.median(errors):.4%}, greatest {max(errors):.4%}, median u {np.median(stated):.4%}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
