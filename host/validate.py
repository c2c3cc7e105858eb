#!/usr/bin/env python3
"""Experiments with known joules: how often stated intervals contain the true value, and errors of figures. SIMULATED.

    host/validate.py                      # all scenarios, 500 experiments of the first, 100 of each other
    host/validate.py --only "writes on one background thread" --trials 200
    host/validate.py --plot docs/images/attribution.svg

Each experiment draws a load, an engine, a medium, a board's idle, a meter with its errors and two clocks from its own
seed. The energy of each kind of operation and each activity is known exactly; the estimate never sees it. Families of
loads: steady, steps, bursts of 100 us to 1 s, a changing frequency, operations in step with the meter's samples, and a
client that paces them. All loads have bursts of other programs of 20 us to 1 s, humps of compaction, lagging write-back
and tails of the medium.

Scenarios:
    everything at random
    50/50, an update costs 3 reads
    95/5, an update costs 3 reads
    kinds that cannot be told apart
    the same in mix blocks
    writes on one background thread
    writes on two background threads
    a client that paces its operations

Nothing here is a measurement of a board. docs/method/validation.md reports the results.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

HOST = Path(__file__).resolve().parent
os.environ.setdefault("OMP_NUM_THREADS", "1")  # experiments run side by side
sys.path[:0] = [str(HOST), str(HOST / "validation")]

import this_computer  # noqa: E402  # the path is set above

this_computer.end_if_unable(Path(__file__).name)

from bootstrap import VENV_PYTHON, Needs, set_up_or_end  # noqa: E402
from environment import is_filled  # noqa: E402

NAME = Path(__file__).name
if not VENV_PYTHON.exists() or not Path(sys.prefix).samefile(VENV_PYTHON.parents[1]):
    if not is_filled():
        if {"-h", "--help"} & {*sys.argv}:
            print((__doc__ or "").strip())
            sys.exit(0)
        set_up_or_end(Needs(), NAME)
    os.execv(VENV_PYTHON, [str(VENV_PYTHON), str(Path(__file__).resolve()), *sys.argv[1:]])

from attribution_trials import SCENARIOS, lines, trial  # noqa: E402  # in .venv from here on
from coverage_plot import draw  # noqa: E402
from opjoule.base.errors import BadInput  # noqa: E402
from opjoule.cli.failures import reporting_failures  # noqa: E402
from opjoule.cli.options import (  # noqa: E402
    Option,
    Options,
    Parser,
    Positive,
)

FIRST_TRIALS, OTHER_TRIALS = 500, 100


class ValidateOptions(Options):
    """Selection and number of the experiments."""

    trials: Annotated[Positive | None, Option("N", "experiments of each scenario")] = None
    seed: Annotated[int, Option("SEED", "seed of the first experiment (default: 1)")] = 1
    only: Annotated[tuple[str, ...], Option("SCENARIO", "one scenario of those listed below; may be given again")] = ()
    jobs: Annotated[Positive, Option("N", "processes (default: all processors)")] = os.cpu_count() or 1
    plot: Annotated[Path | None, Option("FILE", "SVG file for a plot of errors over their intervals")] = None


def _parser() -> Parser:
    about, _, rest = (__doc__ or "").partition("\n\n")
    return Parser("validate", ValidateOptions, description=about, epilog=rest)


def main() -> int:
    """Runs the experiments and prints a table for each scenario. Raises: BadInput: an impossible option."""
    options = ValidateOptions.parsed(_parser(), sys.argv[1:])
    for scenario in options.only:
        if scenario not in SCENARIOS:
            raise BadInput(f"unknown scenario '{scenario}'; known are: {'; '.join(SCENARIOS)}")
    if options.plot and not options.plot.absolute().parent.is_dir():
        raise BadInput(f"--plot {options.plot}: there is no folder {options.plot.absolute().parent}: create it first")
    views: dict[str, list[list[float]]] = {}
    rows: list[str] = []
    for number, scenario in enumerate(SCENARIOS):
        if options.only and scenario not in options.only:
            continue
        count = options.trials or (OTHER_TRIALS if number else FIRST_TRIALS)
        with ProcessPoolExecutor(options.jobs) as pool:
            made = list(pool.map(partial(trial, scenario), range(options.seed, options.seed + count), chunksize=4))
        held = [figure for some in made for figure in some]
        print(f"\n{scenario}: {count} experiments, SIMULATED\n")
        _print_table(lines(held))
        if not views:
            rows = list(dict.fromkeys(figure.name for figure in held))
            views[scenario] = [_over_u(held, name) for name in rows]
    if options.plot:
        options.plot.write_text(draw(views, rows))
    return 0


def _over_u(held: list, name: str) -> list[float]:
    """Errors of one figure divided by their expanded uncertainties."""
    of_name = [figure for figure in held if figure.name == name and figure.identified and figure.u_j > 0]
    return [(figure.found_j - figure.true_j) / figure.u_j for figure in of_name]


HEADINGS = (
    "figure", "identified", "held", "median width", "median error", "95 % of errors", "bias",
    "of the whole, 95 %", "within 5 %",
)  # fmt: skip


def _print_table(table: list) -> None:
    print("| " + " | ".join(HEADINGS) + " |")
    print("|---" * len(HEADINGS) + "|")
    for line in table:
        cells = [line.name, f"{line.identified} of {line.experiments}"]
        if line.identified:
            shares = (line.error, line.error_95)
            cells += [f"{100 * line.coverage:.1f} %", f"±{100 * line.width:.2g} %"]
            cells += [f"{100 * share:.2g} %" for share in shares]
            cells += [
                f"{100 * line.bias:+.2g} %",
                f"{100 * line.share_95:.2g} %",
                f"{100 * line.within_5:.0f} %",
            ]
        print("| " + " | ".join(cells + [""] * (len(HEADINGS) - len(cells))) + " |")


if __name__ == "__main__":
    sys.exit(reporting_failures(NAME, main))
