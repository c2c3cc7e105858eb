"""A record's directory: checked before a new record, created once, held by one process at a time; the user's notes.

The notes (notes.json) may change after the run has ended; no figure depends on them.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from opjoule.base.errors import BadInput, RecordFault
from opjoule.base.files import NOT_REGULAR
from opjoule.runs.record.json_file import Schema, as_value, plain, read_json, write_json

try:
    import fcntl
except ImportError:  # Windows, where records are only read
    fcntl = None  # type: ignore[assignment]

RUN: Final = "run.json"
RESERVE: Final = "reserve.tmp"
"""File created by the process that takes the directory; it reserves the space that run.json may need at the end."""
RESERVE_BYTES: Final = 1 << 17
"""Larger than run.json, whose new version is written before it replaces the old one."""


def check_files(directory: Path) -> None:
    """Checks that a record consists of regular files and folders, so that it is read without leaving its directory.

    Raises: RecordFault: it contains a link, a FIFO or a device.
    """
    folders = [str(directory)]
    for folder in folders:
        try:
            entries = list(os.scandir(folder))
        except OSError:  # absent, or unreadable: its files cannot be opened either
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif not entry.is_file(follow_symlinks=False) and os.path.lexists(entry.path):
                raise RecordFault(f"{entry.path} {NOT_REGULAR}: the record is not opened")


def check_inside(directory: Path, *names: str) -> None:
    """Checks names of files that a record states. Raises: RecordFault: one leads out of the record's directory."""
    for name in names:
        if _leads_out(name):
            raise RecordFault(f"{directory} is corrupt: {name!r:.80} is not a file of the record")


@lru_cache(maxsize=1024)
def _leads_out(name: str) -> bool:
    path = PurePath(name)
    return not path.parts or ".." in path.parts or "\0" in name or path.is_absolute()


def check_out(directory: Path) -> None:
    """Checks that a directory can take a new record: absent or empty, and writable. Raises: BadInput: it cannot."""
    try:
        _check_free(directory)
        if directory.exists() and not directory.is_dir():
            raise BadInput(f"{directory} is a file, but a record needs a directory: choose another --out")
        if directory.is_dir() and any(directory.iterdir()):
            why = "is not empty, but a record needs a directory of its own"
            raise BadInput(f"{directory} {why}: choose another --out")
    except OSError as fault:
        raise BadInput(f"{directory}: {fault.strerror}: choose another --out") from None
    check_folder(directory)


def check_folder(directory: Path) -> None:
    """Checks that a directory is writable or can be created. Raises: BadInput: it is not, with the reason."""
    folders = directory, *directory.absolute().parents
    try:
        there = next((folder for folder in folders if _exists(folder)), directory)
    except OSError as fault:
        raise BadInput(f"{directory}: {fault.strerror}: choose another --out") from None
    if not there.is_dir():
        raise BadInput(f"{directory} cannot be created, because {there} is a file: choose another --out")
    try:
        with TemporaryDirectory(prefix=".opjoule-", dir=there):
            pass
    except OSError as fault:
        why = f"{there}: {fault.strerror}"
        raise BadInput(f"{directory} cannot be written: {why}: choose another --out") from None


def check_place(place: Path) -> None:
    """Checks that a place can be searched for records. Raises: RecordFault: it is not a directory."""
    if not place.is_dir():
        raise RecordFault(f"{place} is not a directory: name a record, or a folder of records such as runs")


def _check_free(directory: Path) -> None:
    if _exists(directory / RUN):
        raise BadInput(f"{directory} already contains a run record: choose another --out")


def _exists(path: Path) -> bool:
    """Whether a file or directory exists. Path.exists() hides an impossible name since Python 3.14. Raises: OSError."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def free_directory(base: Path, taken: Collection[str] = ()) -> Path:
    """The first of `base`, `base-2`, `base-3`, ... that does not exist and is not in `taken`; it is not created."""
    return next(place for place in _numbered(base) if place.name not in taken and not place.exists())


@contextmanager
def made_directory(base: Path) -> Iterator[Path]:
    """Creates the first of `base`, `base-2`, ... that does not exist yet; removes it at the end if it stayed empty."""
    base.parent.mkdir(parents=True, exist_ok=True)
    for directory in _numbered(base):
        with suppress(FileExistsError):
            directory.mkdir()
            break
    try:
        yield directory
    finally:
        with suppress(OSError):
            directory.rmdir()


def _numbered(base: Path) -> Iterator[Path]:
    yield base
    for number in itertools.count(2):
        yield base.with_name(f"{base.name}-{number}")


def take(directory: Path) -> None:
    """Creates a directory and takes it for a new record; only one process can. Raises: BadInput: it is not suitable."""
    _check_free(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / RESERVE).touch(exist_ok=False)
    except OSError as fault:
        why = f"cannot create {directory}: {fault.strerror}"
        if isinstance(fault, FileExistsError) and directory.is_dir():
            why = f"{directory} is in use by another measurement, or belongs to one that was killed"
        raise BadInput(f"{why}: choose another --out") from None
    try:
        _check_free(directory)  # again: a record may have begun and ended in between
    except BadInput:
        give_up_reserve(directory)
        raise


def give_up_reserve(directory: Path) -> None:
    """Frees the reserved space."""
    (directory / RESERVE).unlink(missing_ok=True)


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Marks a directory as being written until the block or the process ends.

    Raises: BadInput: another process holds it.
    """
    if fcntl is None:  # no measurement runs there
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"{directory} is being written: its measurement is still running") from None
        yield
    finally:
        os.close(descriptor)


def is_held(directory: Path) -> bool:
    """True while a process writes the record in a directory."""
    try:
        with held(directory):
            return False
    except BadInput:
        return True


INDEX: Final = "conditions.json"


def has_index(directory: Path) -> bool:
    """True if the directory contains runs in several conditions, not a single record."""
    return (directory / INDEX).exists()


NOTES: Final = "notes.json"
NOTES_SCHEMA: Final = Schema("notes", 1)
LONGEST: Final = 2000
"""Maximum number of characters of a note."""
_TAG: Final = re.compile(r"[^\W_][\w.:/+-]{0,39}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Notes(Struct, frozen=True):
    """A line of text and tags; empty if the user wrote none."""

    text: str = ""
    tags: tuple[str, ...] = ()
    """In alphabetical order, each once."""

    def tagged(self, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Notes:
        """The notes with other tags. Raises: BadInput: a tag has characters that a tag cannot have."""
        added = list(add)
        for tag in added:
            if not _TAG.fullmatch(tag):
                raise BadInput(
                    f"tag '{tag:.60}': a tag begins with a letter or digit, has at most 40 characters, and contains "
                    "only letters, digits and _ . : / + -"
                )
        return Notes(self.text, tuple(sorted({*self.tags, *added} - {*remove})))

    def saying(self, text: str) -> Notes:
        """The notes with another text, on one line and stripped. Raises: BadInput: it is too long."""
        line = _CONTROL.sub(" ", text).strip()
        if len(line) > LONGEST:
            raise BadInput(f"a note has at most {LONGEST} characters, this one has {len(line)}")
        return Notes(line, self.tags)


NO_NOTES: Final = Notes()


def read_notes(directory: Path) -> Notes:
    """The notes of a record; empty notes if there is no file. Raises: RecordFault: the file is corrupt."""
    path = directory / NOTES
    try:
        return as_value(read_json(path, NOTES_SCHEMA), Notes, path)
    except FileNotFoundError:
        return NO_NOTES


def write_notes(directory: Path, notes: Notes) -> None:
    """Replaces the notes of a record; empty notes remove the file.

    Raises: RecordFault: this is no record. OSError: it cannot be written.
    """
    check_files(directory)
    if not (directory / "run.json").is_file():
        raise RecordFault(f"{directory} is not a run record: it has no run.json")
    if notes == NO_NOTES:
        (directory / NOTES).unlink(missing_ok=True)
        return
    write_json(directory / NOTES, {"schema": plain(NOTES_SCHEMA), **plain(notes)})
