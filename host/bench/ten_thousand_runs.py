"""Measures the time and memory of the commands that list, compare and draw thousands of records.

    .venv/bin/python host/bench/ten_thousand_runs.py [RUNS]

The records are hard links of runs/example (SIMULATED), each in its own folder and with its own run.json. They form four
groups, which differ in the medium that they name. Each command runs in its own process. Prints its seconds, its
processor time and its peak memory (VmHWM, without that of its children).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOST = Path(__file__).resolve().parents[1]
MEDIA = ("sd", "emmc", "ssd-usb2", "ssd-usb3")
EXAMPLE = HOST.parent / "runs/example"


def linked(folder: Path, runs: int) -> None:
    """Makes records that share all files except run.json."""
    from opjoule.runs.record.run_record import with_digest  # noqa: PLC0415  # not in the measured start

    said = json.loads((EXAMPLE / "run.json").read_text())
    for number in range(runs):
        place = folder / f"run-{number:05}"
        shutil.copytree(EXAMPLE, place, copy_function=os.link)
        (place / "run.json").unlink()
        medium = MEDIA[number % len(MEDIA)]
        facts = {**said["found"], "storage": medium}
        document = {**said, "asked": {**said["asked"], "storage": medium, "block": number}, "found": facts}
        (place / "run.json").write_text(json.dumps(with_digest(document)))


def timed(command: list[str]) -> tuple[float, float, float, int]:
    """(duration [s], processor time [s], peak memory [MB], exit status) of one command."""
    program = (
        "import json, resource, sys, time\nfrom opjoule.cli.start import main\nstatus = main(sys.argv[1:])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "peak = next(l for l in open('/proc/self/status') if 'VmHWM' in l).split()[1]\n"
        "print('USED', used.ru_utime + used.ru_stime, int(peak) / 1024, file=sys.stderr)\nsys.exit(status)\n"
    )
    begun_s = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", program, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(HOST)},
    )
    length_s = time.monotonic() - begun_s
    last = next((line for line in reversed(ended.stderr.splitlines()) if line.startswith("USED")), "USED 0 0")
    _, cpu_s, peak_mb = last.split()
    if ended.returncode:
        print(ended.stderr.strip()[-300:], file=sys.stderr)
    return length_s, float(cpu_s), float(peak_mb), ended.returncode


def main(runs: int) -> None:
    """Prints a table."""
    with tempfile.TemporaryDirectory(prefix="opjoule-many-", dir=HOST.parent / "build") as name:
        folder = Path(name)
        begun_s = time.monotonic()
        linked(folder / "runs", runs)
        print(f"{runs} records made in {time.monotonic() - begun_s:.1f} s, SIMULATED")
        places = sorted(str(path) for path in (folder / "runs").iterdir())
        commands = {
            "runs list, the first time": ["runs", "list", str(folder / "runs")],
            "runs list, again": ["runs", "list", str(folder / "runs")],
            "compare.py": ["compare", "--by", "storage", *places],
            "runs figures": ["runs", "figures", *places, "--out", str(folder / "figures")],
        }
        for what, command in commands.items():
            length_s, cpu_s, peak_mb, status = timed(command)
            print(f"| {what} | {length_s:.1f} s | {cpu_s:.1f} s | {peak_mb:.0f} MB | {status} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
