"""Estimate of a study's duration from its records at other scales. Standard library alone.

A record's time has a part that grows with its counts and a fixed part. In one record, the growing part is loading and
working, or the phases that its job marks except those with a constant length (a server's start); the rest is fixed.
Once a cell was measured at two sizes, the difference of the two times gives the growing part.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from opjoule.base.files import read_regular

GROWING: Final = ("prepare", "work")
"""Roles of the phases that take longer with more records and operations, if a job marks no phases."""
APART: Final = 2.0
"""Ratio of two sizes from which the difference of their times exceeds the spread of measurements."""
FIGURES: Final = 2
"""Significant digits of a chosen scale."""
Axes = tuple[tuple[str, str], ...]
"""A cell's values by axis, in order of the axes' names."""


@dataclass(frozen=True)
class PastTime:
    """Duration of one record of a study."""

    cell: Axes
    size: int
    """Sum of all counts."""
    total_s: float
    growing_s: float
    """The part that grows with the counts."""


@dataclass(frozen=True)
class TimeNeeded:
    """Estimated duration of several cells."""

    fixed_s: float
    growing_s: float
    """The part that grows with the counts."""
    cells: int
    by_own_records: int
    """Number of cells with records at some scale; the other cells take the mean of those."""

    @property
    def total_s(self) -> float:
        """Total time [s]."""
        return self.fixed_s + self.growing_s

    def scale_within(self, limit_s: float) -> float:
        """The greatest scale, at most 1, with a time within the limit, if these are the cells at scale 1.

        Returns: 0 if there is none.
        """
        if self.growing_s <= 0:
            return 1.0 if self.fixed_s <= limit_s else 0.0
        share = min((limit_s - self.fixed_s) / self.growing_s, 1.0)
        if share <= 0:
            return 0.0
        steps = 10.0 ** (FIGURES - 1 - math.floor(math.log10(share)))
        return math.floor(share * steps) / steps


def size_of(asked: Mapping[str, Any]) -> int:
    """Sum of all counts in a cell's options: of its parts, or of a workload's records and operations."""
    parts = asked.get("parts")
    if parts:
        return sum(sum(count) for part in parts for count in part.values() if isinstance(count, list | tuple))
    return int(asked.get("records") or 0) + int(asked.get("operations") or 0)


def past_times(runs: Path, asked: Mapping[str, Any], constant: Sequence[str] = ()) -> list[PastTime]:
    """Durations of complete records of the same study on the same board and medium, simulated or not as asked.

    Args:
        runs: a folder of records, and of folders of records.
        asked: options of a cell: `folder`, `device`, `storage`, `simulate`.
        constant: phases of the job whose length does not depend on size.
    """
    alike = ("folder", "device", "storage")
    times = []
    for path in [*runs.glob("*/run.json"), *runs.glob("*/*/run.json")]:
        record = _read(path)
        options = record.get("asked", {})
        same = all(str(options.get(name)) == str(asked.get(name)) for name in alike)
        same = same and bool(options.get("simulate")) == bool(asked.get("simulate"))
        if same and record.get("status") == "complete":
            times += list(_past(record, constant))
    return times


def _read(path: Path) -> dict[str, Any]:
    """Contents of a run.json; empty if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        contents = json.loads(read_regular(path))
        return contents if isinstance(contents, dict) else {}
    return {}


def _past(record: Mapping[str, Any], constant: Sequence[str]) -> Iterator[PastTime]:
    """Duration of a record; empty if it is not stated."""
    with suppress(KeyError, TypeError, ValueError):
        ends = [datetime.fromisoformat(record["found"][key]) for key in ("started_utc", "ended_utc")]
        took_s = (ends[1] - ends[0]).total_seconds()
        if marked := record.get("marked_phases"):
            growing = [phase for phase in marked if phase["name"] not in constant]
        else:
            growing = [phase for phase in record["phases"] if phase["role"] in GROWING]
        growing_s = sum(1e-9 * (phase["end_board_ns"] - phase["start_board_ns"]) for phase in growing)
        size = size_of(record["asked"])
        if size and took_s >= growing_s:
            yield PastTime(_cell(record["asked"]), size, took_s, growing_s)


def _cell(asked: Mapping[str, Any]) -> Axes:
    return tuple(sorted((str(axis), str(value)) for axis, value in asked["cell"].items()))


def time_needed(cells: Sequence[Mapping[str, Any]], past: Iterable[PastTime]) -> TimeNeeded | None:
    """Estimate for cells from their options; None if no cell has records.

    Args:
        cells: each as often as it is to be measured.
    """
    by_cell: dict[Axes, list[PastTime]] = {}
    for past_time in past:
        by_cell.setdefault(past_time.cell, []).append(past_time)
    known = [estimate for cell in cells if (estimate := _needed(cell, by_cell))]
    if not known:
        return None
    fixed_s, growing_s = (len(cells) * fmean(times) for times in zip(*known, strict=True))
    return TimeNeeded(fixed_s, growing_s, len(cells), len(known))


def _needed(asked: Mapping[str, Any], by_cell: Mapping[Axes, Sequence[PastTime]]) -> tuple[float, float] | None:
    """(fixed, growing) time of one cell [s], from its records nearest in size."""
    size, past = size_of(asked), by_cell.get(_cell(asked))
    if not past or not size:
        return None
    sizes = sorted({time.size for time in past}, key=lambda known: abs(math.log(known / size)))
    nearest = [time for time in past if time.size == sizes[0]]
    total_s, growing_s = fmean(time.total_s for time in nearest), fmean(time.growing_s for time in nearest)
    per_count_s = growing_s / sizes[0]
    apart = (known for known in sizes if max(known, sizes[0]) >= APART * min(known, sizes[0]))
    if other := next(apart, None):
        other_s = fmean(time.total_s for time in past if time.size == other)
        per_count_s = min(max((total_s - other_s) / (sizes[0] - other), 0.0), total_s / sizes[0])
    return total_s - per_count_s * sizes[0], per_count_s * size
