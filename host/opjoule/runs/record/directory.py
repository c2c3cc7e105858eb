"""A record's directory: checked before a new record, created once, and held by one process at a time."""

import itertools
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Final

from opjoule.base.errors import BadInput, RecordFault
from opjoule.base.files import NOT_REGULAR

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
