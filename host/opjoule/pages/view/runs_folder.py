"""The records under a folder by name, and the open ones among them."""

import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.base.errors import BadInput, OpJouleError
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.pages.view.levels import WHOLE, Extent, Levels, Pyramid, kept_levels, make_levels
from opjoule.results.run import OpenedRun, open_run
from opjoule.results.run_list import ListedRun, RunIndex, run_folders
from opjoule.runs.record.run_record import reading

OPEN_AT_ONCE: Final = 6
"""Number of runs that are kept open: as many as the page shows at once."""
READ_S: Final = 0.5
"""How long a list waits for records that are still being read."""
NEW_S: Final = 60.0
"""How long a list that was read to its end is given to whoever asks next; a page asks again after a few seconds."""


@dataclass(frozen=True)
class Listing:
    """The records that are known so far."""

    runs: dict[str, ListedRun]
    """Name -> record, in descending order of names."""
    total: int
    """Number of existing records; larger than that of the known ones while some are still being read."""
    is_whole: bool
    """Whether all records were checked, at most NEW_S ago."""


class ShownRun:
    """An open record, with results that are computed once."""

    def __init__(self, run: OpenedRun) -> None:
        self.lock = threading.Lock()
        """Lock of the drawn data."""
        self.energies = threading.Lock()
        """Lock of energies, for which the whole trace is read."""
        self._given = run
        self._ahead: threading.Thread | None = None

    @cached_property
    def _opened(self) -> tuple[OpenedRun, Levels]:
        kept = kept_levels(self._given)
        if kept is None:
            return self._given, make_levels(self._given)
        return replace(self._given, known_axis=kept.extent.axis), kept

    @property
    def run(self) -> OpenedRun:
        """The record; if its levels are cached, drawing does not read its trace."""
        return self._opened[0]

    @property
    def extent(self) -> Extent:
        """Length, time axis and lost stretches of the trace."""
        return self._opened[1].extent

    @property
    def pyramid(self) -> Pyramid:
        """The power in several resolutions."""
        return self._opened[1].pyramid

    @cached_property
    def operations_s(self) -> Float64Array:
        """Start of each operation on the run's time axis [s], ascending; empty if unknown."""
        if not (self.run.path / "operations.parquet").exists():
            return np.zeros(0)
        times_s: Float64Array = np.sort(self.run.time_s(self.run.starts_ns))
        return times_s[np.isfinite(times_s)]

    @cached_property
    def lost_s(self) -> Float64Array:
        """Middle of each lost stretch on the run's time axis [s], ascending."""
        return np.array(self.extent.lost_s, np.float64)

    def read_ahead(self) -> None:
        """Starts reading what energies need, in a thread, so that the first energy is available sooner."""
        if self._ahead is None:
            self._ahead = threading.Thread(target=self._energy, name="reading-ahead", daemon=True)
            self._ahead.start()

    def _energy(self) -> None:
        with (
            self.energies,
            suppress(OpJouleError, OSError),
            reading(self._given.path),
        ):  # the next request reports it
            if self.extent.samples > WHOLE and self.run.answer.record.is_finished:
                self.run.forget_samples()
            self.run.energy(0.0, self.extent.end_s / 2)


class RunsFolder:
    """All records under one folder, which may be a record itself. May be used from several threads."""

    def __init__(self, folder: Path) -> None:
        """Raises: RecordFault: there is no such folder."""
        self.folder = folder
        self._open: OrderedDict[str, ShownRun] = OrderedDict()
        self._lock = threading.Lock()
        self._index = RunIndex(folder)
        self._runs: dict[str, ListedRun] = {}
        self._reading: threading.Thread | None = None
        self._read_s = 0.0
        """End of the last reading, on the clock of time.monotonic()."""
        next(run_folders(folder), None)

    def listing(self) -> Listing:
        """All records. Only those that changed since they were last read are read again, in a thread.

        To check ten thousand records may take longer than a call waits: the next call gets them, and only the one after
        it checks anew.
        """
        with self._lock:
            if self._reading and not self._reading.is_alive() and time.monotonic() - self._read_s > NEW_S:
                self._reading = None
            if self._reading is None:
                self._reading = threading.Thread(target=self._read, name="reading-the-list", daemon=True)
                self._reading.start()
            reading = self._reading
        reading.join(READ_S)
        is_whole = not reading.is_alive()
        with self._lock:
            if is_whole and self._reading is reading:
                self._reading = None
        runs = dict(sorted(self._runs.copy().items(), reverse=True))
        return Listing(runs, max(self._index.total, len(runs)), is_whole)

    def _read(self) -> None:
        runs = {}
        with suppress(OpJouleError, OSError):  # the folder is gone: the list ends here
            for name, run in self._index.runs():
                runs[name] = self._runs[name] = run
        self._runs = runs
        self._read_s = time.monotonic()

    def place(self, name: str) -> Path:
        """Folder of the run with this name. Raises: BadInput: there is none."""
        known = self._runs.get(name)
        path = known.path if known and (known.path / "run.json").exists() else self._index.places().get(name)
        if path is None:
            raise BadInput(f"there is no run '{name}' in {self.folder}")
        return path

    def open(self, name: str) -> ShownRun:
        """The run with this name. Raises: BadInput: there is none. RecordFault: it cannot be read."""
        with self._lock:
            shown = self._open.get(name)
            if shown is None:
                shown = self._open[name] = ShownRun(open_run(self.place(name)))
            self._open.move_to_end(name)
            while len(self._open) > OPEN_AT_ONCE:
                self._open.popitem(last=False)
        return shown
