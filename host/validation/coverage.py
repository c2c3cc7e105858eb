"""Counts how often the stated interval contains the true value, in random measurements through the real firmware.

    .venv/bin/python host/validation/coverage.py --count 400

SIMULATED. Each measurement (random_measurement.py) draws a new load, supply, shunt, sensor and clocks within the limits
of the data sheets, and is processed as usual, from the serial port to the figures of a repeat. It is evaluated twice:
with the error bounds of a sensor as delivered, and with gain and offset known, which tests the rest of the budget
alone. Seeds count up from --first-seed. The journal keeps finished measurements, so the same command continues where it
stopped. Exit code 1 if an interval contains the true value in fewer than 93 of 100 cases, or if a measurement was
refused.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from coverage_plot import draw
from random_measurement import QUANTITIES, OpJouleError, measure

VALIDATION = Path(__file__).resolve().parent
ROOT = VALIDATION.parents[1]

WANTED = (0.93, 0.97)
VIEWS = {"delivered": "as delivered", "known": "gain and offset known"}
Found = list[dict[str, Any]]


def done_before(journal: Path) -> Found:
    """Reads the measurements in the journal; an incomplete last line is ignored."""
    measurements = []
    for line in journal.read_text().splitlines() if journal.exists() else []:
        try:
            measurements.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return measurements


def measure_all(journal: Path, seeds: Iterable[int], processes: int) -> Found:
    """Measurements of all these seeds; runs those that the journal does not contain yet."""
    wanted = set(seeds)
    measurements = [one for one in done_before(journal) if one["seed"] in wanted]
    missing = sorted(wanted - {one["seed"] for one in measurements})
    journal.parent.mkdir(parents=True, exist_ok=True)
    with journal.open("a") as sink, ProcessPoolExecutor(processes) as pool:
        for one in pool.map(_entry, missing):
            measurements.append(one)
            sink.write(json.dumps(one) + "\n")
            sink.flush()
            if len(measurements) % 20 == 0:
                print(f"{len(measurements)} of {len(wanted)}", file=sys.stderr, flush=True)
    return sorted(measurements, key=lambda one: one["seed"])


def _entry(seed: int) -> dict[str, Any]:
    try:
        return measure(seed).to_json()
    except OpJouleError as error:
        return {"seed": seed, "refused": str(error)}


def scaled_errors(measurements: Found, view: str, quantity: str) -> list[float]:
    """Error over stated uncertainty of each measurement; within +-1 the interval contains the true value."""
    return [(value - truth) / u for value, u, truth, _ in (one[view][quantity] for one in measurements)]


def rms_error(measurements: Found, view: str, quantity: str) -> float:
    """Root mean square of the errors over their standard uncertainties."""
    ratios = [(value - truth) / own_u for value, _, truth, own_u in (one[view][quantity] for one in measurements)]
    return float(sum(ratio**2 for ratio in ratios) / len(ratios)) ** 0.5


def coverage(measurements: Found, view: str, quantity: str) -> float:
    """Share of the measurements whose interval contains the true value."""
    errors = scaled_errors(measurements, view, quantity)
    return sum(abs(error) <= 1 for error in errors) / len(errors)


def median_u(measurements: Found, view: str, quantity: str) -> float:
    """Median stated uncertainty, relative to the truth."""
    return median(u / abs(truth) for _, u, truth, _ in (one[view][quantity] for one in measurements))


def table(measurements: Found) -> list[str]:
    """Coverage and median width of each quantity, in Markdown."""
    lines = [f"| quantity | {' | '.join(f'{name}: held | median u' for name in VIEWS.values())} |"]
    lines.append("|---" * (1 + 2 * len(VIEWS)) + "|")
    for quantity in QUANTITIES:
        cells = []
        for view in VIEWS:
            held, u = coverage(measurements, view, quantity), median_u(measurements, view, quantity)
            cells.append(f"{100 * held:.1f} % | {100 * u:.2g} %")
        lines.append(f"| `{quantity}` | {' | '.join(cells)} |")
    return lines


def by_kind(measurements: Found, view: str) -> list[str]:
    """Coverage for each kind of load, which shows the loads for which intervals are too narrow or too wide."""
    kinds = sorted({one["kind"] for one in measurements})
    lines = [f"| {VIEWS[view]} | {' | '.join(kinds)} |", "|---" * (1 + len(kinds)) + "|"]
    for quantity in QUANTITIES:
        cells = []
        for kind in kinds:
            some = [one for one in measurements if one["kind"] == kind]
            cells.append(f"{100 * coverage(some, view, quantity):.0f} % ({rms_error(some, view, quantity):.2f})")
        lines.append(f"| `{quantity}` | {' | '.join(cells)} |")
    return lines


def too_narrow(measurements: Found) -> list[str]:
    """Quantities whose interval contains the true value too rarely."""
    return [
        f"{quantity}, {name}: {100 * share:.1f} %"
        for view, name in VIEWS.items()
        for quantity in QUANTITIES
        if (share := coverage(measurements, view, quantity)) < WANTED[0]
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the tables; exit status 1 if an interval contains the true value too rarely."""
    parser = argparse.ArgumentParser(description="Coverage of stated intervals, SIMULATED.")
    parser.add_argument("--count", type=int, default=400, help="measurements (default: 400)")
    parser.add_argument("--first-seed", type=int, default=1, help="seed of the first measurement (default: 1)")
    parser.add_argument("--processes", type=int, default=2, help="processes side by side (default: 2)")
    parser.add_argument(
        "--journal", type=Path, default=ROOT / "build/coverage.jsonl", help="file of finished measurements"
    )
    parser.add_argument("--plot", type=Path, help="write an SVG of all errors over their stated uncertainties")
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.count)
    every = measure_all(options.journal, seeds, options.processes)
    measurements = [one for one in every if "refused" not in one]
    refused = [f"seed {one['seed']}: {one['refused']}" for one in every if "refused" in one]
    print(
        f"SIMULATED: {len(measurements)} measurements, seeds {seeds.start} to {seeds.stop - 1}, "
        f"{len(refused)} refused\n"
    )
    print("".join(f"refused: {line}\n" for line in refused))
    print("\n".join(table(measurements)), end="\n\n")
    for view in VIEWS:
        print("\n".join(by_kind(measurements, view)), end="\n\n")
    print("In brackets: r.m.s. of error over standard uncertainty. 1 is right; below 1 the interval is too wide.")
    if options.plot:
        options.plot.write_text(
            draw(
                {name: [scaled_errors(measurements, view, q) for q in QUANTITIES] for view, name in VIEWS.items()},
                QUANTITIES,
            )
        )
    narrow = too_narrow(measurements)
    print(
        "true value within the interval too rarely: " + "; ".join(narrow)
        if narrow
        else f"every interval contains the true value in at least {100 * WANTED[0]:.0f} of 100"
    )
    return 1 if narrow or refused else 0


if __name__ == "__main__":
    sys.exit(main())
