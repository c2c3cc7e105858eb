"""The run record: one directory a run, whose run.json is correct at every moment.

run.json is written with status "partial" before anything else happens. It is always replaced as a whole (temporary
file, fsync, rename), so that a crash leaves the last correct state. It contains its own checksum and, at the end, the
checksums of all other files. A file that was changed afterwards is reported, and no figure is taken from it. Every file
of the record is listed in docs/reference/run-record.md.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, get_args

from opjoule.base.errors import NO_ROOM, RecordFault
from opjoule.base.files import file_sha256, on_the_medium
from opjoule.base.notices import Notice, NoticeKind, faults_of, withheld_by
from opjoule.base.passwords import all_masked
from opjoule.base.scripts import program
from opjoule.runs.record.directory import RESERVE, RESERVE_BYTES, RUN, check_files, check_inside, give_up_reserve, take
from opjoule.runs.record.json_file import DAMAGE, Schema, as_value, plain, read_json, run_3, visible, write_json
from opjoule.runs.record.run import Run, Status
from opjoule.runs.record.seals import SEALS, FileChecks, changed_since_sealed, checksums, close_unfinished

RUN_SCHEMA: Final = Schema("run", 4)
DIGEST = "digest"
"""Key of run.json: SHA-256 of everything else in it."""


class RunRecord:
    """A run's directory and its run.json."""

    def __init__(self, directory: Path, document: dict[str, Any]) -> None:
        """Raises: RecordFault: the document has content that no run writes."""
        self.directory = directory
        self.document = document
        """All of run.json, including unknown keys; changed only through `update`."""
        self._checks: FileChecks | None = None
        self._known: dict[str, str] = {}
        """SHA-256 of files that no longer change: raw files of a closed run, and files that are written as a whole."""
        self._run = self._read()

    @classmethod
    def create(cls, directory: Path, asked: Mapping[str, Any], *, simulated: bool) -> RunRecord:
        """A new record with status "partial"; `simulated`: any of its numbers comes from the simulated rig.

        Raises: BadInput: another record has, or has just taken, the directory; raw data is never overwritten.
        """
        take(directory)
        head = {"schema": plain(RUN_SCHEMA), "status": "partial", "simulated": simulated}
        record = cls(directory, {**head, "asked": plain(asked), "found": {}, "notices": []})
        try:
            record._write()
        except BaseException:
            give_up_reserve(directory)
            raise
        # Space in which run.json can still state why a run ended on a full medium; some systems offer none.
        with (directory / RESERVE).open("r+b") as file, suppress(OSError, AttributeError):
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        return record

    @classmethod
    def open(cls, directory: Path) -> RunRecord:
        """Opens a record, however its run ended. Raises: RecordFault: run.json is absent, corrupt, changed or newer."""
        path = directory / RUN
        check_files(directory)

        def check(contents: dict[str, Any]) -> None:
            if contents.get(DIGEST) != _digest_as_read(contents):
                raise RecordFault(
                    f"{path}: changed since the run wrote it (its checksum does not match): "
                    "no figure is taken from this record"
                )

        try:
            record = cls(directory, read_json(path, RUN_SCHEMA, check, {3: run_3}))
        except (FileNotFoundError, NotADirectoryError):
            raise RecordFault(f"{directory} is not a run record: it has no run.json") from None
        check_inside(directory, *(record.run.checksums or {}))
        if record.status == "complete" and not record.is_finished:
            raise RecordFault(f"{path} is corrupt: a complete run has checksums")
        return record

    @property
    def run(self) -> Run:
        """Current contents of run.json."""
        return self._run

    @property
    def status(self) -> Status:
        """How the run ended; "partial" while it is running and after a crash."""
        return self._run.status

    @property
    def simulated(self) -> bool:
        """True if any number of the run comes from the simulated rig."""
        return self._run.simulated

    @property
    def faults(self) -> list[Notice]:
        """Its faults."""
        return faults_of(self._run.notices)

    def path(self, name: str) -> Path:
        """Path of one file of the record, for example `path("operations.oplog")`."""
        return self.directory / name

    def update(self, **entries: object) -> None:
        """Sets entries of run.json; a mapping is merged into the existing one. Raises: TypeError: no such field."""
        if unknown := entries.keys() - set(Run.__struct_fields__):
            raise TypeError(f"run.json has no {', '.join(sorted(unknown))}")
        for key, value in plain(entries).items():
            old = self.document.get(key)
            merge = isinstance(old, dict) and isinstance(value, dict)
            self.document[key] = {**old, **value} if merge else value  # type: ignore[dict-item]
        self._write()

    def add_notices(self, *notices: Notice) -> None:
        """Adds those notices that the record does not have yet.

        On a full medium, they are written into the reserved space. If they cannot be written at all, they are kept for
        the next write, which then raises.
        """
        new = [notice for notice in dict.fromkeys(notices) if notice not in self._run.notices]
        if not new:
            return
        self.document["notices"] = plain([*self._run.notices, *new])
        try:
            self._write()
        except OSError as error:
            if error.errno in NO_ROOM:
                give_up_reserve(self.directory)
            with suppress(OSError):
                self._write()

    @property
    def withheld(self) -> dict[str, str]:
        """Group of figures -> the first fault that makes them wrong."""
        return withheld_by(self._run.notices)

    def written(self, *paths: Path) -> None:
        """Computes the SHA-256 of complete files that will not change; `finish` then has less to read."""
        for path in paths:
            self._known[path.relative_to(self.directory).as_posix()] = file_sha256(path)

    def finish(self, status: Status) -> None:
        """Writes the final status and the SHA-256 of every file; none of these files may change afterwards."""
        if status not in get_args(Status):
            raise ValueError(f"status '{status}' is none of {', '.join(get_args(Status))}")
        give_up_reserve(self.directory)
        self.document.pop("checksums", None)
        self._checks = FileChecks(self.directory, {})
        known = checksums(self.directory, self._known)
        on_the_medium(self.directory / name for name in known)  # before run.json states that they exist
        self.update(checksums=known, status=status)

    @property
    def is_finished(self) -> bool:
        """False while the run is in progress, and after its program was killed."""
        return self._run.checksums is not None

    def verify(self) -> list[str]:
        """One line for each file that is now missing or differs from its checksum or last seal."""
        self._checks = None
        return self.altered

    @property
    def altered(self) -> list[str]:
        """Damaged files. The files of a finished run are checked only once."""
        if self.is_finished:
            return list({**self._checked().all(), **self._run.damaged}.values())
        return changed_since_sealed(self.directory)

    def intact(self, name: str) -> Path:
        """Path of a file that is unchanged since the run. Raises: RecordFault: it was changed, or is missing."""
        for file in (name, f"raw/{SEALS}") if name.startswith("raw/") else (name,):
            if problem := self._run.damaged.get(file) or self._checked().of(file):
                raise RecordFault(f"{problem}; no figure is taken from it")
        return self.directory / name

    def check_beside(self) -> None:
        """Begins to compare all files with their checksums in background threads, to shorten later checks."""
        self._checked().begin()

    def raw_files(self, pattern: str) -> list[Path]:
        """Raw files that match a pattern, in order. Raises: RecordFault: one was changed since it was recorded."""
        paths = sorted((self.directory / "raw").glob(pattern))
        return [self.intact(path.relative_to(self.directory).as_posix()) for path in paths]

    def close_raw(self) -> None:
        """Cuts the raw files of a killed run at their last seals; damage and losses become faults."""
        closed = close_unfinished(self.directory)
        self.update(damaged=closed.damaged)
        self._known, self._checks = {**self._known, **closed.sha256}, None
        self.add_notices(*(Notice(NoticeKind.FAULT, line) for line in (*closed.damaged.values(), *closed.said)))

    def _checked(self) -> FileChecks:
        """Comparison of the files with their checksums; made once."""
        if self._checks is None:
            self._checks = FileChecks(self.directory, self._run.checksums or {})
        return self._checks

    def _read(self) -> Run:
        return as_value(self.document, Run, self.directory / "run.json")

    def _write(self) -> None:
        self.document = visible(all_masked(self.document))
        self._run = self._read()
        self.document[DIGEST] = _digest(self.document)
        write_json(self.directory / "run.json", self.document)


@contextmanager
def reading(directory: Path) -> Iterator[None]:
    """Context for reading a record: damaged content raises RecordFault with one line instead of a traceback."""
    try:
        yield
    except DAMAGE as fault:
        detail = next(iter(str(fault).splitlines()), "")
        raise RecordFault(
            f"{directory} is damaged: it does not have the content of a run record ({type(fault).__name__}: "
            f"{detail:.120}); '{program('verify')}' names files that were changed"
        ) from fault
    except NotImplementedError as fault:
        raise RecordFault(f"{directory} is damaged: {str(fault).splitlines()[0]:.120}") from fault


def with_digest(contents: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of a run.json that was changed on purpose, with a new checksum."""
    return {**contents, DIGEST: _digest(contents)}


def _digest(contents: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the digest itself, in one fixed notation."""
    return _digest_as_read(json.loads(json.dumps(contents)))  # keys become text, tuples lists


def _digest_as_read(contents: Mapping[str, Any]) -> str:
    """The same of contents that were read from JSON."""
    rest = {key: value for key, value in contents.items() if key != DIGEST}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), check_circular=False)
    return hashlib.sha256(text.encode()).hexdigest()
