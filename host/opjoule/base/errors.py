"""All errors outside the program's control, as one tree, and words for their messages.

    OpJouleError             exit 1    base: one line for the user, never a traceback
    ├── BadInput             exit 2    a name, value or file the user gave
    │   └── NoWheels                   Python modules that do not exist for the board
    ├── RigFault             exit 3    something on the desk
    │   ├── MeterFault                 meter absent, busy, of another version, or silent
    │   ├── LinkFault                  the connection to the board
    │   └── DeviceFault                the board itself, or the loader on it
    ├── RecordFault          exit 4    a run record that is unreadable or corrupt
    │   ├── OperationLogFault          corrupt at a known byte of an operation log
    │   └── NewerSchema                written by a newer version of this program
    ├── DataFault            exit 5    sound data that cannot answer the question
    │   ├── WindowError                a window that the trace does not cover
    │   ├── GapError                   lost samples cover too much of a window
    │   └── AlignmentError             two clocks that cannot be matched, or not uniquely
    └── Interrupted          exit 130  Ctrl-C or a termination signal

A measurement or recording that finished with a fault is not an error: its record has all figures except those that the
fault makes wrong. It ends with exit status 6 (FAULTY_EXIT). A command that shows a record whose files were changed
afterwards shows the intact part of it and ends with exit status 4, as `verify` does. A comparison that finds a change
for the worse ends with exit status 7 (WORSE_EXIT).

A message names the thing, its value, the limit it broke and what to do next.
"""

import difflib
import errno
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Final

from opjoule.base.scripts import IS_CLONE

FAULTY_EXIT: Final = 6
"""A measurement finished with a fault that its record names."""
INTERRUPTED: Final = "interrupted by the user (Ctrl-C)"
"""Why a program ended that got SIGINT; another signal is named in the KeyboardInterrupt that it raises."""
WORSE_EXIT: Final = 7
"""compare.py: the runs after a change are worse than the runs before it."""


class OpJouleError(Exception):
    """Base of all expected failures; `str()` gives the line that the user sees."""

    exit_code: ClassVar[int] = 1


class BadInput(OpJouleError):
    """A name, value or file the user gave is unknown, malformed or contradictory."""

    exit_code: ClassVar[int] = 2


class NoWheels(BadInput):
    """No wheels of Python modules fit the board's Python, or they cannot be fetched."""


class RigFault(OpJouleError):
    """Something on the desk does not answer as it should."""

    exit_code: ClassVar[int] = 3


class MeterFault(RigFault):
    """The power meter is absent, busy, of another protocol version, or fell silent."""


class LinkFault(RigFault):
    """The connection to the board could not be made or was lost."""


class DeviceFault(RigFault):
    """The board, or the loader on it, refused or failed."""


class RecordFault(OpJouleError):
    """A run record, or one file of it, is unreadable or corrupt."""

    exit_code: ClassVar[int] = 4


class OperationLogFault(RecordFault):
    """An operation log is corrupt at a known byte, `offset`."""

    def __init__(self, path: Path, offset: int, problem: str) -> None:
        super().__init__(
            f"operation log {path}: byte {offset}: {problem}; records before it can be read with strict=False"
        )
        self.offset = offset


class NewerSchema(RecordFault):
    """A file of a record has a newer schema than this program can read."""

    def __init__(self, path: Path, name: str, version: int, newest: int) -> None:
        super().__init__(f"{path}: schema {name} version {version}, this program reads up to {newest}: update OpJoule")


class DataFault(OpJouleError):
    """The data are valid, but they cannot answer the question within its limits."""

    exit_code: ClassVar[int] = 5


class WindowError(DataFault):
    """A window is empty or reaches outside the trace."""


class GapError(DataFault):
    """Lost samples cover more of a window than the limit allows."""


class AlignmentError(DataFault):
    """Two clocks cannot be matched, or more than one match fits."""


class Interrupted(OpJouleError):
    """The user or the system asked the program to stop."""

    exit_code: ClassVar[int] = 130


def suggestion(name: str, known: Iterable[str], likeness: float = 0.7) -> str:
    """ "did you mean '...'? " with the names in `known` that begin with `name`, or else with the most similar one.

    Similar names have a difflib ratio of at least `likeness`. Capitals do not count. A name with other digits is
    another thing, not a misspelling: ssd-usb3 is not suggested for ssd-usb4.
    """
    by_lower, asked = {word.lower(): word for word in known}, name.lower()
    begun = [word for word in by_lower if len(asked) > 1 and word.startswith(asked)][:SUGGESTED_MAX]
    alike = [word for word in by_lower if word == asked or _DIGITS.sub("0", word) != _DIGITS.sub("0", asked)]
    near = begun or difflib.get_close_matches(asked, alike, 1, likeness)
    named = "' or '".join(by_lower[word] for word in near)
    return f"did you mean '{named}'? " if near else ""


def unknown(thing: str, name: str, known: Iterable[str]) -> str:
    """Error message for a name that is not in `known`: the name, the most similar one, and all known names."""
    names = list(known)
    listed = f"known are {', '.join(names)}" if names else "none is known"
    return f"unknown {thing} '{name}': {suggestion(name, names)}{listed}"


SUGGESTED_MAX: Final = 3
"""Most names in a suggestion."""
_DIGITS: Final = re.compile(r"\d")
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_REMEDIES: Final = {
    errno.ENOSPC: "free some space there, or give --out on another disk",
    errno.EDQUOT: "your quota is used up: free some space there, or give --out on another disk",
    errno.EROFS: "give --out on a disk that can be written",
    errno.ENOENT: "it does not exist, or was removed while it was in use",
    errno.ENOTDIR: "a part of the path is a file: give another place",
    errno.EISDIR: "a directory is in the place of a file: move it away",
    errno.ENOTEMPTY: "it contains files: move them away",
    errno.EEXIST: "it already exists: move it away, or give another place",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "give the file itself",
    errno.EFBIG: "no record has such a file",
    errno.EMFILE: "too many files are open: raise 'ulimit -n'",
    errno.ENOMEM: "close other programs",
    errno.EIO: "the medium is failing: look at 'dmesg'",
    errno.EADDRNOTAVAIL: "this computer does not have this address: give one that 'ip address' lists, or 0.0.0.0",
    errno.EADDRINUSE: "another program uses this port: give another one",
}


def of_system(error: OSError) -> str:
    """An error of the operating system in one line: path, reason, what to do."""
    where = " and ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    what = error.strerror or str(error) or type(error).__name__
    doctor = "run host/measure.py doctor" if IS_CLONE else ""
    remedy = _no_folder(error) or _not_permitted(error) or _REMEDIES.get(error.errno or 0, doctor)
    return ": ".join(part for part in (where, what, remedy) if part)


def _no_folder(error: OSError) -> str:
    """Remedy if the folder of a file does not exist; empty if it does, or if the error is another one."""
    if error.errno != errno.ENOENT or not isinstance(error.filename, str | Path):
        return ""
    folder = Path(error.filename).absolute().parent
    if folder.is_dir():
        return ""
    return f"the folder {folder} does not exist, or was removed while it was in use: make it, or name another"


def _not_permitted(error: OSError) -> str:
    """Remedy if a file may not be used, by who owns it; empty if the error is another one."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return ""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes | Path) else None
    for place in (path, *path.absolute().parents) if path else ():
        with suppress(OSError):  # it does not exist, or its folder may not be read
            owner = place.stat().st_uid
            if owner != os.geteuid():
                return f"{place} belongs to another user (number {owner}): give another place, or ask its owner"
            return f"you own {place}: 'chmod u+rwX {shlex.quote(str(place))}' permits it; or give another place"
    return "you are not permitted to do this: give another place"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Context for work on an open file: adds the path to an error of the system, which then has none."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
