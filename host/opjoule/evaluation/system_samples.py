"""Samples of the board in one repeat, and of a server database that ran on it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from opjoule.errors import RecordFault
from opjoule.units import Unstated

_REASON = "counters of the server's process on the board, from its start to its end, the load included"


def server_usage(files: Sequence[Path]) -> dict[str, Unstated]:
    """`server` of result.json from raw/server-N.csv: memory, processor time and I/O, means over the repeats.

    Files without a whole row are left out. Raises: RecordFault: a file holds something else than samples.
    """
    used = list(filter(None, map(_one, files)))
    means = {name: fmean(usage[name] for usage in used) for name in _UNITS if used}
    return {name: Unstated(mean, _UNITS[name], _REASON) for name, mean in means.items()}


_UNITS = {"peak_memory_bytes": "B", "cpu_s": "s", "read_bytes": "B", "written_bytes": "B"}


def _one(file: Path) -> dict[str, float]:
    try:
        with file.open(newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if None not in row.values()]
        if not rows:
            return {}
        last = rows[-1]
        peak = max(float(row["rss_bytes"]) for row in rows)
        return {"peak_memory_bytes": peak} | {name: float(last[name]) for name in _UNITS if name in last}
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        raise RecordFault(f"{file}: not samples of a server") from None
