#!/usr/bin/env python3
"""Writes the times that the estimate of a study's duration starts from, from records of studies.

    host/study_times.py --source "2 cores at 2.6 GHz, busy" FOLDER...

puts a row for each part of each complete record into host/opjoule/campaign/study_times.csv. Rows of the same cell, rig
and size are replaced; other rows stay.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "host"))

from opjoule.campaign.past_times import SHIPPED, medium_of, runs_in, times_of  # noqa: E402  # path set above
from opjoule.runs.studies.folder import find_study  # noqa: E402

KEY = ("study", "device", "storage", "cell", "size")
COLUMNS = (*KEY, "total_s", "growing_s", "source")


def rows_of(folder: Path, source: str) -> Iterator[dict[str, str]]:
    """A row for each part of each complete record in a folder or in the folders within it."""
    for record in runs_in(folder):
        asked = record.get("asked", {})
        if record.get("status") != "complete" or not asked.get("folder"):
            continue
        rig = {"study": asked["folder"], "device": asked["device"], "storage": medium_of(asked)}
        origin = f"{'SIMULATED, ' if asked.get('simulate') else ''}{source}"
        for time in times_of(record, find_study(asked["folder"]).constant):
            cell = " ".join(f"{axis}={value}" for axis, value in time.cell)
            lengths = {"total_s": f"{time.total_s:.4g}", "growing_s": f"{time.growing_s:.4g}"}
            yield {**rig, "cell": cell, "size": str(time.size), **lengths, "source": origin}


def main() -> None:
    """Adds the rows of the given folders to the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="what the records were measured on")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folder of records")
    options = parser.parse_args()
    by_key: dict[tuple[str, ...], dict[str, str]] = {}
    with SHIPPED.open(newline="", encoding="utf-8") as file:
        before = list(csv.DictReader(file))
    for row in (*before, *(row for folder in options.folders for row in rows_of(folder, options.source))):
        by_key[tuple(row[name] for name in KEY)] = row
    with SHIPPED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(by_key[key] for key in sorted(by_key))


if __name__ == "__main__":
    main()
