"""Injects faults at random moments of a recording or a measurement, each of them several times. SIMULATED.

    .venv/bin/python host/validation/fault_matrix.py --times 20 --results build/faults.jsonl
    .venv/bin/python host/validation/fault_matrix.py "line: bits flipped" "killed: loader" --times 3 --seed 7

There are four groups of faults:
- faults of the serial line, between the simulated meter and `measure.py record`;
- faults of the recording's process, of its meter, and of the host's disk and clock, during `measure.py record`;
- faults of processes during `measure.py --simulate`;
- faults of the board during a measurement over a real sshd on loopback.

A fault is survived if the record opens, states how it ended and why, and has no sample that the meter did not take; if
the next run works; and if no process, temporary file or mount is left. A fault that hit nothing does not count and is
tried again at another moment. With --results, a trial that is in the file is not run again. Exit code 1 if a fault was
not survived.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

HOST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOST), str(HOST / "tests/support"), str(HOST / "tests/boards"), str(HOST / "validation")]

from faults.board import FAULTS as BOARD  # noqa: E402  # path set above
from faults.board import board_trial  # noqa: E402
from faults.line import LINE, line_trial  # noqa: E402
from faults.measurement import FAULTS as MEASUREMENT  # noqa: E402
from faults.measurement import measurement_trial  # noqa: E402
from faults.recording import FAULTS as RECORDING  # noqa: E402
from faults.recording import recording_trial  # noqa: E402
from faults.trial import Trial  # noqa: E402

MOMENTS = 3
OneTrial = Callable[[str, random.Random, Path], Trial]
EVERY: dict[str, OneTrial] = {
    **dict.fromkeys(LINE, line_trial),
    **dict.fromkeys(RECORDING, recording_trial),
    **dict.fromkeys(MEASUREMENT, measurement_trial),
    **dict.fromkeys(BOARD, board_trial),
}


def tried(
    names: list[str], times: int, seed: int, results: Path | None, until_s: float, at_once: int
) -> dict[str, list[Trial]]:
    """Runs `times` trials of each fault. All first trials come before any second one. Stops when the time is up.

    Args:
        results: file of finished trials, which are not run again.
        until_s: monotonic time [s] after which no trial starts.
        at_once: trials that run side by side, each in its own process.
    Returns: fault -> its trials that hit something.
    """
    known = {name: _known(results, name, seed) for name in names}
    waiting = [(name, seed, number, until_s) for number in range(times) for name in names if number not in known[name]]
    with multiprocessing.get_context("fork").Pool(at_once, maxtasksperchild=1) as workers:
        for name, number, trial in workers.imap_unordered(_one_trial, waiting):
            if trial is None:
                continue
            known[name][number] = trial
            if results:
                with results.open("a") as file:
                    entry = {"fault": name, "seed": seed, "number": number, **asdict(trial)}
                    file.write(json.dumps(entry) + "\n")
    return {name: list(trials.values()) for name, trials in known.items()}


def _one_trial(job: tuple[str, int, int, float]) -> tuple[str, int, Trial | None]:
    """Runs one trial, again at another moment if the fault hit nothing. None if it never hit, or time is up."""
    name, seed, number, until_s = job
    chance, trial = random.Random(f"{name} {seed} {number}"), None
    for _ in range(MOMENTS):
        if time.monotonic() > until_s:
            break
        try:
            with tempfile.TemporaryDirectory(prefix="fault-matrix-") as folder:
                trial = EVERY[name](name, chance, Path(folder))
        except Exception as fault:  # a trial that fails must not end the others
            first: BaseException = fault
            while first.__context__:
                first = first.__context__
            trial = Trial(-1, "driver failed", wrong=[f"{type(first).__name__}: {first}"])
        if trial.struck:
            break
    if trial and not trial.struck:
        print(f"{name}, trial {number}: hit nothing; the last run ended as '{trial.status}'", file=sys.stderr)
    return name, number, trial if trial and trial.struck else None


def _known(results: Path | None, name: str, seed: int) -> dict[int, Trial]:
    lines = map(json.loads, results.read_text().splitlines()) if results and results.exists() else ()
    return {
        line["number"]: Trial(line["exit_status"], line["status"], line["lost"], line["wrong"])
        for line in lines
        if (line["fault"], line["seed"]) == (name, seed)
    }


def row(name: str, trials: list[Trial]) -> str:
    """Row of the table for one fault."""
    statuses = {one: sum(trial.status == one for trial in trials) for one in sorted({t.status for t in trials})}
    outcomes = ", ".join(f"{count} {status}" for status, count in statuses.items())
    survived = sum(not trial.wrong for trial in trials)
    return f"| {name} | {len(trials)} | {survived} | {outcomes} | {sum(trial.lost for trial in trials)} |"


def main() -> int:
    """Prints the table; exit status 1 if a fault was not survived."""
    parser = argparse.ArgumentParser(description="Injects faults at random moments, SIMULATED.")
    parser.add_argument("fault", nargs="*", help=f"only these faults, of: {'; '.join(EVERY)}")
    parser.add_argument("--times", type=int, default=20, help="trials of each fault (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, help="file that keeps every trial; continues where it ends")
    parser.add_argument("--limit", type=float, default=float("inf"), help="start no trial after this many seconds")
    parser.add_argument("--at-once", type=int, default=1, help="trials side by side (default: 1)")
    options = parser.parse_args()
    if unknown := set(options.fault) - set(EVERY):
        parser.error(f"unknown fault: {', '.join(sorted(unknown))}; --help lists the faults")
    until_s = time.monotonic() + options.limit
    print("SIMULATED\n| fault | tried | survived | statuses | samples lost and counted |\n|---|---|---|---|---|")
    broken = 0
    names = options.fault or list(EVERY)
    every = tried(names, options.times, options.seed, options.results, until_s, options.at_once)
    for name, trials in every.items():
        print(row(name, trials), flush=True)
        for trial in [trial for trial in trials if trial.wrong]:
            broken += 1
            print(f"  not survived: {'; '.join(trial.wrong)} (exit {trial.exit_status})", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
