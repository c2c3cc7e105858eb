"""Counts how many parts of real engines' runs on media with a tail are identified, and how often correctly. SIMULATED.

    host/measure.py --db sqlite --device rpi4 --simulate --storage ssd-usb3 --seconds 40 --repeats 1 --out /tmp/sqlite
    .venv/bin/python host/validation/tail_trials.py /tmp/sqlite --trials 16 --seed 1

The times of a real engine's operations and activities come from a record. Each trial draws the power of every part, and
a medium that follows the state machine of docs/method/attribution.md: tail power from 0 to 1 W, length from 0.05 to
5 s. With --storage-sensor the estimate has a second trace, from a sensor in the medium's supply with its own idle,
clock and errors. With --late the tail begins only half a second after the last write; the estimate without that sensor
does not assume such a medium. With --reads the run also reads pages from the medium, each followed by a tail. With
--wake every operation that waited costs the same additional work. The estimate sees the traces and the record, never
the powers.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials run side by side

from attribution_trials import KINDS, Held
from engine_trials import held
from known_engine import Timeline, trial
from opjoule.attribution.columns import FOREGROUND


def _one(timeline: Timeline, options: argparse.Namespace, seed: int) -> list[Held]:
    made = trial(
        timeline,
        seed,
        late=options.late,
        supply=options.storage_sensor,
        reads_per_s=options.reads,
        woken_s=None if options.wake is None else options.wake * 1e-6,
    )
    parts, whole_j = held(made, seed), sum(made.drawn.true_j.values())
    true_j = sum(figure.true_j for figure in parts if figure.name in made.attribution.operations)
    all_kinds = made.attribution.foreground
    identified = not all_kinds.reason
    u_j = 2 * all_kinds.standard_u
    return [*parts, Held(seed, FOREGROUND, true_j, float(all_kinds), u_j, whole_j, identified)]


def line(name: str, parts: Sequence[Held]) -> str:
    """Row of the table: parts identified, intervals held, median width and error, and mean error with its own error."""
    identified = [figure for figure in parts if figure.identified]
    cells = [name, f"{len(identified)} of {len(parts)}", "", "", "", ""]
    if identified:
        width = np.median([figure.u_j / (figure.true_j or figure.whole_j) for figure in identified])
        errors = np.array([figure.error for figure in identified])
        mean_u = errors.std(ddof=1) / np.sqrt(errors.size) if errors.size > 1 else np.nan
        cells[2] = f"{100 * np.mean([figure.covered for figure in identified]):.1f} of 100"
        cells[3:] = [f"±{100 * width:.2g} %", f"{100 * np.median(np.abs(errors)):.2g} %"]
        cells.append(f"{100 * errors.mean():+.2g} ± {100 * mean_u:.2g} %")
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Prints a table of all records, by record and by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    parser.add_argument("--trials", type=int, default=16, help="trials of each record")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first trial")
    parser.add_argument("--late", action="store_true", help="the tail begins half a second after the last write")
    parser.add_argument(
        "--storage-sensor",
        choices=("board", "own"),
        help="a second sensor measures the medium, which is supplied by the board or has its own supply",
    )
    parser.add_argument(
        "--reads",
        type=float,
        default=0.0,
        metavar="RATE",
        help="pages read from the medium a second, at random",
    )
    parser.add_argument(
        "--wake",
        type=float,
        metavar="US",
        help="work of an operation that waited, beyond the usual [us]; otherwise drawn from 0 to 100",
    )
    parser.add_argument("--kinds", action="store_true", help="a table of the kinds of operation alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    by_record: dict[str, list[Held]] = {}
    for record in options.records:
        one = partial(_one, Timeline.read(record), options)
        with ProcessPoolExecutor(options.jobs) as pool:
            made = pool.map(one, range(options.seed, options.seed + options.trials), chunksize=2)
            by_record[str(record)] = [figure for some in made for figure in some]
    if options.kinds:
        by_record = {name: [figure for figure in parts if figure.name in KINDS] for name, parts in by_record.items()}
    everything = [figure for some in by_record.values() for figure in some]
    seeds = f"{options.seed} to {options.seed + options.trials - 1}"
    sensor = f", a sensor in the medium's supply ({options.storage_sensor})" if options.storage_sensor else ""
    late = ", tail begins late" if options.late else ""
    reads = f", {options.reads:g} pages read a second" if options.reads else ""
    wake = "" if options.wake is None else f", a wait costs {options.wake:g} us"
    print(f"SIMULATED; seeds {seeds} of each record{late}{reads}{wake}{sensor}\n")
    print(
        "| | identified | held | median width | median error | bias ± its standard error |\n|---|---|---|---|---|---|"
    )
    names = [record.name for record in options.records]
    for record, parts in by_record.items():
        name = Path(record).name
        print(line(name if names.count(name) == 1 else record, parts))
    print(line("every kind", [figure for figure in everything if figure.name in KINDS]))
    for name in dict.fromkeys(figure.name for figure in everything if options.kinds or figure.name not in KINDS):
        print(line(name, [figure for figure in everything if figure.name == name]))
    print(line("**all**", everything))
    for figure in everything:
        if figure.identified and not figure.covered:
            print(
                f"missed: seed {figure.seed}, {figure.name} {figure.found_j:.3g} ± {figure.u_j:.2g} J, "
                f"true {figure.true_j:.3g} J"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
