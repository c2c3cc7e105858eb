"""Faults of `measure.py --simulate`: one of its processes is killed or suspended at a random moment."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

from opjoule.runs.record.run_record import RunRecord

from faults.trial import COMMAND, LIMIT_S, Trial, env, judged, note_what_is_left, of_ours

SHORT = (
    *("--db", "leveldb", "--device", "rpi4", "--records", "500", "--operations", "6000", "-p", "target=2000"),
    *(
        "--no-harness",
        "--reset",
        "load",
        "--repeats",
        "1",
        "--idle",
        "1",
        "--settle-limit",
        "10",
        "--simulate",
    ),
)
"""Options for a measurement with a run of 3 s."""
STANDS_S = 20
LENGTH_S = 25.0
"""Approximate lifetime of its processes."""
LOADER_LIVES_S = {"load": 0.3, "run": 3.0}
KILLED = ("measure.py", "rig-sim", "probe", "loader", "medium-sim")
FAULTS = {f"{what}: {name}": (sent, name) for what, sent in (("killed", 9), ("stopped 20 s", 19)) for name in KILLED}


def measurement_trial(name: str, chance: random.Random, folder: Path) -> Trial:
    """Measures, and kills or suspends one of the processes at a random moment."""
    number, program = FAULTS[name]
    (folder / "tmp").mkdir()
    mounts = Path("/proc/self/mounts").read_text()
    command = [*COMMAND, *SHORT, "--out", str(folder / "run")]
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(command, stdout=said, stderr=said, env=env(folder / "tmp")) as running,
    ):
        _sleep(running, folder, program, chance)
        struck = of_ours(folder, program)[:1]
        _strike(struck, number)
        try:
            status = running.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            return Trial(-1, "hangs", wrong=["it did not end"])
    trial = judged(folder / "run", status, (folder / "said").read_text(errors="replace"))
    trial.struck = bool(struck)
    if not struck:
        trial.status = f"{trial.status} before the fault"
    if program == "measure.py" and number == signal.SIGKILL:
        _check_next(trial, folder)
    note_what_is_left(trial, folder / "tmp", mounts)
    return trial


def _sleep(running: subprocess.Popen[bytes], folder: Path, program: str, chance: random.Random) -> None:
    """Sleeps until a random moment of the program's life; for a loader, of one that loads or one that runs."""
    until_s, word, lives_s = time.monotonic() + LIMIT_S, "", LENGTH_S
    if program == "loader":
        word = chance.choice(("load", "run", "run", "run"))
        lives_s = LOADER_LIVES_S[word]
    after_s = chance.uniform(0.0, lives_s)
    while not of_ours(folder, program, word) and running.poll() is None and time.monotonic() < until_s:
        time.sleep(0.1)
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.wait(after_s)


def _strike(struck: list[int], number: int) -> None:
    for pid in struck:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            if number == signal.SIGSTOP:
                time.sleep(STANDS_S)
                os.kill(pid, signal.SIGCONT)


def _check_next(trial: Trial, folder: Path) -> None:
    """Checks that the next measurement works; it also has to remove what a killed one left."""
    command = [*COMMAND, *SHORT, "--out", str(folder / "next")]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env(folder / "tmp")
    )
    after = judged(folder / "next", ended.returncode, ended.stderr)
    if after.status != "complete" or after.wrong:
        faults = RunRecord.open(folder / "next").faults if (folder / "next").exists() else []
        trial.wrong.append(f"next measurement failed: {after.status} {after.wrong} {faults} {ended.returncode}")
