"""Starts measure.py as a separate process on the simulated rig, waits for its phases, and makes its report."""

import os
import subprocess
import sys
import time
from pathlib import Path

from opjoule.runs.record.run_record import RunRecord

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 600
"""Guards against waiting without end."""
SMALL = [
    *("--records", "2000", "--operations", "20000", "--idle", "1", "--repeats", "1"),
    *("--settle-limit", "20"),  # three times what it needs; a run that never settles must not take longer
]


def command(*arguments):
    return [sys.executable, "-m", "opjoule.cli.start", *map(str, arguments)]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT / "host"), "COLUMNS": "100"}


def own_lines(stderr):
    """Lines of stderr, except those about other measurements, which other tests run or kill at the same time."""
    foreign = ("measure.py: removed ", "measure.py: another measurement is running")
    return [line for line in stderr.strip().splitlines() if not line.startswith(foreign)]


def start(out, *arguments):
    line = command("--db", "leveldb", "--device", "rpi4", "--simulate", *SMALL, "--idle", "3", "--out", out, *arguments)
    return subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=ROOT,
        start_new_session=True,
    )


def await_phase(out, name, repeat=1, limit_s=LIMIT_S):
    """Waits until run.json lists the phase, which has then ended."""
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        if (out / "run.json").exists() and any(
            (phase.name, phase.repeat) == (name, repeat) for phase in RunRecord.open(out).run.phases
        ):
            return
        time.sleep(0.05)
    raise AssertionError(f"no phase {name} in {limit_s} s")


def report(out):
    return subprocess.run(
        command("report", out),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=LIMIT_S,
        check=False,
    )
