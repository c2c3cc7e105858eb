"""List of records, with one entry each: subject, start, status, headline and notices; and its index in a file."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from opjoule.base.errors import RecordFault
from opjoule.base.files import read_regular, rewriting
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.scripts import program
from opjoule.base.settings import MEDIUM
from opjoule.base.units import Quantity, missing
from opjoule.results.rounding import quantity_text
from opjoule.runs.record.directory import NO_NOTES, NOTES, Notes, check_place, is_held, read_notes

if TYPE_CHECKING:
    from opjoule.results.answer import Answer

UNREADABLE: Final = "unreadable"
"""Status of a record without a readable run.json."""
ONE_RUN: Final = Notice(NoticeKind.ONE_RUN, "the interval does not include the spread between runs")


class ListedRun(Struct, frozen=True):
    """One entry of the list; texts are empty if the record does not have them."""

    path: Path
    status: str
    """complete, partial, failed, or unreadable."""
    title: str
    """Subject, board and medium, with SIMULATED for a simulated run."""
    headline: Quantity
    """The headline with its uncertainty, or the reason why there is none."""
    label: str = ""
    """Name of the headline."""
    simulated: bool = False
    started_utc: str = ""
    """ISO 8601."""
    subject: str = ""
    """Database or command line that was measured."""
    db: str = ""
    device: str = ""
    medium: str = ""
    goes_on: bool = False
    """Whether the measurement is running, or was killed and never analysed: run.json has no checksums yet."""
    why: str = ""
    """Reason why it is unreadable."""
    notices: tuple[Notice, ...] = ()
    """What to know before the headline is believed."""
    notes: Notes = NO_NOTES
    """The user's notes."""

    @property
    def started(self) -> datetime | None:
        """Start of the run; None if the record does not say."""
        try:
            moment = datetime.fromisoformat(self.started_utc)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def labels(self) -> dict[str, str]:
        """Database, board and medium, under the names of their options."""
        return {"db": self.db, "device": self.device, MEDIUM: self.medium}

    @property
    def headline_text(self) -> str:
        """Value and interval with unit and label; a dash if there is none."""
        known = self.headline.value is not None
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
    check_place(place)
    for folder, below, files in os.walk(place):
        below.sort()
        if "run.json" in files:
            below.clear()
            yield Path(folder)


def listed(directory: Path) -> ListedRun:
    """Reads one entry; opens only run.json, result.json and notes.json."""
    # Slow to load, and not needed for records that are in the index.
    from opjoule.results.answer import open_answer  # noqa: PLC0415
    from opjoule.runs.record.run_record import RunRecord, reading  # noqa: PLC0415

    try:
        with reading(directory):
            run = _of(open_answer(RunRecord.open(directory)), directory)
    except (RecordFault, OSError) as fault:
        why = str(fault)
        run = ListedRun(directory, UNREADABLE, directory.name, missing(why or UNREADABLE), why=why)
    try:
        return replace(run, notes=read_notes(directory))
    except (RecordFault, OSError) as fault:
        return replace(run, notices=(*run.notices, Notice(NoticeKind.NOTE, str(fault))))


def _of(answer: "Answer", directory: Path) -> ListedRun:
    run, record = answer.run, answer.record
    shown = (answer.quantities.shown("headline") or answer.quantities.shown("traced"))[0]
    headline = answer.quantity(shown.key).stated if answer.result else missing(answer.problem or "no result")
    return ListedRun(
        directory,
        record.status,
        answer.title,
        headline,
        shown.headline or shown.traced,
        record.simulated,
        run.found.started_utc or "",
        answer.wording.subject(run),
        run.asked.db or "",
        run.asked.device or "",
        run.found.medium or run.asked.medium or "",
        not record.is_finished,
        notices=tuple(_notices(answer)),
    )


def _notices(answer: "Answer") -> Iterator[Notice]:
    """Notices of a record, the most serious first."""
    record, notices = answer.record, answer.warnings
    if not record.is_finished:
        notices = [notice for notice in notices if notice.kind is not NoticeKind.PARTIAL]
        again = f"'{program('report')} {record.directory}' analyses it"
        killed = Notice(NoticeKind.PARTIAL, "its program was killed", again)
        yield Notice(NoticeKind.GOING_ON, "the measurement goes on") if is_held(record.directory) else killed
    if answer.problem and record.path("result.json").exists():
        yield Notice(NoticeKind.ALTERED, answer.problem)
    yield from notices
    if answer.concluded.repeats == 1:
        yield ONE_RUN


INDEX: Final = "runs.index"
VERSION: Final = 5
WATCHED: Final = ("run.json", "result.json", NOTES)
KEEP_AT_ONCE: Final = 500
"""The index is written after this many newly read records, in case the program ends before all are read."""

INDEX_BYTES: Final = 1 << 28
"""Maximum size of the index; 10,000 records take some 10 MB."""

Mark = tuple[tuple[int, int, int], ...]
"""Inode, size [B] and time of change [ns] of each watched file; zeros if there is no such file."""


class _Entry(msgspec.Struct):
    mark: Mark
    run: ListedRun


class _Kept(msgspec.Struct):
    version: int
    entries: dict[str, _Entry]


_DECODER: Final = msgspec.json.Decoder(_Kept, dec_hook=lambda kind, text: kind(text))
"""Decoder that converts texts to paths."""


class RunIndex:
    """The records in or below one folder, whose entries are kept in one file so that a list is fast.

    The index contains no data of its own. An entry is valid as long as run.json, result.json and notes.json of its
    record are the same files (inode, size, time of change); other records are read again. An index that is missing,
    damaged or from another version of this program is made again. Without write permission there is no index. May be
    used from several threads.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.total = 0
        """Number of records that `runs` yields; known once it has yielded the first."""
        self._lock = threading.Lock()
        self._known: dict[str, _Entry] | None = None

    def places(self) -> dict[str, Path]:
        """Record's path below the folder -> its directory. Raises: RecordFault: the folder is not a directory."""
        return {self._name(path): path for path in run_folders(self.folder)}

    def runs(self) -> Iterator[tuple[str, ListedRun]]:
        """Yields every record with its name, in the order of `places`; only new and changed records are read.

        The index is updated when the iterator is exhausted. Raises: RecordFault: the folder is not a directory.
        """
        with self._lock:
            if self._known is None:
                self._known = self._read()
            known, current, unsaved = self._known, {}, 0
            places = self.places()
            self.total = len(places)
            for name, path in places.items():
                mark = _mark(path)
                # A running record may end, or be killed, without a change of these files.
                if name in known and known[name].mark == mark and not known[name].run.goes_on:
                    current[name] = known[name]
                else:
                    current[name] = known[name] = _Entry(mark, listed(path))
                    unsaved += 1
                yield name, current[name].run
                if unsaved >= KEEP_AT_ONCE:
                    self._keep(known)
                    unsaved = 0
            gone = known.keys() - current.keys()
            self._known = current
            if unsaved or gone:
                self._keep(current)

    def _name(self, path: Path) -> str:
        return path.resolve().name if path == self.folder else path.relative_to(self.folder).as_posix()

    def _read(self) -> dict[str, _Entry]:
        try:
            kept = _DECODER.decode(read_regular(self.folder / INDEX, INDEX_BYTES))
        except (OSError, msgspec.MsgspecError, RecursionError):
            return {}
        entries = kept.entries.items() if kept.version == VERSION else ()
        return {name: _Entry(entry.mark, replace(entry.run, path=self.folder / name)) for name, entry in entries}

    def _keep(self, known: dict[str, _Entry]) -> None:
        """Writes the index beside the records; there is none if the folder itself is a record."""
        if (self.folder / "run.json").exists():
            return
        with suppress(OSError), rewriting(self.folder / INDEX) as file:
            file.write(msgspec.json.encode(_Kept(VERSION, known), enc_hook=str))


def _mark(path: Path) -> Mark:
    stats = []
    for name in WATCHED:
        try:
            stat = (path / name).stat()
            stats.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            stats.append((0, 0, 0))
    return tuple(stats)
