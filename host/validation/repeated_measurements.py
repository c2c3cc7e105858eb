"""Repeats a simulated measurement and counts how often stated intervals contain the true values. SIMULATED.

    .venv/bin/python host/validation/repeated_measurements.py --measurements 10 --out /tmp/repeated
    .venv/bin/python host/validation/repeated_measurements.py --out /tmp/rocksdb -- --db rocksdb --design --seconds 60

Options after "--" go to host/measure.py and replace those of the default measurement. Each measurement draws a
simulated rig and the power of each part of the work; the lines that begin "SIMULATED truth:" are counted. Existing
records are used again, so an interrupted study continues. Exit status 1 if fewer than nine in ten intervals of the
headline contain the true value.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Final

from opjoule.bench.simulation.truth_line import SHOWN, KnownFigure, known_figures

HOST = Path(__file__).resolve().parents[1]

DEFAULT: Final = ("--db", "leveldb")
HEADLINE: Final = SHOWN["marginal_energy_per_operation_j"]


def measured(out: Path, options: list[str], seed: int) -> float:
    """Makes one record if there is none; returns the seconds that it took."""
    started_s = time.monotonic()
    if (out / "result.json").exists():
        return 0.0
    command = [HOST / "measure.py", "--device", "rpi4", "--simulate", "--seed", seed, "--out", out, *options]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if not (out / "result.json").exists():
        sys.exit(f"{out}: exit status {ended.returncode}: {(ended.stderr.strip().splitlines() or [''])[-1]}")
    return time.monotonic() - started_s


def row(about: str, figures: list[KnownFigure]) -> str:
    """Row of the table: how often a figure was identified and its interval held, its median width and error."""
    identified = [figure for figure in figures if figure.has_interval]
    cells = [about, f"{len(identified)} of {len(figures)}", "", "", ""]
    if identified:
        width = median((figure.stated.u or 0.0) / abs(figure.true) for figure in identified)
        off = median(abs(float(figure.stated) - figure.true) / abs(figure.true) for figure in identified)
        held = sum(figure.holds for figure in identified)
        cells[2:] = [f"{held} of {len(identified)}", f"±{100 * width:.2g} %", f"{100 * off:.2g} %"]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Prints a line for each measurement, and a table of all; exit status 1 if the headline is held too rarely."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measurements", type=int, default=10, metavar="N")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first measurement")
    parser.add_argument("options", nargs="*", help="options of host/measure.py, after --")
    options = parser.parse_args()
    measurements: list[list[KnownFigure]] = []
    for number in range(options.seed, options.seed + options.measurements):
        out = options.out / f"{number:02}"
        took_s = measured(out, options.options or list(DEFAULT), number)
        measurements.append(known_figures(out))
        headline = next((str(figure) for figure in measurements[-1] if figure.about == HEADLINE), "no headline")
        print(f"{number:2}  {headline}  {took_s:.0f} s", flush=True)
    print("| figure | identified | held | median width | median error |\n|---|---|---|---|---|")
    everything = [figure for figures in measurements for figure in figures]
    for about in dict.fromkeys(figure.about for figure in everything):
        print(row(about, [figure for figure in everything if figure.about == about]))
    held = sum(figure.holds for figure in everything if figure.about == HEADLINE)
    return 0 if 10 * held >= 9 * len(measurements) else 1


if __name__ == "__main__":
    sys.exit(main())
