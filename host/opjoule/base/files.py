"""Files that are complete or absent, their checksums, and the files of strangers, which are opened with care."""

import csv
import errno
import hashlib
import io
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from opjoule.base.errors import naming

_OPENS_FOLDERS: Final = hasattr(os, "O_DIRECTORY")
"""False on Windows, which opens no directory, and syncs a file only if it can be written."""
_CAREFUL: Final = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY"))
"""Flags with which a link is not followed, and a FIFO without a writer or a terminal is not waited for."""
NOT_REGULAR: Final = "is a link, FIFO or device where a file is expected"
JSON_BYTES: Final = 1 << 24
"""Maximum size of a JSON file of a record; the longest that a measurement writes has some 100 kB."""
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
"""First characters that turn a cell of a spreadsheet into a formula. Source: OWASP, CSV Injection."""
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*(e[+-]?\d+)?|inf|nan)", re.IGNORECASE)


class ProcessFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder that is removed when its process ends, even by SIGKILL.

    A shell waits for the end of its input, which the process holds open, and removes the folder; programs that still
    write into it end in the same way.
    """

    _REMOVE: Final = 'cat; for _ in $(seq 100); do rm -rf -- "$1" && break; sleep 0.1; done'

    def __init__(self, prefix: str, place: Path | None = None) -> None:
        """`place`: folder above it; None: the system's temporary folder."""
        super().__init__(prefix=prefix, dir=place)
        self._watcher = subprocess.Popen(
            ["sh", "-c", self._REMOVE, "sh", self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def cleanup(self) -> None:
        """Removes the folder; may be called twice."""
        self._watcher.communicate()
        super().cleanup()


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
    with replacing(path) as temporary:
        # A new file: what a stranger has put in its place, such as a link to another file, is not written to.
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file, naming(path):
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


def open_regular(path: Path) -> io.BufferedReader:
    """Opens a file for reading if it is a regular one. Raises: OSError: it is absent, or is a link, FIFO or device."""
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _CAREFUL))  # noqa: SIM115  # returned
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise OSError(errno.ELOOP, NOT_REGULAR, str(path)) from None
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.ELOOP, NOT_REGULAR, str(path))


def read_regular(path: Path, most_bytes: int = JSON_BYTES) -> bytes:
    """Contents of a regular file. Raises: OSError: as open_regular(), or the file is larger than `most_bytes`."""
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes >> 20} MiB", str(path))
    return content


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as the text of a CSV file; a text that a spreadsheet would compute begins with an apostrophe."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_inert(cell) for cell in row] for row in rows)
    return out.getvalue()


def _inert(cell: object) -> object:
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell
