"""Faults at random moments of a recording and of a measurement, each tried several times. SIMULATED.

    .venv/bin/python host/validation/fault_matrix.py --times 20 --results build/faults.jsonl
    .venv/bin/python host/validation/fault_matrix.py "line: bits flipped" "killed: loader" --times 3 --seed 7

Faults of the serial line stand between the simulated meter and `measure.py record`; those of its process, its meter
and the host's disk and clock strike the recording itself; those of processes strike `measure.py --simulate`; those of
the board a measurement over a real sshd on loopback. A fault is survived if the record opens, says how it ended and
why, has no sample that the meter did not take, the next run works, and no process, temporary file or mount is left. A
fault that found nothing to strike is tried at another moment and does not count. With --results a trial that is in
the file is not tried again. Exit code 1 if one was not survived.
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
sys.path[:0] = [str(HOST), str(HOST / "tests/support"), str(HOST / "tests/devices"), str(HOST / "validation")]

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
    """So many trials of each fault, the first of each before the second of any; fewer where time ends.

    Args:
        at_once: trials that run side by side, each in a process of its own.
    """
    known = {name: _known(results, name, seed) for name in names}
    waiting = [
        (name, seed, number, until_s)
        for number in range(times)
        for name in names
        if number not in known[name]
    ]
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
    """One trial; what the fault did not strike is tried at another moment. None if it never struck, or time is up."""
    name, seed, number, until_s = job
    chance, trial = random.Random(f"{name} {seed} {number}"), None
    for _ in range(MOMENTS):
        if time.monotonic() > until_s:
            break
        try:
            with tempfile.TemporaryDirectory(prefix="fault-matrix-") as folder:
                trial = EVERY[name](name, chance, Path(folder))
        except Exception as fault:  # one trial that breaks does not end the others
            first: BaseException = fault
            while first.__context__:
                first = first.__context__
            trial = Trial(-1, "driver failed", wrong=[f"{type(first).__name__}: {first}"])
        if trial.struck:
            break
    return name, number, trial if trial and trial.struck else None


def _known(results: Path | None, name: str, seed: int) -> dict[int, Trial]:
    lines = map(json.loads, results.read_text().splitlines()) if results and results.exists() else ()
    return {
        line["number"]: Trial(line["exit_status"], line["status"], line["lost"], line["wrong"])
        for line in lines
        if (line["fault"], line["seed"]) == (name, seed)
    }


def row(name: str, trials: list[Trial]) -> str:
    """One line of the table."""
    statuses = {
        one: sum(trial.status == one for trial in trials) for one in sorted({t.status for t in trials})
    }
    outcomes = ", ".join(f"{count} {status}" for status, count in statuses.items())
    survived = sum(not trial.wrong for trial in trials)
    return f"| {name} | {len(trials)} | {survived} | {outcomes} | {sum(trial.lost for trial in trials)} |"


def main() -> int:
    """Exit status 1 if a fault was not survived."""
    parser = argparse.ArgumentParser(description="Faults at random moments, SIMULATED.")
    parser.add_argument("fault", nargs="*", help=f"these alone: {', '.join(EVERY)}")
    parser.add_argument("--times", type=int, default=20, help="each (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, help="keep every trial in this file, and go on where it ends")
    parser.add_argument(
        "--limit", type=float, default=float("inf"), help="begin no trial after so many seconds"
    )
    parser.add_argument("--at-once", type=int, default=1, help="trials side by side (default: 1)")
    options = parser.parse_args()
    if unknown := set(options.fault) - set(EVERY):
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    until_s = time.monotonic() + options.limit
    print(
        "SIMULATED\n| fault | tried | survived | statuses | samples lost and counted |\n|---|---|---|---|---|"
    )
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
