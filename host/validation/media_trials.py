"""Checks that media with a small difference are found different, and equal media are not. SIMULATED.

    .venv/bin/python host/validation/media_trials.py --trials 500

Each trial draws a workload with background work, write-back and tail, a sensor and a board. It measures the workload
five times in randomised blocks on each of three media: a first one, one that costs 3 % more above idle, and the first
one again. Runs of one medium differ at random (1 % of the energy above idle). Idle power wanders, and its level differs
from run to run. The sensor's gain and offset are the same in all runs, and are known only as well as its calibration,
or its data sheet, states.

The figures are computed as in every measurement: energies, one result a run, and the comparison that `--storage a,b`
prints. Exit status 1 if fewer than 90 of 100 real differences are found, or if fewer than 94 of 100 comparisons of
equal media find none ("not invented").
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials run side by side

from known_meter import IDLE_S, KINDS, Kind, Sensor, measured, phases
from known_pieces import Piece, bursts, wander
from known_work import Choice, Known, work
from opjoule.base.units import Quantity
from opjoule.bench.simulation.parts import Float64Array
from opjoule.campaign.campaign import block_order
from opjoule.energy.comparison import differ, ratio_limits
from opjoule.energy.error_bounds import CURRENT, SHUNT
from opjoule.results.long_table import means
from opjoule.runs.evaluation.quantities.common import COMMON
from opjoule.runs.evaluation.quantities.definition import Quantities, Repeat, by_repeat
from opjoule.runs.evaluation.quantities.operations import OPERATIONS
from opjoule.runs.evaluation.repeat_energy import repeat_energy
from opjoule.runs.evaluation.summary import budgets, headline_budget, shared_with_others
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.result import Conclusion

QUANTITIES: Final = Quantities((*COMMON, *OPERATIONS))
HEADLINE: Final = QUANTITIES.headline.key
REPEATS: Final = 5
SECONDS: Final = 20.0
SENSORS: Final = ("calibrated", "as delivered")


@dataclass(frozen=True)
class Scaled:
    """Power of another piece times a factor."""

    piece: Piece
    factor: float

    def until_j(self, time_s: Float64Array) -> Float64Array:
        """Energy drawn by each moment."""
        return self.factor * self.piece.until_j(time_s)


@dataclass(frozen=True)
class Verdict:
    """One comparison of two media."""

    differ: bool | None
    limits: tuple[float, float]
    """95.45 %"""
    true_ratio: float

    @property
    def held(self) -> bool:
        """True if the interval contains the true ratio."""
        low, high = self.limits
        return low <= self.true_ratio <= high


def as_delivered(rng: np.random.Generator, kind: Kind) -> Sensor:
    """Draws a named sensor with errors uniform within its data sheet's bounds."""
    bounds = replace(kind.bounds, sensor_id="bench-1@0x40")
    gains = [1 + rng.uniform(-1, 1) * bounds.gain_errors_max[name] for name in (SHUNT, CURRENT)]
    return Sensor(float(np.prod(gains)), rng.uniform(-1, 1) * bounds.current_offset_max_a, bounds)


def one_run(
    rng: np.random.Generator, kind: Kind, known: Known, sensor: Sensor, factor: float, idle_w: float
) -> Quantity:
    """The headline of one run whose energy above idle is the drawn workload's times a factor."""
    end_s = known.settled_s + IDLE_S + 1.0
    idle: list[Piece] = [
        wander(rng, end_s + 1, idle_w * rng.normal(1, 0.005), 3e-3),
        bursts(rng, end_s + 1, 5.0, 5e-3),
    ]
    load = [Scaled(piece, factor) for piece in known.pieces]
    placed = measured(rng, kind, [*idle, *load], end_s, sensor)
    energies = repeat_energy(placed, phases(known), 1)
    run_s = known.end_s - known.start_s
    repeat = Repeat(1, energies, run_s, known.settled_s - known.end_s, counted=known.kind.size)
    figures = [QUANTITIES.figures(repeat)]
    made = {**budgets([energies]), "headline_budget": headline_budget([repeat])}
    shared = shared_with_others(made, QUANTITIES, figures)
    numbers = plain(QUANTITIES.over_repeats(figures))
    read = Conclusion(by_repeat=by_repeat(figures), shared=shared, numbers=numbers)
    return means(read, QUANTITIES)[QUANTITIES.headline.key]


def trial(sensor_kind: str, difference: float, spread: float, seed: int) -> tuple[Verdict, Verdict]:
    """Compares two media that differ, and two that do not."""
    rng = np.random.default_rng(seed)
    kind = KINDS[int(rng.integers(len(KINDS)))]
    known = work(rng, Choice(seconds=SECONDS), IDLE_S + 1.0, kind.period_s)
    sensor = Sensor.calibrated(rng, kind) if sensor_kind == SENSORS[0] else as_delivered(rng, kind)
    idle_w = rng.uniform(1.5, 3.5)
    factors = {"a": 1.0, "a again": 1.0, "dearer": 1.0 + difference}
    names = list(factors)
    runs: dict[str, list[Quantity]] = {name: [] for name in names}
    for _, which in block_order(len(names), REPEATS, seed):
        factor = factors[names[which]] * rng.normal(1, spread)
        runs[names[which]].append(one_run(rng, kind, known, sensor, factor, idle_w))
    base, again, dearer = (Quantity.mean(sides) for sides in runs.values())
    return _verdict(dearer, base, 1.0 + difference), _verdict(again, base, 1.0)


def _verdict(one: Quantity, base: Quantity, true_ratio: float) -> Verdict:
    return Verdict(differ(one, base), ratio_limits(one, base), true_ratio)


def main() -> int:
    """Prints a table; exit status 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100, help="trials of each sensor")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first trial")
    parser.add_argument("--difference", type=float, default=3.0, metavar="PERCENT")
    parser.add_argument("--spread", type=float, default=1.0, metavar="PERCENT", help="spread of runs of one medium")
    parser.add_argument("--sensor", action="append", choices=SENSORS, help="only this sensor; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    print(f"SIMULATED; media differ by {options.difference:g} %, {REPEATS} runs of each vary by {options.spread:g} %")
    print("| sensor | trials | found | not invented | ratio held | median width |\n|---|---|---|---|---|---|")
    good = True
    for sensor in options.sensor or SENSORS:
        one = partial(trial, sensor, options.difference / 100, options.spread / 100)
        with ProcessPoolExecutor(options.jobs) as pool:
            made = list(pool.map(one, range(options.seed, options.seed + options.trials), chunksize=2))
        seen = np.mean([bool(apart.differ) for apart, _ in made])
        quiet = np.mean([not same.differ for _, same in made])
        held = np.mean([ratio.held for pair in made for ratio in pair])
        width = np.median([np.ptp(ratio.limits) / 2 for pair in made for ratio in pair])
        shares = " | ".join(f"{100 * share:.1f} of 100" for share in (seen, quiet, held))
        print(f"| {sensor} | {len(made)} | {shares} | ±{100 * width:.2f} % |", flush=True)
        good = good and bool(seen >= 0.90 and quiet >= 0.94)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
