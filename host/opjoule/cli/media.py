"""`--storage sd,emmc,ssd-usb3`: the same measurement on several media, in randomised blocks, side by side.

A block holds each medium once, in an order drawn from the seed; --repeats says how many blocks. What drifts slowly
(temperature, supply, the medium's own state) then does not fall on one medium alone. Every run has the same seed, so
all media get the same operations.
Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 4 (randomised block designs).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from opjoule.cli.planning import SEED
from opjoule.energy.repeats import repeat_standard_u
from opjoule.errors import BadInput
from opjoule.units import COVERAGE_FACTOR

ROWS = (
    ("energy_per_operation_j", "energy per operation", "J"),
    ("marginal_energy_per_operation_j", "above idle", "J"),
    ("power_w", "power", "W"),
    ("throughput_per_s", "throughput", "1/s"),
    ("bandwidth_bytes_per_s", "bandwidth", "B/s"),
    ("disk_read_bytes", "read from the medium", "B"),
    ("disk_written_bytes", "written to the medium", "B"),
)


def media_order(media: Sequence[str], blocks: int, seed: int) -> list[tuple[int, str]]:
    """(block, medium) in the order of measuring: each block holds every medium once, shuffled from the seed."""
    chance = random.Random(seed)
    order: list[tuple[int, str]] = []
    for block in range(1, blocks + 1):
        shuffled = list(media)
        chance.shuffle(shuffled)
        order += [(block, medium) for medium in shuffled]
    return order


def each_medium(options: argparse.Namespace) -> list[argparse.Namespace]:
    """The options of one measurement for each medium that --storage names."""
    names = [name.strip() for name in options.storage.split(",")]
    return [argparse.Namespace(**{**vars(options), "storage": name}) for name in names]


def run_media(options: argparse.Namespace, folder: Path, run_one: Callable[[argparse.Namespace], int]) -> int:
    """Measures every medium of --storage and prints them side by side; exit status 1 if any run was not complete.

    Args:
        folder: the directory of all records, one directory a run, and of media.json.
        run_one: measures one medium, as `host/measure.py` does without a comma in --storage.
    Raises: BadInput: a medium is named twice, or `folder` holds records already.
    """
    media = [medium.strip() for medium in options.storage.split(",")]
    if len(set(media)) < len(media) or "" in media:
        raise BadInput(f"--storage {options.storage}: name each medium once, for example sd,emmc")
    if (folder / "media.json").exists():
        raise BadInput(f"{folder} already holds measurements of media: choose another --out")
    order = media_order(media, options.repeats, SEED if options.seed is None else options.seed)
    results: dict[str, list[dict[str, Any]]] = {medium: [] for medium in media}
    status = 0
    for number, (block, medium) in enumerate(order, 1):
        print(f"block {block}, {medium} ({number} of {len(order)})", file=sys.stderr)
        out = folder / f"{number:02}-{medium}"
        chosen = {"storage": medium, "repeats": 1, "out": out, "quiet": True}
        status = max(status, run_one(argparse.Namespace(**{**vars(options), **chosen})))
        results[medium].append(json.loads((out / "result.json").read_text()))
    summary = {
        "schema": {"name": "media", "version": 1},
        "simulated": any(result["simulated"] for runs in results.values() for result in runs),
        "order": [{"block": block, "medium": medium} for block, medium in order],
        "media": {medium: compared(runs) for medium, runs in results.items()},
    }
    (folder / "media.json").write_text(json.dumps(summary, indent=2) + "\n")
    if options.json:
        sys.stdout.write((folder / "media.json").read_text())
    else:
        _print(summary, folder)
    return status


def compared(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean of every number of ROWS over one medium's runs.

    The expanded uncertainty joins the largest of the runs' own (the sensor's errors are the same in all of them) with
    that of the mean of repeats; null, with a reason, where a run has no such number.
    """
    return {key: _mean([result[key] for result in results], unit) for key, _, unit in ROWS}


def _mean(numbers: Sequence[dict[str, Any]], unit: str) -> dict[str, Any]:
    if missing := [number for number in numbers if number.get("value") is None]:
        return {
            "value": None,
            "u": None,
            "unit": unit,
            "reason": missing[0].get("reason", "missing in a run"),
        }
    values = [float(number["value"]) for number in numbers]
    entry: dict[str, Any] = {"value": statistics.fmean(values), "u": None, "unit": unit, "runs": len(values)}
    if unstated := [number for number in numbers if number.get("u") is None]:
        return {**entry, "reason": unstated[0].get("reason", "uncertainty not stated in a run")}
    spread = COVERAGE_FACTOR * repeat_standard_u(values) if len(values) > 1 else 0.0
    entry["u"] = math.hypot(max(float(number["u"]) for number in numbers), spread)
    return entry


def _print(summary: dict[str, Any], folder: Path) -> None:
    mark = " (SIMULATED)" if summary["simulated"] else ""
    table = Table(f"mean of blocks{mark}", *summary["media"])
    for key, title, unit in ROWS:
        cells = [_cell(numbers[key], unit) for numbers in summary["media"].values()]
        table.add_row(title, *cells)
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(f"records    {folder}", soft_wrap=True)


def _cell(number: dict[str, Any], unit: str) -> str:
    if number["value"] is None:
        return "-"
    u = "" if number["u"] is None else f" ± {number['u']:.2g}"
    return f"{number['value']:.4g}{u} {unit}"
