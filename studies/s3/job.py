"""Runs the study's phases on one system. Each is run and marked several times in a row; the first run is dropped.

    python3 job.py SYSTEM --storage FOLDER [--rows N,N] [--runs 6] [--dropped 1] [--dataset FILE] [--results FILE]

SYSTEM is berkeleydb, duckdb, postgresql or sqlite. Exit status 0: success; 1: an answer is wrong; 2: it cannot be
measured here; 3: a phase failed.
"""

import argparse
import json
import os
import signal
import sys

from berkeley_db import BerkeleyDb
from opjoule_study import Results, Unmeasurable, check_room, ended, parser
from phases import Parameters
from readings import DrawnReadings, SensorFile
from sql_systems import Duckdb, Postgresql, Sqlite, client
from study_run import PhaseRuns, all_calls, tell, verify

SYSTEMS = {"berkeleydb": BerkeleyDb, "duckdb": Duckdb, "postgresql": Postgresql, "sqlite": Sqlite}
GETTING = {
    "berkeleydb": "install Debian 12's package python3-bsddb3, which works only with /usr/bin/python3, and put "
    "/usr/bin first on PATH, or see docs/reference/study-s3.md",
    "duckdb": "pip install duckdb",
}
SPACE = {
    "berkeleydb": (1_000_000, 400),
    "duckdb": (5_000_000, 600),
    "postgresql": (80_000_000, 2_500),
    "sqlite": (1_000_000, 400),
}
"""System -> (bytes before the first row, bytes for each row including its log and the file of a bulk load)."""


def main():
    """Measures one system. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _arguments()
    try:
        needed = _needed(options)
        if options.check:
            calls = sum(all_calls(rows, options.runs) for rows in options.rows)
            print(json.dumps({"bytes": needed, "operations": calls}))
            return 0
        dataset = SensorFile(options.dataset) if options.dataset else DrawnReadings()
        folder = os.path.join(options.folder, "s3")
        system = SYSTEMS[options.system](options.server if options.system == "postgresql" else folder)
    except (Unmeasurable, ValueError, OSError) as error:
        print(f"job.py: {error}", file=sys.stderr)
        return 2
    now = ["starting"]
    return ended(lambda: _measure(system, dataset, options, now), options.system, lambda: now[0])


def _arguments():
    made = parser(__doc__, sorted(SYSTEMS))
    add = made.add_argument
    add("--rows", type=_counts, default=[1000], metavar="N,N", help="rows of each sample (default: 1000)")
    add("--runs", type=int, default=6, metavar="N", help="runs of each phase in a row (default: 6)")
    add("--dropped", type=int, default=1, metavar="N", help="first runs that do not count (default: 1)")
    add("--dataset", default="", metavar="FILE", help="the Intel Lab's file (default: drawn readings)")
    add("--server", default="", metavar="ADDRESS", help="PostgreSQL's address: postgresql://...")
    options = made.parse_args()
    if not 0 <= options.dropped < options.runs:
        made.error(f"--dropped {options.dropped} leaves no run of --runs {options.runs}")
    return options


def _counts(text):
    """Numbers of rows, separated by commas."""
    counts = [int(count) for count in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("must be at least 1 row")
    return counts


def _needed(options):
    """Maximum size of the largest sample [B], after a check of client, programs and space.

    Raises: Unmeasurable: something is missing.
    """
    try:
        if options.system == "postgresql":
            client()
        else:
            SYSTEMS[options.system](options.folder)
    except ImportError as error:
        raise Unmeasurable(
            f"{options.system}'s client is missing for {sys.executable} ({error}): {GETTING[options.system]}"
        ) from None
    before, for_row = SPACE[options.system]
    needed = before + max(options.rows) * for_row
    advice = "take fewer rows or another medium"
    check_room(options.folder, needed, options.system, max(options.rows), advice)
    return needed


def _measure(system, dataset, options, now):
    """Measures all samples, one after the other; now[0] always names the current phase."""
    results = Results(options.results) if options.results else None
    if results:
        results.made_by(f"{options.system} {system.version}")
    done = 0
    for rows in options.rows:
        sample = dataset.sample(rows, options.seed)
        asked = Parameters(sample, options.seed, options.runs, options.dropped)
        print(f"{options.system} {system.version}, {asked.rows} rows: {dataset.about()}", flush=True)
        now[0] = f"the answers by two computations, of {asked.rows} rows"
        verify(sample, options.seed)
        study = PhaseRuns(system, asked, options.folder, before=done, now=now)
        study.all()
        done += all_calls(asked.rows, options.runs)
        tell(system, asked, study, results)


if __name__ == "__main__":
    sys.exit(main())
