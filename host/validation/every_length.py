"""Checks that simulated measurements of many lengths, engines, media and workloads end with figures. SIMULATED.

    .venv/bin/python host/validation/every_length.py FOLDER [--cells 42] [--seed 1] [--jobs 2]

Cells of --seconds 5, 20 and 60, seven engines, four media and workloads a and c are drawn so that every pair of values
occurs at least once. Each cell is one repeat of `host/measure.py --simulate`. Its record stays in FOLDER, and a cell
whose record is already there is not measured again. Exit status 1 if a cell ended with a status other than 0, or
without its energy per operation.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
AXES: Final = {
    "seconds": ("5", "20", "60"),
    "db": ("leveldb", "sqlite", "rocksdb", "lmdb", "berkeleydb", "flatfolder", "nestedfolder"),
    "storage": ("sd", "emmc", "ssd-usb3", "nvme"),
    "workload": ("a", "c"),
}
BOARDS: Final = {"sd": "rpi4", "emmc": "odroid-c2", "ssd-usb3": "rpi4", "nvme": "rpi5"}
WEIGHTS: Final = {"5": 1.0, "20": 0.6, "60": 0.2}
"""Weights of the lengths in the draw. The longest cells take most of the time."""
Cell = tuple[str, ...]


def drawn(count: int, seed: int) -> list[Cell]:
    """Draws at least `count` cells in which every pair of values of two axes occurs."""
    rng = random.Random(seed)
    everything = list(itertools.product(*AXES.values()))
    missing = {
        ((a, x), (b, y))
        for a, b in itertools.combinations(range(len(AXES)), 2)
        for x in list(AXES.values())[a]
        for y in list(AXES.values())[b]
    }
    cells: list[Cell] = []
    while missing or len(cells) < count:
        left = [cell for cell in everything if cell not in cells]
        if missing:
            gain = {cell: len(_pairs(cell) & missing) for cell in left}
            most = max(gain.values())
            left = [cell for cell in left if gain[cell] == most]
        chosen = rng.choices(left, [WEIGHTS[cell[0]] for cell in left])[0]
        cells.append(chosen)
        missing -= _pairs(chosen)
    return cells


def _pairs(cell: Cell) -> set[tuple[tuple[int, str], tuple[int, str]]]:
    return set(itertools.combinations(enumerate(cell), 2))


@dataclass(frozen=True)
class Ended:
    """Outcome of one cell."""

    cell: Cell
    status: int
    energy: str
    """Energy above idle per operation from result.json; empty if there is none."""
    took_s: float
    said: str

    @property
    def good(self) -> bool:
        """True if the cell ended with figures."""
        return self.status == 0 and bool(self.energy)


def measured(cell: Cell, folder: Path) -> Ended:
    """Measures one cell, unless its record exists."""
    seconds, db, storage, workload = cell
    out = folder / "-".join(cell)
    started_s = time.monotonic()
    status, said = 0, ""
    if not (out / "result.json").exists():
        line = [sys.executable, str(ROOT / "host/measure.py"), "--simulate", "--repeats", "1", "--no-harness"]
        line += ["--no-blocks", "--db", db, "--device", BOARDS[storage], "--storage", storage]
        line += ["--workload", workload, "--seconds", seconds, "--out", str(out)]
        ended = subprocess.run(line, capture_output=True, text=True, check=False)
        status, said = ended.returncode, (ended.stderr.strip().splitlines() or [""])[-1]
    energy = ""
    if (out / "result.json").exists():
        number = json.loads((out / "result.json").read_text())["marginal_energy_per_operation_j"]
        if number["value"] is not None:
            energy = f"{1e6 * number['value']:.4g} ± {1e6 * (number['u'] or 0.0):.2g} uJ"
    return Ended(cell, status, energy, time.monotonic() - started_s, said)


def main() -> int:
    """Measures all cells and prints their outcomes; exit status 1 if one ended without figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", type=int, default=42)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cells = drawn(options.cells, options.seed)
    print(
        f"SIMULATED; {len(cells)} cells\n\n| {' | '.join(AXES)} | status | energy above idle per operation | s | |"
    )
    print("|" + "---|" * (len(AXES) + 4), flush=True)
    good = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda cell: measured(cell, options.folder), cells):
            good += outcome.good
            said = "" if outcome.good else outcome.said
            print(
                f"| {' | '.join(outcome.cell)} | {outcome.status} | {outcome.energy} | {outcome.took_s:.0f} | {said} |",
                flush=True,
            )
    print(f"\n{good} of {len(cells)} ended with figures")
    return 0 if good == len(cells) else 1


if __name__ == "__main__":
    sys.exit(main())
