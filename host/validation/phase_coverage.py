"""Counts how often the stated interval of a short marked phase's energy contains the true value. SIMULATED.

    .venv/bin/python host/validation/phase_coverage.py --trials 40

Each trial draws a board whose power steps at random (each level lasts 1 to 300 ms), phases of 5 to 500 ms, and a
sensor. The sensor's gain and offset are known, so they cannot hide other errors. Its other errors are drawn: noise,
codes, and the clocks of the chip, the microcontroller and the board. The error of the clock map is drawn with its
stated standard uncertainty (2, 20 or 200 us), and is the same for every phase of a trial. A phase either begins and
ends anywhere ("anywhere"), or has a power of its own from its start to its end ("own power"). In the second case an
error of an edge matters most. Nothing here is a measurement of a board.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from energy_coverage import GRID_S, Sensor, Supply, corrected, known, recorded
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import idle_power
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.evaluation.alignment import AlignedTrace
from opjoule.runs.evaluation.quantities.phases import phase_figures
from opjoule.runs.record.phases import Phase, Role

LENGTH_S, IDLE_S = 16.0, 2.5
PHASES = 16
SHORTEST_S, LONGEST_S = 5e-3, 0.5
LEVEL_S = (1e-3, 0.3)
MAP_U_S = (2e-6, 20e-6, 200e-6)
FIGURES = ("energy_j", "marginal_energy_j")
BANDS_S = ((5e-3, 15e-3), (15e-3, 50e-3), (50e-3, 150e-3), (150e-3, 0.5))


@dataclass(frozen=True)
class Trial:
    """One figure of one phase."""

    figure: str
    own_power: bool
    map_u_s: float
    length_s: float
    value: float
    standard_u: float
    truth: float

    @property
    def held(self) -> bool:
        """True if the interval (k = 2) contains the true value."""
        return abs(self.value - self.truth) <= 2.0 * self.standard_u

    @property
    def relative_u(self) -> float:
        """Expanded uncertainty over the true value."""
        return 2.0 * self.standard_u / abs(self.truth)


def spans_of(rng: np.random.Generator) -> list[tuple[float, float]]:
    """Draws phases that do not overlap, in order of time, on the grid."""
    lengths = np.exp(rng.uniform(np.log(SHORTEST_S), np.log(LONGEST_S), PHASES))
    room = LENGTH_S - 2 * IDLE_S - 1.0 - lengths.sum()
    pauses = rng.dirichlet(np.ones(PHASES + 1)) * room
    starts = IDLE_S + 0.5 + np.cumsum(pauses[:-1]) + np.concatenate([[0.0], np.cumsum(lengths[:-1])])
    edges = np.rint(np.stack([starts, starts + lengths], axis=1) / GRID_S) * GRID_S
    return [(float(a), float(b)) for a, b in edges]


def supply_of(rng: np.random.Generator, spans: list[tuple[float, float]], *, own_power: bool) -> Supply:
    """Draws idle, random steps and idle; with own_power each phase has a constant power of its own."""
    count = round(LENGTH_S / GRID_S)
    current_a = np.full(count, rng.uniform(0.3, 0.5))
    idle_a = current_a[0]
    at = round(IDLE_S / GRID_S)
    while at < count - round(IDLE_S / GRID_S):
        span = round(float(np.exp(rng.uniform(*np.log(LEVEL_S)))) / GRID_S)
        current_a[at : at + span] = rng.uniform(idle_a, 1.4)
        at += span
    current_a[-round(IDLE_S / GRID_S) :] = idle_a
    for start_s, end_s in spans if own_power else ():
        current_a[round(start_s / GRID_S) : round(end_s / GRID_S)] = rng.uniform(idle_a, 1.4)
    current_a += rng.normal(0, 10 ** rng.uniform(-3.5, -2), count)
    return Supply(current_a, rng.uniform(5.0, 5.25) - rng.uniform(0.0, 0.1) * current_a)


def trials(seed: int, *, pairs: bool, own_power: bool, map_u_s: float) -> list[Trial]:
    """Simulates one run and evaluates its phases."""
    rng = np.random.default_rng(seed)
    bounds = ina219_breakout(seen_fraction=0.5 if pairs else 1.0)
    spans, sensor = spans_of(rng), Sensor.drawn(rng, bounds)
    supply = supply_of(rng, spans, own_power=own_power)
    trace = corrected(recorded(rng, supply, sensor, bounds, pairs), sensor, bounds).on_supply_line()
    board_rate = 1 + float(rng.uniform(-CRYSTAL_ERROR_MAX, CRYSTAL_ERROR_MAX))
    late_ns = round(float(rng.normal(0, map_u_s)) * 1e9)
    rate = sensor.meter_rate / board_rate
    board_to_meter = ClockMap("board", "meter", 0, late_ns, rate, map_u_s * 1e9, 0.0, "trial", 0.0, 9)
    aligned = AlignedTrace(Cells.of(trace), known(bounds), board_to_meter)

    def board_ns(time_s: float) -> int:
        return round(time_s * board_rate * 1e9)

    marked = [Phase(f"{n}", 1, board_ns(a), board_ns(b), role=Role.WORK) for n, (a, b) in enumerate(spans)]
    idles = [Phase("idle", 1, board_ns(a), board_ns(a + 2.0), role=Role.BASELINE) for a in (0.2, LENGTH_S - 2.2)]
    idle = idle_power(aligned.cells, [aligned.window(phase, phase) for phase in idles], aligned.sensor)
    power_w = supply.current_a * supply.voltage_v
    idle_w = float(power_w[: round(IDLE_S / GRID_S)].mean())
    figures = phase_figures(aligned, marked, idle, OperationTable.empty())
    made = []
    for n, (start_s, end_s) in enumerate(spans):
        energy_j = float(power_w[round(start_s / GRID_S) : round(end_s / GRID_S)].sum()) * GRID_S
        truth = dict(zip(FIGURES, (energy_j, energy_j - idle_w * (end_s - start_s)), strict=True))
        for name in FIGURES:
            figure = figures[f"by_phase.{n}.{name}"]
            assert figure.u is not None
            made.append(Trial(name, own_power, map_u_s, end_s - start_s, figure.value, figure.standard_u, truth[name]))
    return made


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40, help="runs of each kind, with 16 phases each")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"SIMULATED; intervals of 100 that hold the true value (median u / energy), {options.trials} runs each")
    for pairs in (False, True):
        every = [
            one
            for own_power in (False, True)
            for map_u_s in MAP_U_S
            for n in range(options.trials)
            for one in trials(options.seed + 1000 * n, pairs=pairs, own_power=own_power, map_u_s=map_u_s)
        ]
        print(f"\n{'shunt and bus' if pairs else 'shunt alone'}: {len(every)} figures, {_share_and_width(every)}")
        heads = [f"{1e3 * a:.0f} to {1e3 * b:.0f} ms" for a, b in BANDS_S]
        print(f"| phases | map | figure | {' | '.join(heads)} | all |\n|{'---|' * (len(heads) + 4)}")
        for own_power in (False, True):
            for map_u_s in MAP_U_S:
                for name in FIGURES:
                    of_case = [
                        figure
                        for figure in every
                        if (figure.own_power, figure.map_u_s, figure.figure) == (own_power, map_u_s, name)
                    ]
                    bands = [[figure for figure in of_case if a <= figure.length_s < b] for a, b in BANDS_S]
                    where = "own power" if own_power else "anywhere"
                    cells = " | ".join(_share_and_width(some) for some in [*bands, of_case])
                    print(f"| {where} | {1e6 * map_u_s:.0f} us | {name} | {cells} |", flush=True)
    return 0


def _share_and_width(some: list[Trial]) -> str:
    share = 100 * sum(figure.held for figure in some) / max(len(some), 1)
    return f"{share:.1f} ({100 * float(np.median([figure.relative_u for figure in some])):.2g} %)"


if __name__ == "__main__":
    sys.exit(main())
