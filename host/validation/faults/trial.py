"""One trial of a fault, and the checks of the record and the computer after it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from opjoule.base.errors import OpJouleError
from opjoule.energy.trace.journal import read_trace
from opjoule.runs.record.run_record import RunRecord

HOST = Path(__file__).resolve().parents[2]
PYTHON = HOST.parent / ".venv/bin/python"
COMMAND = (str(PYTHON), "-m", "opjoule.cli.start")
LIMIT_S = 240.0
CURRENT_A = 0.5
NEAR_A = 0.02
"""Largest distance of a sample from the true current; a damaged sample that passed as sound could be anywhere."""


@dataclass
class Trial:
    """Outcome of one fault at one moment."""

    exit_status: int
    status: str
    lost: int = 0
    """Samples that the record counts as lost."""
    wrong: list[str] = field(default_factory=list)
    """Checks that failed; empty if the fault was survived."""
    struck: bool = True
    """False if the target had ended before the fault."""


def env(temporary: Path | None = None, **more: str) -> dict[str, str]:
    """Environment variables of the tested commands.

    Args:
        temporary: folder for their temporary files.
    """
    temporary_folder = {"TMPDIR": str(temporary)} if temporary else {}
    return {**os.environ, "PYTHONPATH": str(HOST), **temporary_folder, **more}


def judged(record: Path, exit_status: int, said: str, *, exact: bool = False) -> Trial:
    """Checks the record that a fault has left.

    Args:
        said: output of the command.
        exact: every sample must be within NEAR_A of CURRENT_A.
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
        if run.status != "complete" and not run.faults and exit_status == 0:
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
    if exact and off > 2:  # the simulated rig's supply switches on at the start and off at the end
        trial.wrong.append(f"{off} samples that the meter did not take")
    trial.lost = sum(gap.lost_samples for gap in trace.gaps)
    return trial


def of_ours(folder: Path, name: str = "", word: str = "") -> list[int]:
    """Processes of a trial, on the host and on the board behind sshd; their environment contains the trial's folder.

    Args:
        folder: folder of the trial.
        name: beginning of the name of their program.
        word: argument that they must have.
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
    """Notes processes, temporary files and mounts that are still there in the trial; ends the processes.

    Args:
        temporary: folder for temporary files, within the trial's folder.
        mounts: /proc/self/mounts before the trial.
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
