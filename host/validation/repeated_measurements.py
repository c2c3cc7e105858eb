"""Default measurements one after the other: does each one's headline interval hold the mean of the others? SIMULATED.

    .venv/bin/python host/validation/repeated_measurements.py --measurements 10 --out /tmp/repeated

Each draws a simulated rig of its own, so that the intervals have to hold what sensors differ by as well as what runs
differ by. A record that is there already is used again: an interrupted study goes on. Exit status 1 if fewer than nine
in ten hold.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEYS = (
    "marginal_energy_per_operation_j",
    "energy_per_operation_j",
    "idle_power_w",
    "power_w",
    "throughput_per_s",
)
HEADLINE = KEYS[0]


def measured(out: Path) -> tuple[dict[str, Any], float]:
    """result.json of one default measurement, and the seconds it took (0 where it was there)."""
    started_s = time.monotonic()
    if not (out / "result.json").exists():
        command = [
            ROOT / "host/measure.py",
            "--db",
            "leveldb",
            "--device",
            "rpi4",
            "--simulate",
            "--out",
            out,
        ]
        ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if not (out / "result.json").exists():
            sys.exit(f"{out}: exit status {ended.returncode}: {ended.stderr.strip().splitlines()[-1]}")
        return json.loads((out / "result.json").read_text()), time.monotonic() - started_s
    return json.loads((out / "result.json").read_text()), 0.0


def held(results: list[dict[str, Any]], key: str) -> list[bool]:
    """Whether each one's interval holds the mean of the others; a figure that was withheld counts as not."""
    numbers = [result[key] for result in results]
    outcome = []
    for number, own in enumerate(numbers):
        others = [
            each["value"]
            for other, each in enumerate(numbers)
            if other != number and each["value"] is not None
        ]
        outcome.append(own["value"] is not None and abs(own["value"] - fmean(others)) <= (own["u"] or 0.0))
    return outcome


def main() -> int:
    """Prints a line a measurement and the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measurements", type=int, default=10, metavar="N")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    asked = parser.parse_args()
    results = []
    for number in range(1, asked.measurements + 1):
        result, took_s = measured(asked.out / f"{number:02}")
        own = result[HEADLINE]
        shown = "withheld" if own["value"] is None else f"{1e6 * own['value']:.2f} ± {1e6 * own['u']:.2f} uJ"
        print(f"{number:2}  SIMULATED  {shown}  {took_s:.0f} s", flush=True)
        results.append(result)
    for key in KEYS:
        outcome = held(results, key)
        relative = [each[key]["u"] / each[key]["value"] for each in results if each[key]["value"]]
        print(f"{key}: {sum(outcome)} of {len(outcome)} hold; mean width ±{100 * fmean(relative):.2g} %")
    return 0 if 10 * sum(held(results, HEADLINE)) >= 9 * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
