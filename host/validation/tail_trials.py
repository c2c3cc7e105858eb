"""Parts of real engines' runs on media with a tail: how many are told, and how many of those hold. SIMULATED.

    host/measure.py --db sqlite --device rpi4 --simulate --storage ssd-usb3 --seconds 40 --repeats 1 --out /tmp/sqlite
    .venv/bin/python host/validation/tail_trials.py /tmp/sqlite --trials 16 --seed 1

Takes from a record when a real engine did what. Each trial draws what its parts cost, and a medium that obeys the state
machine of docs/method/attribution.md: tail power from 0 to 1 W, length from 0.05 to 5 s. With --storage-sensor the
estimate has a second trace, of a sensor in the medium's supply with idle, clock and errors of its own. With --late the
tail begins only when the medium has been left alone for half a second: a medium that the estimate without that sensor
does not assume. The estimate sees the traces and the record, never the powers.
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

HOST = Path(__file__).resolve().parents[1]
os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials run side by side
sys.path[:0] = [str(HOST), str(HOST / "validation")]

from attribution_trials import KINDS, Held  # noqa: E402  # path set above
from engine_trials import held  # noqa: E402
from known_engine import Timeline, trial  # noqa: E402
from opjoule.attribution.columns import FOREGROUND  # noqa: E402


def _one(timeline: Timeline, late: bool, supply: str | None, seed: int) -> list[Held]:
    made = trial(timeline, seed, late=late, supply=supply)
    parts, whole_j = held(made, seed), sum(made.drawn.true_j.values())
    true_j = sum(each.true_j for each in parts if each.name in made.found.operations)
    all_kinds = made.found.foreground
    identified = not all_kinds.unidentified
    u_j = 2 * all_kinds.standard_u_j
    return [*parts, Held(seed, FOREGROUND, true_j, all_kinds.energy_j, u_j, whole_j, identified)]


def line(name: str, parts: Sequence[Held]) -> str:
    """One line of the table: how many are told, hold the truth, and how wide their intervals are."""
    identified = [each for each in parts if each.identified]
    cells = [name, f"{len(identified)} of {len(parts)}", "", "", ""]
    if identified:
        width = np.median([each.u_j / (each.true_j or each.whole_j) for each in identified])
        error = np.median([abs(each.error) for each in identified])
        cells[2] = f"{100 * np.mean([each.covered for each in identified]):.1f} of 100"
        cells[3:] = [f"±{100 * width:.2g} %", f"{100 * error:.2g} %"]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Prints a table of all records, by engine and by part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    parser.add_argument("--trials", type=int, default=16, help="with each record")
    parser.add_argument("--seed", type=int, default=1, help="of the first trial")
    parser.add_argument(
        "--late", action="store_true", help="the tail begins half a second after the last write"
    )
    parser.add_argument(
        "--storage-sensor",
        choices=("board", "own"),
        help="a second sensor measures the medium, which draws from the board's supply or from one of its own",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    by_record: dict[str, list[Held]] = {}
    for record in asked.records:
        one = partial(_one, Timeline.read(record), asked.late, asked.storage_sensor)
        with ProcessPoolExecutor(asked.jobs) as pool:
            made = pool.map(one, range(asked.seed, asked.seed + asked.trials), chunksize=2)
            by_record[record.name] = [each for some in made for each in some]
    everything = [each for some in by_record.values() for each in some]
    seeds = f"{asked.seed} to {asked.seed + asked.trials - 1}"
    sensor = f", a sensor in the medium's supply ({asked.storage_sensor})" if asked.storage_sensor else ""
    late = ", tail begins late" if asked.late else ""
    print(f"SIMULATED; seeds {seeds} of each record{late}{sensor}\n")
    print("| | told | hold the truth | median width | median error |\n|---|---|---|---|---|")
    for name, parts in by_record.items():
        print(line(name, parts))
    print(line("every kind", [each for each in everything if each.name in KINDS]))
    for name in dict.fromkeys(each.name for each in everything if each.name not in KINDS):
        print(line(name, [each for each in everything if each.name == name]))
    print(line("**all**", everything))
    for each in everything:
        if each.identified and not each.covered:
            print(
                f"missed: seed {each.seed}, {each.name} {each.found_j:.3g} ± {each.u_j:.2g} J, true {each.true_j:.3g} J"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
