"""One trial of a fault: what it leaves of a record, and of the computer."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from opjoule.errors import OpJouleError
from opjoule.record.run_record import RunRecord
from opjoule.trace.journal import read_trace

HOST = Path(__file__).resolve().parents[2]
PYTHON = HOST.parent / ".venv/bin/python"
COMMAND = (str(PYTHON), "-m", "opjoule.cli.start")
LIMIT_S = 240.0
CURRENT_A = 0.5
NEAR_A = 0.02
"""Largest distance of a sample from the true current; a damaged one that passed as sound would be anywhere."""


@dataclass
class Trial:
    """One fault at one moment."""

    exit_status: int
    status: str
    lost: int = 0
    """Samples that the record says were lost."""
    wrong: list[str] = field(default_factory=list)
    """What was not survived."""
    struck: bool = True
    """False: what the fault strikes had ended before it."""


def env(temporary: Path | None = None, **more: str) -> dict[str, str]:
    """The environment of the commands that are tried.

    Args:
        temporary: their folder for temporary files.
    """
    temporary_folder = {"TMPDIR": str(temporary)} if temporary else {}
    return {**os.environ, "PYTHONPATH": str(HOST), **temporary_folder, **more}


def judged(record: Path, exit_status: int, said: str, *, exact: bool = False) -> Trial:
    """What a fault has left of a record.

    Args:
        exact: every sample has to lie at CURRENT_A.
    """
    trial = Trial(exit_status, "no record")
    if "Traceback" in said:
        trial.wrong.append("a traceback: " + said.strip().splitlines()[-1])
    if not (record / "run.json").exists():
        if exit_status == 0:
            trial.wrong.append("no record, and exit status 0")
        return trial
    try:
        run = RunRecord.open(record)
        trial.status = run.status
        if run.status != "complete" and not run.run.faults and exit_status == 0:
            trial.wrong.append(f"status {run.status} without a reason")
        if run.status == "complete" and (altered := run.verify()):
            trial.wrong.append(f"complete, but {altered[0]}")
        trace = read_trace(record)
    except OpJouleError as fault:
        if "no power trace" not in str(fault) and "no window" not in str(fault):
            trial.wrong.append(str(fault))
        return trial
    good = trace.current_a[trace.good]
    off = int(((good - CURRENT_A) > NEAR_A).sum() + ((good - CURRENT_A) < -NEAR_A).sum()) if exact else 0
    if exact and off > 2:  # the supply of the simulated rig switches on and off at the ends
        trial.wrong.append(f"{off} samples that the meter did not take")
    trial.lost = sum(gap.lost_samples for gap in trace.gaps)
    return trial


def of_ours(folder: Path, name: str = "", word: str = "") -> list[int]:
    """The processes of a trial, on the host and on the board behind sshd: its folder is in their environment.

    Args:
        folder: the trial's.
        name: how the name of their program begins.
        word: it has to be among their arguments.
    """
    pids = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{folder}/".encode() not in (place / "environ").read_bytes():
                continue
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            program = "measure.py" if "opjoule.cli.start" in words else Path(words[0]).name
            if program.startswith(name) and (word in words or not word):
                pids.append(int(place.name))
    return sorted(pids)


def note_what_is_left(trial: Trial, temporary: Path, mounts: str) -> None:
    """Adds processes, files in the folder for temporary files, and mounts that are still there; ends the processes.

    Args:
        temporary: the trial's, in its folder.
        mounts: /proc/self/mounts as it was before.
    """
    folder, until_s = temporary.parent, time.monotonic() + 30
    while of_ours(folder) and time.monotonic() < until_s:
        time.sleep(0.1)
    if left := of_ours(folder):
        trial.wrong.append(f"processes left: {left}")
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    files = [path.name for path in temporary.iterdir() if path.name != "opjoule-measuring.lock"]
    if files:
        trial.wrong.append(f"files left: {', '.join(sorted(files)[:3])}")
    new = set(Path("/proc/self/mounts").read_text().splitlines()) - set(mounts.splitlines())
    if ours := [line for line in new if folder.name in line]:
        trial.wrong.append(f"mount left: {ours[0]}")
