"""A FIFO whose writers are never held up for long, and never end it."""

from __future__ import annotations

import os
from pathlib import Path


class LineFifo:
    """A FIFO that this process reads line by line without blocking, whatever its writers do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        # Open for writing too: a writer that leaves must not look like the end of the line.
        self.descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._partial = b""

    def lines(self) -> list[str]:
        """Whole lines that have arrived."""
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return []
        *whole, self._partial = (self._partial + data).split(b"\n")
        return [line.decode("ascii", "replace") for line in whole]

    def close(self) -> None:
        """Ends reading and removes the FIFO."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)
