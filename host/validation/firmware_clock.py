"""Checks phases and energies from the real firmware on a meter whose resonator wanders. SIMULATED.

    .venv/bin/python host/validation/firmware_clock.py --minutes 30

The clock of the rig simulator's controller is 0.5 % off, and warms up by 30 ppm or wanders by 3 ppm. The board's clock
is the time of the profile; its edges come 0.5 to 1.5 s apart. Nine of ten edges make the clock map. Every tenth edge is
the end of a phase, whose place on the meter's clock and whose energy are known. Exit code 1 if a phase's edge is off by
more than its limit, or the energy of a phase of a minute or more by more than 0.1 % (the sensor has no error).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
from opjoule.clocks.edges import fit_edges, match_edges
from opjoule.energy.trace.journal import read_edges
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import SensorSettings
from opjoule.meters.messages import Mode
from opjoule.runs.evaluation.alignment import METER_EDGE_U_NS
from rig_session import PERFECT_SENSOR, record

CLOCKS = {
    "30 ppm of warm-up, 5 min": (["--clock-error-ppm", "-5000", "--clock-warmup", "30,300"], 50.0),
    "wander of 3 ppm": (["--clock-error-ppm", "5000", "--clock-wander", "3"], 20.0),
}
"""Name -> options of the simulator, and limit of the error of a phase's edge [us]."""
PHASE_EACH = 10
PHASE_MIN_S = 60.0
ENERGY_LIMIT = 1e-3
START_NS = 10**12
"""Reading of the board's clock at the start of the profile."""


def trial(name: str, minutes: float, seed: int) -> bool:
    """Records one run and prints its row; True if the limits are kept."""
    options, limit_us = CLOCKS[name]
    chance = random.Random(seed)
    rows = [(at / 10, chance.uniform(0.3, 1.4)) for at in range(int(600 * minutes))]
    edges_s = np.cumsum([0.3] + [chance.uniform(0.5, 1.5) for _ in range(int(60 * minutes * 0.95))]).round(7)
    edges_s = edges_s[edges_s < 60 * minutes - 0.5]
    with tempfile.TemporaryDirectory() as folder:
        settings = SensorSettings(mode=Mode.PAIRS)
        rig = record(
            Path(folder), rows, edges_s.tolist(), *options,
            end_s=60 * minutes, settings=settings, limit_s=7200.0,
        )  # fmt: skip
        meter = read_edges(Path(folder))
    board_ns = START_NS + np.rint(edges_s * 1e9).astype(np.int64)
    level = (1 - np.arange(board_ns.size) % 2).astype(np.int8)
    phase = np.arange(PHASE_EACH, board_ns.size - PHASE_EACH, PHASE_EACH)
    kept = np.setdiff1d(np.arange(board_ns.size), phase)
    pairs = match_edges(board_ns[kept], level[kept], meter.meter_ns, meter.level)
    fitted = fit_edges(pairs, "board", "meter", METER_EDGE_U_NS, METER_EDGE_U_NS)
    error_us = (fitted.to_target(board_ns[phase]) - meter.meter_ns[phase]) * 1e-3
    u_us = fitted.u_ns(board_ns[phase]) * 1e-3
    energy_error = _energy_errors(rig, fitted, board_ns, phase)
    held = np.abs(error_us).max() <= limit_us and np.abs(energy_error).max() <= ENERGY_LIMIT
    print(
        f"| {name} | {minutes:g} | {pairs.source_ns.size} of {kept.size} | {np.abs(error_us).max():.2f} | "
        f"{2 * u_us.max():.2f} | {100 * np.abs(energy_error).max():.4f} |{'' if held else ' LIMIT BROKEN'}",
        flush=True,
    )
    return bool(held)


def _energy_errors(rig, fitted, board_ns, phase) -> np.ndarray:  # noqa: ANN001  # one caller, above
    """Relative errors of the energies of consecutive phases of at least PHASE_MIN_S."""
    true_j = np.concatenate([[0.0], np.cumsum([interval["energy_j"] for interval in rig.truth["intervals"]])])
    errors = []
    first = 0
    for last in range(1, phase.size):
        start, end = phase[first], phase[last]
        if (board_ns[end] - board_ns[start]) * 1e-9 < PHASE_MIN_S:
            continue
        window = Window.on_meter(fitted, int(board_ns[start]), int(board_ns[end]))
        energy_j = window_energy_j(rig.cells, window, PERFECT_SENSOR).energy.value
        errors.append(energy_j / (true_j[end] - true_j[start]) - 1)
        first = last
    return np.array(errors)


def main() -> int:
    """Runs both clocks; exit status 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="simulated minutes with each clock")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("SIMULATED: | clock | min | edges matched | off by at most us | stated us | energy off by at most % |")
    held = [trial(name, options.minutes, options.seed) for name in CLOCKS]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
