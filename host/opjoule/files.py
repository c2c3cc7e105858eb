"""Files that are complete or absent, and their checksums."""

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from opjoule.errors import naming

_OPENS_FOLDERS: Final = hasattr(os, "O_DIRECTORY")
"""False on Windows, which opens no directory, and syncs a file only if it can be written."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file that replaces `path` at the end of the block; if the block fails, it is removed."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(temporary):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def rewriting(path: Path) -> Iterator[BinaryIO]:
    """An open file that replaces `path` at the end of the block, once all of it is on the medium."""
    with replacing(path) as temporary, temporary.open("wb") as file, naming(path):
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file as a whole: temporary file, fsync, rename, fsync of the directory."""
    with rewriting(path) as file:
        file.write(content)
    _sync(path.parent)


def on_the_medium(paths: Iterable[Path]) -> None:
    """Waits until the files and their names are on the medium. Raises: OSError: they cannot be written."""
    files = list(paths)
    for path in (*files, *{file.parent for file in files}):
        _sync(path)


def _sync(path: Path) -> None:
    if not _OPENS_FOLDERS and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if _OPENS_FOLDERS else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as the text of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
