"""Compares compaction's share of a real engine's write run with its true share. SIMULATED.

    host/measure.py --db leveldb --device rpi4 --simulate ... --out /tmp/leveldb
    .venv/bin/python host/validation/engine_trials.py /tmp/leveldb --trials 100

The times of a real engine's operations and activities come from a record. Each trial draws the power of every part
(known_engine.py), a meter and a board, and attributes the energy as in a measurement. Prints compaction's share of the
energy above idle, and the error and coverage of every part. Exit status 1 if that share is off by more than 5 points in
a trial that identifies it, or is identified in fewer than nine of ten trials.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials run side by side

from attribution_trials import Held
from known_engine import Timeline, Trial, trial

POINTS_MAX: Final = 5.0
TOLD_MIN: Final = 0.9


@dataclass(frozen=True)
class Share:
    """One part's share of the energy above idle, in per cent."""

    true: float
    stated: float
    identified: bool

    @property
    def off(self) -> float:
        """Distance between the stated and the true share, in percentage points."""
        return abs(self.stated - self.true)


def share_of(made: Trial, name: str) -> Share:
    """Share of an activity in the energy above idle."""
    whole_j = sum(made.drawn.true_j.values())
    share = made.attribution.activities[name]
    return Share(
        100 * made.drawn.true_j[name] / whole_j,
        100 * float(share) / float(made.attribution.whole),
        not share.reason,
    )


def held(made: Trial, seed: int) -> list[Held]:
    """Every part with its true energy."""
    whole_j = sum(made.drawn.true_j.values())
    return [
        Held(seed, name, true_j, float(of), 2 * of.standard_u, whole_j, not of.reason)
        for name, of in {**made.attribution.operations, **made.attribution.activities}.items()
        if (true_j := made.drawn.true_j.get(name, 0.0)) or of.value
    ]


def _one(timeline: Timeline, seed: int) -> tuple[Share, list[Held]]:
    made = trial(timeline, seed)
    return share_of(made, "compaction"), held(made, seed)


def _report(directory: Path, trials: int, seed: int, jobs: int) -> bool:
    timeline = Timeline.read(directory)
    counts = {name: of.start_ns.size for name, of in timeline.activities.items()}
    busy_s = {name: float((of.end_ns - of.start_ns).sum()) * 1e-9 for name, of in timeline.activities.items()}
    events = ", ".join(f"{count} {name} ({busy_s[name]:.3g} s)" for name, count in counts.items())
    print(
        f"\n{timeline.database}, {len(timeline.operations)} operations in {timeline.run_s:.3g} s: {events}; SIMULATED"
    )
    with ProcessPoolExecutor(jobs) as pool:
        made = list(pool.map(partial(_one, timeline), range(seed, seed + trials), chunksize=2))
    identified = [share for share, _ in made if share.identified]
    true, off = (
        np.array([figure.true for figure in identified]),
        np.array([figure.off for figure in identified]),
    )
    if identified:
        print(
            f"compaction: identified in {len(identified)} of {trials}; {true.min():.0f} to {true.max():.0f} % of the "
            f"energy above idle; off by {np.median(off):.2f} points (median), {np.quantile(off, 0.95):.2f} (95th "
            f"percentile), {off.max():.2f} (greatest)"
        )
    print("| part | identified | held | median width | median error |\n|---|---|---|---|---|")
    parts = [figure for _, some in made for figure in some]
    for name in dict.fromkeys(figure.name for figure in parts):
        of_name = [figure for figure in parts if figure.name == name]
        known = [figure for figure in of_name if figure.identified]
        cells = [name, f"{len(known)} of {len(of_name)}", "", "", ""]
        if known:
            width = np.median([figure.u_j / (figure.true_j or figure.whole_j) for figure in known])
            error = np.median([abs(figure.error) for figure in known])
            covered = np.mean([figure.covered for figure in known])
            cells[2:] = [f"{100 * covered:.0f} of 100", f"±{100 * width:.2g} %", f"{100 * error:.2g} %"]
        print("| " + " | ".join(cells) + " |")
    return len(identified) >= TOLD_MIN * trials and bool(off.max() <= POINTS_MAX)


def main() -> int:
    """Prints a table for each record; exit status 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    parser.add_argument("--trials", type=int, default=100, help="trials of each record")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first trial")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    good = [_report(record, options.trials, options.seed, options.jobs) for record in options.records]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
