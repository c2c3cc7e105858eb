"""The run record: one directory a run, whose run.json is true at every moment.

run.json is written with status "partial" before anything else happens, and only ever replaced as a whole
(temporary file, fsync, rename), so that a crash at any moment leaves the last true state.
Every file of the record is listed in docs/reference/run-record.md.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from opjoule.errors import BadInput, RecordFault

RUN_VERSION = 1
Status = Literal["partial", "complete", "failed"]
STATUSES: tuple[Status, ...] = ("partial", "complete", "failed")


class RunRecord:
    """A run's directory and the contents of its run.json."""

    def __init__(self, directory: Path, contents: dict[str, Any]) -> None:
        self.directory = directory
        self._contents = contents

    @classmethod
    def create(cls, directory: Path, asked: Mapping[str, Any], *, simulated: bool) -> RunRecord:
        """A new record with status "partial".

        Args:
            asked: what the user asked for, JSON values.
            simulated: True if any number of the run comes from the simulated rig.
        Raises: BadInput: the directory holds a record already; raw data is never overwritten.
        """
        if (directory / "run.json").exists():
            raise BadInput(f"{directory} already holds a run record: choose another --out")
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise BadInput(f"cannot create {directory}: {fault.strerror}: choose another --out") from None
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
        record._write()
        return record

    @classmethod
    def open(cls, directory: Path) -> RunRecord:
        """The record in a directory, whatever state its run ended in.

        Raises: RecordFault: no run.json, or one that is corrupt or of a newer schema.
        """
        path = directory / "run.json"
        try:
            contents = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RecordFault(f"{directory} is not a run record: it has no run.json") from None
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as fault:
            raise RecordFault(f"{path} is corrupt: {str(fault).splitlines()[0]}") from None
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

    def add_fault(self, line: str) -> None:
        """Adds one line to the list of what went wrong."""
        self._contents["faults"] = [*self.faults, line]
        self._write()

    def finish(self, status: Status) -> None:
        """The last word on the run: final status and the SHA-256 of every raw file."""
        if status not in STATUSES:
            raise ValueError(f"status '{status}' is none of {', '.join(STATUSES)}")
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
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(f"{self.directory} is being written: its measurement still runs") from None
            yield
        finally:
            os.close(descriptor)

    def verify(self) -> list[str]:
        """One line for each raw file that is missing or differs from its checksum; empty when all is well."""
        known: dict[str, str] = self._contents.get("checksums", {})
        checked = [_verify_file(self.directory / name, digest) for name, digest in known.items()]
        return [problem for problem in checked if problem]

    def _write(self) -> None:
        write_json(self.directory / "run.json", self._contents)


def write_json(path: Path, contents: Mapping[str, Any]) -> None:
    """Replaces a JSON file as a whole: temporary file, fsync, rename, fsync of the directory."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(contents, file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksums(directory: Path) -> dict[str, str]:
    """SHA-256 of each raw file, by its path in the record: everything under raw/ and every operation log."""
    raw = sorted((directory / "raw").rglob("*")) if (directory / "raw").is_dir() else []
    files = [path for path in [*raw, *sorted(directory.glob("*.oplog"))] if path.is_file()]
    return {path.relative_to(directory).as_posix(): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify_file(path: Path, digest: str) -> str | None:
    if not path.exists():
        return f"{path}: missing"
    return None if _sha256(path) == digest else f"{path}: changed since the run ended"


def _check(contents: dict[str, Any], path: Path) -> None:
    try:
        name, version = contents["schema"]["name"], int(contents["schema"]["version"])
        status, _ = contents["status"], contents["simulated"]
    except (KeyError, TypeError, ValueError):
        raise RecordFault(f"{path} is corrupt: schema, status or simulated missing") from None
    if name != "run" or version > RUN_VERSION:
        raise RecordFault(f"{path}: schema {name} version {version}, this program reads up to {RUN_VERSION}")
    if status not in STATUSES:
        raise RecordFault(f"{path} is corrupt: status '{status}' is none of {', '.join(STATUSES)}")
