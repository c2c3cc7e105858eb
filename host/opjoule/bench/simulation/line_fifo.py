"""A FIFO that does not block its writers for long and never ends for its reader."""

import os
from pathlib import Path


class LineFifo:
    """A FIFO that this process reads line by line without blocking, no matter what its writers do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        # Open for writing too, so that a writer's exit is not read as the end of the file.
        self.descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._partial = b""

    def lines(self) -> list[str]:
        """Complete lines that have arrived."""
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return []
        *whole, self._partial = (self._partial + data).split(b"\n")
        return [line.decode("ascii", "replace") for line in whole]

    def close(self) -> None:
        """Stops reading and removes the FIFO."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)
