"""Counts conversions that the firmware misses or reads twice in long runs, at the simulated chip. SIMULATED.

    .venv/bin/python host/validation/firmware_conversions.py --minutes 10

Each mode runs for --minutes of simulated time with a changing load, a sync edge about every second, and a clock
exchange every 0.2 s of this computer's time, as in a measurement. Exit code 1 if a conversion was missed or read twice,
a frame or an edge was lost, or an edge was off by more than 2 us.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from opjoule.meters.chips import SensorSettings
from opjoule.meters.messages import Mode
from rig_session import Recording, record

MODES = {
    "pairs, 12 + 12 bit": SensorSettings(mode=Mode.PAIRS),
    "pairs, 12 bit + 9 bit bus": SensorSettings(mode=Mode.PAIRS, bus_adc=0),
    "pairs, 2 averages": SensorSettings(mode=Mode.PAIRS, shunt_adc=9, bus_adc=9),
    "pairs, 128 averages": SensorSettings(mode=Mode.PAIRS, shunt_adc=15, bus_adc=15),
    "shunts, 12 bit, bus each 128": SensorSettings(mode=Mode.SHUNTS),
    "shunts, 12 bit, bus each 64": SensorSettings(mode=Mode.SHUNTS, bus_every=64),
}
EDGE_LIMIT_S = 2e-6


@dataclass(frozen=True)
class Outcome:
    """Counts of one mode's run."""

    reads: int
    per_s: float
    missed: int
    read_twice: int
    lost: int
    edges: int
    lost_edges: int
    edge_error_s: float
    faults: dict[str, int]

    def broken(self) -> bool:
        """True if a limit is exceeded."""
        late = self.edge_error_s > EDGE_LIMIT_S
        return bool(self.missed or self.read_twice or self.lost or self.lost_edges or late)


def load(seconds: float, chance: random.Random) -> list[tuple[float, float]]:
    """Steps of 5 to 500 ms between 0.3 and 1.4 A."""
    rows, at_s = [], 0.0
    while at_s < seconds:
        rows.append((at_s, chance.uniform(0.3, 1.4)))
        at_s += chance.uniform(0.005, 0.5)
    return rows


def edges(seconds: float, chance: random.Random) -> list[float]:
    """Times [s] of edges 0.5 to 1.5 s apart, as the loader plays them."""
    edges_s, at_s = [], 0.3
    while at_s < seconds - 0.5:
        edges_s.append(round(at_s, 7))
        at_s += chance.uniform(0.5, 1.5)
    return edges_s


def outcome(rig: Recording) -> Outcome:
    """Counts of a recording, and the greatest error of its edges about their median."""
    shunt, bus = rig.truth["sensor"]["shunt"], rig.truth["sensor"]["bus"]
    losses = rig.summary.losses
    good_ns = rig.trace.meter_ns[rig.trace.good]
    return Outcome(
        reads=shunt["reads"],
        per_s=(len(good_ns) - 1) / (float(good_ns[-1] - good_ns[0]) * 1e-9),
        missed=shunt["missed"] + bus["missed"],
        read_twice=shunt["read_twice"] + bus["read_twice"],
        lost=losses.lost_samples + losses.link["lost_frames"],
        edges=len(rig.edges_ns),
        lost_edges=losses.lost_edges + len(rig.edges_s) - len(rig.edges_ns),
        edge_error_s=float(np.abs(rig.edge_errors_s).max()),
        faults=losses.faults,
    )


def main() -> int:
    """Prints the table; exit status 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(
        description="Counts conversions that the firmware misses or reads twice, SIMULATED."
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="simulated minutes of each mode")
    parser.add_argument("--mode", action="append", choices=MODES, help="only this mode; may be repeated")
    options = parser.parse_args()
    seconds, broken = options.minutes * 60, []
    print(f"SIMULATED, {options.minutes:g} minutes a mode")
    print(
        "| mode | conversions read | a second | missed | read twice | lost on the way | edges | off by at most "
        "| faults |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.mode or MODES:
        chance = random.Random(name)
        with tempfile.TemporaryDirectory() as folder:
            rig = record(
                Path(folder),
                load(seconds, chance),
                edges(seconds, chance),
                end_s=seconds,
                settings=MODES[name],
                limit_s=60 + 4 * seconds,
            )
        counts = outcome(rig)
        print(
            f"| {name} | {counts.reads:,} | {counts.per_s:,.1f} | {counts.missed} | {counts.read_twice} "
            f"| {counts.lost} | {counts.edges} | {counts.edge_error_s * 1e6:.2f} us | {counts.faults or 'none'} |",
            flush=True,
        )
        if counts.broken():
            broken.append(name)
    print(f"limits exceeded by: {'; '.join(broken)}" if broken else "all limits kept")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
