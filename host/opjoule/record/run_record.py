"""The run record: one directory a run, whose run.json is true at every moment.

run.json is written with status "partial" before anything else happens, and only ever replaced as a whole
(temporary file, fsync, rename), so that a crash at any moment leaves the last true state.
It carries a checksum of its own, and at the end those of all other files: what was changed afterwards is told, and no
figure is taken from it. Every file of the record is listed in docs/reference/run-record.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from opjoule.errors import NewerSchema, RecordFault
from opjoule.files import file_sha256
from opjoule.record.directory import fill_reserve, give_up_reserve, held, take
from opjoule.record.json_file import read_json, write_json
from opjoule.record.seals import SEALS, changed_since_sealed, close_unfinished
from opjoule.system_errors import NO_ROOM

RUN_VERSION = 3
"""Version 1 had checksums of its raw files alone, and neither seals nor a checksum of run.json. Up to version 2 the
error bounds were those of a shunt's voltage."""
DIGEST = "digest"
"""Key of run.json: SHA-256 of everything else in it."""
NOT_COVERED = (
    "run.json",
    "report.html",
    "simulator-truth.json",
    "simulator-course.csv",
    "simulator-imperfections.json",
)
"""Files without a checksum: the first has its own, the second can be made anew, the rest belongs to the simulator."""
Status = Literal["partial", "complete", "failed"]
STATUSES: tuple[Status, ...] = ("partial", "complete", "failed")


class RunRecord:
    """A run's directory and the contents of its run.json."""

    def __init__(self, directory: Path, contents: dict[str, Any]) -> None:
        self.directory = directory
        self._contents = contents
        self._problems: dict[str, str] | None = None

    @classmethod
    def create(cls, directory: Path, asked: Mapping[str, Any], *, simulated: bool) -> RunRecord:
        """A new record with status "partial".

        Args:
            asked: what the user asked for, JSON values.
            simulated: True if any number of the run comes from the simulated rig.
        Raises: BadInput: another record has the directory, or is about to; raw data is never overwritten.
        """
        take(directory)
        record = cls(
            directory,
            {
                "schema": {"name": "run", "version": RUN_VERSION},
                "status": "partial",
                "simulated": simulated,
                "asked": dict(asked),
                "found": {},
                "faults": [],
            },
        )
        try:
            record._write()
        except BaseException:
            give_up_reserve(directory)
            raise
        fill_reserve(directory)
        return record

    @classmethod
    def open(cls, directory: Path) -> RunRecord:
        """The record in a directory, whatever state its run ended in.

        Raises: RecordFault: no run.json, or one that is corrupt, was changed, or is of a newer schema.
        """
        path = directory / "run.json"
        try:
            contents = read_json(path)
        except (FileNotFoundError, NotADirectoryError):
            raise RecordFault(f"{directory} is not a run record: it has no run.json") from None
        _check(contents, path)
        return cls(directory, contents)

    @property
    def status(self) -> Status:
        """How the run ended; "partial" while it goes on and after a crash."""
        status: Status = self._contents["status"]
        return status

    @property
    def simulated(self) -> bool:
        """True if any number of the run comes from the simulated rig."""
        return bool(self._contents["simulated"])

    @property
    def contents(self) -> dict[str, Any]:
        """Everything in run.json; change it through `update` only."""
        return self._contents

    @property
    def faults(self) -> list[str]:
        """What went wrong, one line each."""
        return [str(fault) for fault in self._contents.get("faults", [])]

    def path(self, name: str) -> Path:
        """Path of one file of the record, for example `path("operations.oplog")`."""
        return self.directory / name

    def update(self, **entries: object) -> None:
        """Sets top-level entries of run.json; a mapping is merged into the mapping that is there."""
        for key, value in entries.items():
            old = self._contents.get(key)
            merge = isinstance(old, dict) and isinstance(value, Mapping)
            self._contents[key] = {**old, **value} if merge else value  # type: ignore[dict-item]
        self._write()

    def add_fault(self, line: str, withholds: Sequence[str] = ()) -> None:
        """Adds one line to the list of what went wrong, on a full medium with the room that was kept for it.

        Where it cannot be written at all, it waits for the next writing; that one raises.

        Args:
            withholds: groups of figures (record/withheld.py) that it makes wrong.
        """
        self._contents["faults"] = [*self.faults, line]
        for group in withholds:
            self._contents.setdefault("withheld", {}).setdefault(group, line)
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
        return dict(self._contents.get("withheld", {}))

    def finish(self, status: Status) -> None:
        """The last word on the run: final status and the SHA-256 of every file; none of them changes from then on."""
        if status not in STATUSES:
            raise ValueError(f"status '{status}' is none of {', '.join(STATUSES)}")
        give_up_reserve(self.directory)
        self._contents.pop("checksums", None)
        self._problems = dict(self._contents.get("damaged", {}))
        self.update(checksums=checksums(self.directory), status=status)

    @property
    def is_finished(self) -> bool:
        """False while the run goes on, and when its program was killed."""
        return "checksums" in self._contents

    @contextmanager
    def held(self) -> Iterator[None]:
        """Marks the record as being written by this process, until the end of the block or of the process.

        Raises: BadInput: another process holds it.
        """
        with held(self.directory):
            yield

    def verify(self) -> list[str]:
        """One line for each file that is missing or differs from its checksum; empty when all is well.

        Of a run without an end it is the raw files that are compared, with their last seals.
        """
        if self.is_finished:
            self._problems = None
            return list(self._changed().values())
        return changed_since_sealed(self.directory) if self.has_seals else []

    def intact(self, name: str) -> Path:
        """Path of a file of the record that is as the run left it, or was there in time for no checksum.

        Raises: RecordFault: it was changed since, or is missing.
        """
        problems = self._changed()
        problem = problems.get(name) or (name.startswith("raw/") and problems.get(f"raw/{SEALS}"))
        if problem:
            raise RecordFault(f"{problem}; no figure is taken from it")
        return self.directory / name

    def raw_files(self, pattern: str) -> list[Path]:
        """Raw files by a pattern, in order. Raises: RecordFault: one was changed since it was recorded."""
        found = sorted((self.directory / "raw").glob(pattern))
        return [self.intact(path.relative_to(self.directory).as_posix()) for path in found]

    def close_raw(self) -> None:
        """Ends the raw files of a run that was killed at their last seals; damage and losses become faults."""
        if not self.has_seals:
            return
        said, damaged = close_unfinished(self.directory)
        self.update(damaged=damaged)
        self._problems = None
        for line in [*damaged.values(), *said]:
            self.add_fault(line)

    @property
    def has_seals(self) -> bool:
        """False for records of an earlier version."""
        return int(self._contents["schema"]["version"]) > 1

    def _changed(self) -> dict[str, str]:
        """What is wrong with each file that is not as its checksum says; looked at once."""
        if self._problems is None:
            known: dict[str, str] = self._contents.get("checksums", {})
            checked = {name: _verify_file(self.directory / name, digest) for name, digest in known.items()}
            changed = {name: problem for name, problem in checked.items() if problem}
            self._problems = {**changed, **self._contents.get("damaged", {})}
        return self._problems

    def _write(self) -> None:
        self._contents[DIGEST] = _digest(self._contents)
        write_json(self.directory / "run.json", self._contents)


@contextmanager
def reading(directory: Path) -> Iterator[None]:
    """Around whatever reads a record: content that no run writes is one line, not a traceback.

    Raises: RecordFault: in the place of what the content did to the reader.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as fault:
        detail = next(iter(str(fault).splitlines()), "")
        raise RecordFault(
            f"{directory} is damaged: it holds what no run writes ({type(fault).__name__}: {detail:.120}); "
            "'measure.py verify' names files that were changed"
        ) from fault
    except NotImplementedError as fault:
        raise RecordFault(f"{directory} is damaged: {str(fault).splitlines()[0]:.120}") from fault


def _digest(contents: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the digest itself, in one writing."""
    rest = {key: value for key, value in contents.items() if key != DIGEST}
    as_read = json.loads(json.dumps(rest))  # keys are text and tuples are lists then, as they are when read
    text = json.dumps(as_read, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def checksums(directory: Path) -> dict[str, str]:
    """SHA-256 of every file of a record, raw and derived, by its path in it; run.json has its own."""
    names = {path: path.relative_to(directory).as_posix() for path in sorted(directory.rglob("*"))}
    return {
        name: file_sha256(path)
        for path, name in names.items()
        if name not in NOT_COVERED and path.suffix != ".tmp" and path.is_file()
    }


def _verify_file(path: Path, digest: str) -> str | None:
    try:
        return None if file_sha256(path) == digest else f"{path}: changed since the run ended"
    except FileNotFoundError:
        return f"{path}: missing"
    except OSError as fault:
        return f"{path}: cannot be read ({fault.strerror})"


_TYPES: dict[str, type | tuple[type, ...]] = {
    "simulated": bool,
    "asked": dict,
    "found": dict,
    "faults": list,
    "checksums": dict,
    "damaged": dict,
    "phases": list,
    "clock_maps": dict,
    "loader": dict,
    "sensor": dict,
    "capture": dict,
}
"""Entries of run.json whose type others rely on."""


def _check(contents: Any, path: Path) -> None:
    """Raises RecordFault for a run.json that is none, is of a newer schema or was changed."""
    try:
        name, version = contents["schema"]["name"], int(contents["schema"]["version"])
        status, _ = contents["status"], contents["simulated"]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise RecordFault(f"{path} is corrupt: schema, status or simulated missing") from None
    if name != "run":
        raise RecordFault(f"{path}: holds '{name}', expected 'run'")
    if version > RUN_VERSION:
        raise NewerSchema(path, name, version, RUN_VERSION)
    if version > 1 and contents.get(DIGEST) != _digest(contents):
        raise RecordFault(
            f"{path}: changed since the run wrote it: its checksum does not match; no figure is taken from this record"
        )
    if status not in STATUSES:
        raise RecordFault(f"{path} is corrupt: status '{status}' is none of {', '.join(STATUSES)}")
    for key, wanted in _TYPES.items():
        if key in contents and not isinstance(contents[key], wanted):
            raise RecordFault(f"{path} is corrupt: '{key}' is {contents[key]!r:.60}")
