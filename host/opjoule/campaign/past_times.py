"""Estimate of a study's duration from its records at other scales, or from shipped times.

A record's time has a part that grows with its counts and a fixed part. In one record, the growing part is loading and
working, or the phases that its job marks except those with a constant length (a server's start); the rest is fixed.
Once a cell was measured at two sizes, the difference of the two times gives the growing part. If a job varies an axis
within one record, each of its values has a growing part of its own.

A cell without records takes those of `study_times.csv` that are most alike; host/study_times.py writes that file.
"""

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from opjoule.base.files import read_regular
from opjoule.base.settings import MEDIUM
from opjoule.boards.profiles import find_profile

GROWING: Final = ("prepare", "work")
"""Roles of the phases that take longer with more records and operations, if a job marks no phases."""
APART: Final = 2.0
"""Ratio of two sizes from which the difference of their times exceeds the spread of measurements."""
FIGURES: Final = 2
"""Significant digits of a chosen scale."""
SHIPPED: Final = Path(__file__).with_name("study_times.csv")
SPREAD_OWN: Final = 1.3
"""Factor by which a cell of the same size may take longer or shorter than its records."""
SPREAD_SHIPPED: Final = 2.0
"""The same for the shipped time of the same database, from another computer."""
SPREAD_GUESSED: Final = 4.0
"""The same for the mean of other databases."""
SPREAD_DECADE: Final = 1.5
"""Further factor for each power of ten between the sizes: caches fill, trees grow."""
RATES: Final = "rates"
"""Folder of the records that show each condition's own rate, in the campaign's folder."""
_SYSTEM: Final = "system"
Axes = tuple[tuple[str, str], ...]
"""A cell's values by axis, in order of the axes' names."""


@dataclass(frozen=True)
class PastTime:
    """Duration of one record of a study, or of the part of it that belongs to one value of the axes within."""

    cell: Axes
    size: int
    """Sum of all counts."""
    total_s: float
    """The fixed part of the whole record, and the growing part."""
    growing_s: float
    """The part that grows with the counts."""


@dataclass(frozen=True)
class TimeNeeded:
    """Estimated duration of several cells."""

    fixed_s: float
    growing_s: float
    """The part that grows with the counts."""
    least_s: float
    most_s: float
    """Bounds of the total time [s]."""
    cells: int
    by_own_records: int
    """Number of cells with records at some scale."""
    by_shipped: int = 0
    """Number of cells estimated from the shipped times of their database; the other cells take the mean of all."""

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
    times = []
    for record in runs_in(runs):
        options = record.get("asked", {})
        same = all(str(options.get(name)) == str(asked.get(name)) for name in ("folder", "device"))
        same = same and medium_of(options) == medium_of(asked)
        same = same and bool(options.get("simulate")) == bool(asked.get("simulate"))
        if same and record.get("status") == "complete":
            times += list(times_of(record, constant))
    return times


def medium_of(asked: Mapping[str, Any]) -> str:
    """Medium of a measurement: the one that was asked for, or the board's first. Raises: BadInput: no such board."""
    return str(asked.get(MEDIUM) or find_profile(str(asked.get("device"))).media[0])


def runs_in(folder: Path) -> Iterator[dict[str, Any]]:
    """Contents of each run.json in a folder and in the folders within it; empty if it cannot be read.

    The short runs that find an equal rate are left out: they do not have all operations of their cells.
    """
    for path in sorted([*folder.glob("*/run.json"), *folder.glob("*/*/run.json")]):
        if path.parent.parent.name != RATES:
            yield _read(path)


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        contents = json.loads(read_regular(path))
        return contents if isinstance(contents, dict) else {}
    return {}


def times_of(record: Mapping[str, Any], constant: Sequence[str]) -> Iterator[PastTime]:
    """Durations of a record's parts; empty if they are not stated."""
    with suppress(KeyError, TypeError, ValueError):
        ends = [datetime.fromisoformat(record["found"][key]) for key in ("started_utc", "ended_utc")]
        took_s = (ends[1] - ends[0]).total_seconds()
        if marked := record.get("marked_phases"):
            growing = [phase for phase in marked if phase["name"] not in constant]
        else:
            growing = [phase for phase in record["phases"] if phase["role"] in GROWING]
        lengths_s = [
            (str(phase["name"]), 1e-9 * (phase["end_board_ns"] - phase["start_board_ns"])) for phase in growing
        ]
        parts = _parts(record["asked"])
        fixed_s = took_s - sum(length_s for _, length_s in lengths_s)
        for cell, size in parts if fixed_s >= 0 else ():
            within = {value for _, value in cell} - {value for _, value in _axes(record["asked"]["cell"])}
            own_s = sum(length_s for name, length_s in lengths_s if len(parts) == 1 or within <= {*name.split(".")})
            if size:
                yield PastTime(cell, size, fixed_s + own_s, own_s)


def _axes(values: Mapping[str, Any]) -> Axes:
    return tuple(sorted((str(axis), str(value)) for axis, value in values.items()))


def _parts(asked: Mapping[str, Any]) -> list[tuple[Axes, int]]:
    """(values of all axes, size) of each part of a cell; of a workload, of the cell as a whole."""
    parts: Sequence[Mapping[str, Any]] = asked.get("parts") or ()
    if not parts:
        return [(_axes(asked["cell"]), size_of(asked))]
    within = [{axis: value for axis, value in part.items() if isinstance(value, str)} for part in parts]
    return [
        (_axes({**asked["cell"], **axes}), size_of({"parts": [part]})) for axes, part in zip(within, parts, strict=True)
    ]


def shipped_times(asked: Mapping[str, Any], file: Path = SHIPPED) -> list[PastTime]:
    """The shipped times of a cell's study; of each database those on its medium, if there are any, else on all."""
    on_medium: list[PastTime] = []
    elsewhere: list[PastTime] = []
    with file.open(newline="", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if row["study"] == asked.get("folder"):
                axes = _axes(dict(axis.split("=", 1) for axis in row["cell"].split()))
                past = PastTime(axes, int(row["size"]), float(row["total_s"]), float(row["growing_s"]))
                (on_medium if row[MEDIUM] == medium_of(asked) else elsewhere).append(past)
    known = {dict(past.cell).get(_SYSTEM) for past in on_medium}
    return [*on_medium, *(past for past in elsewhere if dict(past.cell).get(_SYSTEM) not in known)]


def time_needed(
    cells: Sequence[Mapping[str, Any]], past: Iterable[PastTime], shipped: Sequence[PastTime] = ()
) -> TimeNeeded | None:
    """Estimate for cells from their options; None if no cell has records and none is like a shipped time.

    Args:
        cells: each as often as it is to be measured.
        past: of the user's own records.
    """
    by_cell: dict[Axes, list[PastTime]] = {}
    for past_time in past:
        by_cell.setdefault(past_time.cell, []).append(past_time)
    own = [_needed(cell, lambda axes: by_cell.get(axes, ()), SPREAD_OWN) for cell in cells]
    likely = [_needed(cell, lambda axes: _most_alike(axes, shipped), SPREAD_SHIPPED) for cell in cells]
    known = [one or other for one, other in zip(own, likely, strict=True)]
    if not any(known):
        return None
    found = [estimate for estimate in known if estimate]
    fixed_s, growing_s = (
        fmean(times) for times in zip(*((each.fixed_s, each.growing_s) for each in found), strict=True)
    )
    guess = TimeNeeded(
        fixed_s, growing_s, (fixed_s + growing_s) / SPREAD_GUESSED, (fixed_s + growing_s) * SPREAD_GUESSED, 1, 0
    )
    every = [estimate or guess for estimate in known]
    return TimeNeeded(
        fixed_s=sum(each.fixed_s for each in every),
        growing_s=sum(each.growing_s for each in every),
        least_s=sum(each.least_s for each in every),
        most_s=sum(each.most_s for each in every),
        cells=len(cells),
        by_own_records=sum(estimate is not None for estimate in own),
        by_shipped=sum(not one and bool(other) for one, other in zip(own, likely, strict=True)),
    )


def _most_alike(axes: Axes, shipped: Sequence[PastTime]) -> Sequence[PastTime]:
    """The times of the same database with the most values of axes in common."""
    system = dict(axes).get(_SYSTEM)
    of_system = [past for past in shipped if dict(past.cell).get(_SYSTEM) == system]
    common = [len({*past.cell} & {*axes}) for past in of_system]
    return [past for past, number in zip(of_system, common, strict=True) if number == max(common)]


def _needed(
    asked: Mapping[str, Any], past_of: Callable[[Axes], Sequence[PastTime]], spread: float
) -> TimeNeeded | None:
    """The time of one cell; None if a part of it has no past time.

    Args:
        past_of: past times of the values of all axes.
        spread: factor of both bounds at equal sizes.
    """
    parts = _parts(asked)
    times = [_part_needed(size, past_of(axes)) for axes, size in parts]
    if not all(size for _, size in parts) or not all(times):
        return None
    found = [time for time in times if time]
    fixed_s, growing_s = fmean(fixed_s for fixed_s, _, _ in found), sum(growing_s for _, growing_s, _ in found)
    spreads = [(growing_s, spread * SPREAD_DECADE**decades) for _, growing_s, decades in found]
    return TimeNeeded(
        fixed_s,
        growing_s,
        fixed_s / spread + sum(growing_s / factor for growing_s, factor in spreads),
        fixed_s * spread + sum(growing_s * factor for growing_s, factor in spreads),
        1,
        0,
    )


def _part_needed(size: int, past: Sequence[PastTime]) -> tuple[float, float, float] | None:
    """(fixed time [s], growing time [s], powers of ten to the known size) from the past times nearest in size."""
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
    return total_s - per_count_s * sizes[0], per_count_s * size, abs(math.log10(size / sizes[0]))
