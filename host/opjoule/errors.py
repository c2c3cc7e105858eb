"""All errors outside the program's control, as one tree.

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

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

FAULTY_EXIT: Final = 6
"""A measurement finished with a fault that its record names."""
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
        super().__init__(
            f"{path}: schema {name} version {version}, this program reads up to {newest}: update OpJoule"
        )


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
