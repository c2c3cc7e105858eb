"""Errors of the operating system on files, such as a full disk, in one line with the path and the remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_REMEDIES: Final = {
    errno.ENOSPC: "free some space there, or give --out on another disk",
    errno.EDQUOT: "your quota is used up: free some space there, or give --out on another disk",
    errno.EROFS: "give --out on a disk that can be written",
    errno.EACCES: "it belongs to another user: change its owner with 'sudo chown -R $USER', or give another place",
    errno.EPERM: "it belongs to another user: change its owner with 'sudo chown -R $USER', or give another place",
    errno.ENOENT: "it does not exist, or was removed while it was in use",
    errno.ENOTDIR: "a part of the path is a file: give another place",
    errno.EISDIR: "a directory is in the place of a file: move it away",
    errno.ENOTEMPTY: "it contains files: move them away",
    errno.EEXIST: "it already exists: move it away, or give another place",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "its links form a circle",
    errno.EMFILE: "too many files are open: raise 'ulimit -n'",
    errno.ENOMEM: "close other programs",
    errno.EIO: "the medium is failing: look at 'dmesg'",
}


def of_system(error: OSError) -> str:
    """An error of the operating system in one line: path, reason, what to do."""
    where = " and ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    what = error.strerror or str(error) or type(error).__name__
    remedy = _no_folder(error) or _REMEDIES.get(error.errno or 0, "run host/measure.py doctor")
    return f"{where}: {what}: {remedy}" if where else f"{what}: {remedy}"


def _no_folder(error: OSError) -> str:
    """Remedy if the folder of a file does not exist; empty if it does, or if the error is another one."""
    if error.errno != errno.ENOENT or not isinstance(error.filename, str | Path):
        return ""
    folder = Path(error.filename).absolute().parent
    if folder.is_dir():
        return ""
    return f"the folder {folder} does not exist, or was removed while it was in use: make it, or name another"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Context for work on an open file: adds the path to an error of the system, which then has none."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
