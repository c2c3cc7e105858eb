"""Which records there are, each in one line: what was measured, when, how it ended, and its headline."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from opjoule.errors import RecordFault
from opjoule.files import file_sha256
from opjoule.record.result import Conclusion, read_result
from opjoule.record.run_record import RunRecord, reading
from opjoule.report.quantities import quantity, quantity_text
from opjoule.studies.results import wording_of
from opjoule.units import Missing, Quantity

UNREADABLE: Final = "unreadable"
"""In the place of a status: no readable run.json."""


@dataclass(frozen=True)
class ListedRun:
    """One record as a list shows it; texts are empty where it does not say."""

    path: Path
    status: str
    """complete, partial, failed, or unreadable."""
    simulated: bool
    started_utc: str
    """ISO 8601."""
    subject: str
    """What was measured: a database, a command line."""
    db: str
    device: str
    storage: str
    headline: Quantity
    label: str
    """What the headline is."""
    goes_on: bool = False
    """A measurement, or one that was killed and never analysed: its run.json has no checksums."""
    why: str = ""
    """Why it is unreadable."""

    @property
    def started(self) -> datetime | None:
        """When it began; None where the record does not say."""
        try:
            found = datetime.fromisoformat(self.started_utc)
        except ValueError:
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    @property
    def headline_text(self) -> str:
        """Value and interval with unit, and what it is; a dash where there is none."""
        known = not isinstance(self.headline, Missing)
        return f"{quantity_text(self.headline)} {self.label}" if known else quantity_text(self.headline)

    @property
    def size_bytes(self) -> int:
        """All files of the record [B]."""
        return sum(path.lstat().st_size for path in self.path.rglob("*") if path.is_file())


def find_runs(places: Sequence[Path]) -> Iterator[ListedRun]:
    """Every record in or below some directories, one after the other, those of one directory by name.

    Raises: RecordFault: one of the places is no directory.
    """
    for place in places:
        yield from map(listed, run_folders(place))


def run_folders(place: Path) -> Iterator[Path]:
    """The folder of every record in or below a directory, by name.

    Raises: RecordFault: it is no directory.
    """
    if not place.is_dir():
        raise RecordFault(f"{place} is no directory: name a record, or a folder of records such as runs")
    for folder, below, files in os.walk(place):
        below.sort()
        if "run.json" in files:
            below.clear()
            yield Path(folder)


def listed(directory: Path) -> ListedRun:
    """One record; only run.json and result.json of it are read."""
    try:
        with reading(directory):
            record = RunRecord.open(directory)
            return _of(record, directory)
    except RecordFault as fault:
        return ListedRun(
            directory, UNREADABLE, False, "", "", "", "", "", Missing(str(fault)), "", False, str(fault)
        )


def _of(record: RunRecord, directory: Path) -> ListedRun:
    run = record.run
    wording = wording_of(run)
    concluded = _concluded(record)
    table = wording.quantities_of(concluded.numbers) if concluded.numbers else wording.quantities
    shown = table.shown("headline") or table.shown("traced")
    headline: Quantity = Missing("no result")
    if concluded.numbers:
        headline = quantity(concluded.numbers, shown[0].key)
    return ListedRun(
        directory,
        record.status,
        record.simulated,
        run.found.started_utc or "",
        wording.subject(run),
        run.asked.db or "",
        run.asked.device or "",
        run.found.storage or run.asked.storage or "",
        headline,
        shown[0].headline or shown[0].traced,
        not record.is_finished,
    )


def _concluded(record: RunRecord) -> Conclusion:
    """result.json as the run left it; an empty one where there is none."""
    path = record.path("result.json")
    known = (record.run.checksums or {}).get("result.json")
    if not path.exists():
        return Conclusion()
    if known is not None and file_sha256(path) != known:
        raise RecordFault(f"{path}: changed since the run ended")
    return read_result(record.directory)
