"""List of records, with one entry each: subject, start, status, headline and cautions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from opjoule.errors import RecordFault
from opjoule.opened.answer import Answer, open_answer
from opjoule.opened.quantities import quantity_text
from opjoule.record.directory import is_held
from opjoule.record.json_file import plain
from opjoule.record.notes import NO_NOTES, Notes, read_notes
from opjoule.record.run_record import RunRecord, reading
from opjoule.units import Missing, Quantity, from_json

UNREADABLE: Final = "unreadable"
"""Status of a record without a readable run.json."""
ONE_RUN: Final = "one run: the interval does not include the spread between runs"
TOO_SHORT: Final = "too short"


class Caution(Struct, frozen=True):
    """Something to know before the headline is believed."""

    kind: str
    """going on, unfinished, fault, altered, one run, too short, or warning."""
    line: str
    """The full text."""


class ListedRun(Struct, frozen=True):
    """One entry of the list; texts are empty if the record does not have them."""

    path: Path
    status: str
    """complete, partial, failed, or unreadable."""
    title: str
    """Subject, board and medium, with SIMULATED for a simulated run."""
    number: dict[str, Any]
    """The headline as a number of result.json."""
    label: str = ""
    """Name of the headline."""
    simulated: bool = False
    started_utc: str = ""
    """ISO 8601."""
    subject: str = ""
    """Database or command line that was measured."""
    db: str = ""
    device: str = ""
    storage: str = ""
    goes_on: bool = False
    """Whether the measurement is running, or was killed and never analysed: run.json has no checksums yet."""
    why: str = ""
    """Reason why it is unreadable."""
    cautions: tuple[Caution, ...] = ()
    notes: Notes = NO_NOTES
    """The user's notes."""

    @property
    def headline(self) -> Quantity:
        """The headline with its uncertainty, or the reason why there is none."""
        return from_json(self.number)

    @property
    def started(self) -> datetime | None:
        """Start of the run; None if the record does not say."""
        try:
            moment = datetime.fromisoformat(self.started_utc)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def headline_text(self) -> str:
        """Value and interval with unit and label; a dash if there is none."""
        known = not isinstance(self.headline, Missing)
        return f"{quantity_text(self.headline)} {self.label}" if known else quantity_text(self.headline)

    @property
    def size_bytes(self) -> int:
        """Total size of the record's files [B]."""
        return sum(path.lstat().st_size for path in self.path.rglob("*") if path.is_file())


def find_runs(places: Sequence[Path]) -> Iterator[ListedRun]:
    """Every record in or below some directories, sorted by name within each. Raises: RecordFault: not a directory."""
    for place in places:
        yield from map(listed, run_folders(place))


def run_folders(place: Path) -> Iterator[Path]:
    """Folder of every record in or below a directory, sorted by name. Raises: RecordFault: it is not a directory."""
    if not place.is_dir():
        raise RecordFault(f"{place} is not a directory: name a record, or a folder of records such as runs")
    for folder, below, files in os.walk(place):
        below.sort()
        if "run.json" in files:
            below.clear()
            yield Path(folder)


def listed(directory: Path) -> ListedRun:
    """Reads one entry; opens only run.json, result.json and notes.json."""
    try:
        with reading(directory):
            run = _of(open_answer(RunRecord.open(directory)), directory)
    except (RecordFault, OSError) as fault:
        why = str(fault)
        run = ListedRun(directory, UNREADABLE, directory.name, {"value": None, "reason": why}, why=why)
    try:
        return replace(run, notes=read_notes(directory))
    except (RecordFault, OSError) as fault:
        return replace(run, cautions=(*run.cautions, Caution("warning", str(fault))))


def _of(answer: Answer, directory: Path) -> ListedRun:
    run, record = answer.run, answer.record
    shown = (answer.quantities.shown("headline") or answer.quantities.shown("traced"))[0]
    headline = answer.quantity(shown.key) if answer.result else Missing(answer.problem or "no result")
    return ListedRun(
        directory,
        record.status,
        answer.title,
        plain(headline),
        shown.headline or shown.traced,
        record.simulated,
        run.found.started_utc or "",
        answer.wording.subject(run),
        run.asked.db or "",
        run.asked.device or "",
        run.found.storage or run.asked.storage or "",
        not record.is_finished,
        cautions=tuple(_cautions(answer)),
    )


def _cautions(answer: Answer) -> Iterator[Caution]:
    """Cautions of a record, the most serious first."""
    record = answer.record
    if not record.is_finished:
        killed = f"its program was killed: 'host/measure.py report {record.directory}' analyses it"
        goes_on = is_held(record.directory)
        yield Caution("going on", "the measurement goes on") if goes_on else Caution("unfinished", killed)
    elif record.status == "partial":
        yield Caution("unfinished", "the run ended early")
    elif record.status == "failed" and not record.faults:
        yield Caution("fault", "the run failed; its record does not say why")
    if answer.problem and record.path("result.json").exists():
        yield Caution("altered", answer.problem)
    for line in record.faults:
        yield Caution("fault", line)
    for line in (*answer.run.found.warnings, *answer.concluded.warnings):
        yield Caution(TOO_SHORT if TOO_SHORT in line else "warning", line)
    if answer.concluded.repeats == 1:
        yield Caution("one run", ONE_RUN)
