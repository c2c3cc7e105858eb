"""Runs five hundred small measurements in one campaign, and checks that they leave nothing behind. SIMULATED.

    .venv/bin/python host/validation/many_cells.py --blocks 25 --out build/many-cells

Two databases, two media and five value sizes make twenty cells a block. Once a minute the script prints the campaign's
memory and open files, and the number of files in its temporary folder and in /dev/shm. Exit code 1 if a process,
temporary file or mount is left at the end, if a cell has no complete record, or if after its first tenth the campaign
has grown by more than 64 KiB a cell or by more than 10 open files. A campaign keeps the numbers of each record, about
20 KiB, for its comparison. A call with the same --out continues an interrupted campaign.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faults.trial import PYTHON, Trial, env, note_what_is_left, of_ours
from long_run import memory_mib

HOST = Path(__file__).resolve().parents[1]

EVERY_S = 60.0
GROWTH_KIB_A_CELL, MORE_FILES = 64, 10
CAMPAIGN = """\
repeats = {blocks}

[constants]
device = "rpi4"
simulate = true
no_harness = true
blocks = false
signature = false
records = 200
operations = 400
idle = 0

[axes]
db = ["leveldb", "sqlite"]
storage = ["emmc", "ssd-usb3"]
value_size = [50, 100, 200, 400, 800]
"""
CELLS = 20


@dataclass(frozen=True)
class Held:
    """Resources that the campaign uses at one time."""

    memory_mib: float
    open_files: int
    temporary_files: int
    shared_memory_files: int


def held(pid: int, temporary: Path) -> Held:
    """Resources that a running campaign uses. Raises: OSError: it has ended."""
    shared = list(Path("/dev/shm").glob("opjoule*"))
    open_files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Held(memory_mib(pid)[1], open_files, len(list(temporary.iterdir())), len(shared))


def course(campaign: subprocess.Popen[bytes], runs: Path, temporary: Path) -> Iterator[Held]:
    """Yields the resources that the campaign uses, once a minute until it ends."""
    begun_s = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            campaign.wait(EVERY_S)
            return
        with contextlib.suppress(OSError):
            now = held(campaign.pid, temporary)
            print(f"{time.monotonic() - begun_s:6.0f} s: {len(complete(runs))} cells, {now}", flush=True)
            yield now


def complete(runs: Path) -> list[Path]:
    """Complete records of the campaign."""
    return [path.parent for path in runs.glob("*/run.json") if json.loads(path.read_text()).get("status") == "complete"]


def main() -> int:
    """Runs the campaign; exit status 1 if a check fails."""
    parser = argparse.ArgumentParser(description="Runs hundreds of small measurements in a row, SIMULATED.")
    parser.add_argument("--blocks", type=int, default=25, help=f"blocks of {CELLS} cells (default: 25)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the campaign and its records")
    options = parser.parse_args()
    out = options.out.resolve()
    temporary, runs, plan = out / "tmp", out / "runs", out / "cells.toml"
    temporary.mkdir(parents=True, exist_ok=True)
    plan.write_text(CAMPAIGN.format(blocks=options.blocks))
    mounts, before = Path("/proc/self/mounts").read_text(), len(complete(runs))
    print("SIMULATED")
    with (out / "said").open("a") as said:
        command = [str(PYTHON), str(HOST / "campaign.py"), str(plan), "--out", str(runs)]
        campaign = subprocess.Popen(command, stdout=said, stderr=said, env=env(temporary))
        seen = list(course(campaign, runs, temporary))
    trial = Trial(campaign.returncode, "ended")
    note_what_is_left(trial, temporary, mounts)
    wrong = list(trial.wrong)
    if campaign.returncode != 0:
        wrong.append(f"exit status {campaign.returncode}: see {out / 'said'}")
    if (count := len(complete(runs))) != options.blocks * CELLS:
        wrong.append(f"{count} of {options.blocks * CELLS} cells are complete")
    if seen:
        first, last = seen[len(seen) // 10], seen[-1]
        print(f"after a tenth {first}\nat the end    {last}")
        between = max(0.9 * (count - before), 1)  # cells measured between the two, in this call
        growth_kib = 1024 * (last.memory_mib - first.memory_mib) / between
        if growth_kib > GROWTH_KIB_A_CELL:
            wrong.append(f"the campaign has grown by {growth_kib:.0f} KiB a cell")
        if last.open_files - first.open_files > MORE_FILES:
            wrong.append(f"the campaign has {last.open_files - first.open_files} more open files")
    print(f"{count} cells, {len(of_ours(out))} processes left, {len(list(temporary.iterdir()))} temporary files")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
