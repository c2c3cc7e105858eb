"""How a measurement goes on, in its record while it does: raw/progress.jsonl, for whoever watches it."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from opjoule.trace.power_history import PowerHistory

PROGRESS: Final = "progress.jsonl"


class ProgressNotes:
    """Appends one JSON line for each thing noted, with the time of the newest sample. Safe from several threads.

    Nothing rests on them: a note that cannot be written is left out.
    """

    def __init__(self, path: Path, history: PowerHistory) -> None:
        """`history`: of the trace that is being recorded."""
        self._file = path.open("x", encoding="utf-8")
        self._history = history
        self._lock = threading.Lock()

    def add(self, **entry: str | float) -> None:
        """Writes and flushes a line; nothing once it is closed."""
        line = json.dumps({"meter_ns": self._history.end_ns, **entry}) + "\n"
        with self._lock, suppress(OSError, ValueError):
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        """From now on the file does not change."""
        with self._lock, suppress(OSError):
            self._file.close()
