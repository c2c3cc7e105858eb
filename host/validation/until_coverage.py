"""Counts how often the interval at which `--until-u` ends contains the true value. SIMULATED.

    .venv/bin/python host/validation/until_coverage.py --trials 20000

Each trial draws repeats of one energy with normal scatter and ends as a measurement with `--until-u 3%` ends. Nothing
else contributes to the uncertainty, so that nothing hides what the choice of the end does to the interval.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from opjoule.base.units import exact
from opjoule.runs.evaluation.quantities.definition import over_repeats
from opjoule.runs.evaluation.until import REPEATS_MIN, outcome
from opjoule.runs.measuring.plan import REPEATS

TRUE_J = 1.0
LIMIT = 30
SPREADS = (0.01, 0.02, 0.03, 0.04, 0.06, 0.08)
KEY = "marginal_energy_j"


def coverage(spread: float, wanted: float, trials: int, seed: int, least: int = REPEATS_MIN) -> tuple[float, float]:
    """Share of the measurements whose last interval contains the true value, and their mean number of repeats.

    Args:
        spread: relative standard deviation of a repeat.
        wanted: target for the relative expanded uncertainty.
        least: number of repeats after which a narrow interval ends a measurement at the earliest.
    """
    rng = np.random.default_rng(seed)
    held, repeats = 0, 0
    for _ in range(trials):
        figures = [exact(value_j, "J") for value_j in rng.normal(TRUE_J, spread * TRUE_J, LIMIT).tolist()]
        number, ended = REPEATS, None
        while ended is None:
            mean = over_repeats(figures[:number])
            ended = outcome({KEY: mean}, KEY, wanted, number, LIMIT, least)
            number += 1
        assert mean.u is not None
        held += mean.covers(TRUE_J)
        repeats += ended.repeats
    return held / trials, repeats / trials


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000, help="measurements for each spread")
    parser.add_argument("--wanted", type=float, default=0.03, help="target for the relative uncertainty")
    parser.add_argument(
        "--least",
        type=int,
        default=REPEATS_MIN,
        help="repeats before a narrow interval may end a measurement",
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"SIMULATED; {options.trials} measurements of each row, until u is {100 * options.wanted:g} %")
    print("| spread of repeats | held of 100 | mean number of repeats |\n|---|---|---|")
    for spread in SPREADS:
        held, repeats = coverage(spread, options.wanted, options.trials, options.seed, options.least)
        print(f"| {100 * spread:g} % | {100 * held:.1f} | {repeats:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
