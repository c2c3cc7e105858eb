"""The records under a folder, by name, and those of them that are open."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.analysis.opened_run import OpenedRun, open_run
from opjoule.analysis.run_list import UNREADABLE, run_folders
from opjoule.drawing.pyramid import WHOLE, Pyramid
from opjoule.errors import BadInput, OpJouleError
from opjoule.record.run_record import reading
from opjoule.report.answer import open_answer
from opjoule.trace.power_trace import Float64Array
from opjoule.view.levels import Extent, Levels, kept_levels, make_levels

OPEN_AT_ONCE: Final = 2
"""Runs that are kept open: the two that the page shows."""


@dataclass(frozen=True)
class Listed:
    """One record as the list of runs shows it."""

    name: str
    """Its path under the folder."""
    title: str
    status: str
    started_utc: str
    problem: str = ""
    """Why it cannot be read; empty where it can."""


class ShownRun:
    """An open record and what is computed of it once."""

    def __init__(self, run: OpenedRun) -> None:
        self.lock = threading.Lock()
        """Of what is drawn."""
        self.energies = threading.Lock()
        """Of joules, which the whole trace is read for."""
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
        """The record; its trace is not read for what is drawn where its levels were kept."""
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
        """When each operation began, on the run's time axis [s], rising; empty where that is not known."""
        if not (self.run.path / "operations.parquet").exists():
            return np.zeros(0)
        found: Float64Array = np.sort(self.run.time_s(self.run.starts_ns))
        return found[np.isfinite(found)]

    @cached_property
    def lost_s(self) -> Float64Array:
        """Middle of each lost stretch, on the run's time axis [s], rising."""
        return np.array(self.extent.lost_s, np.float64)

    def read_ahead(self) -> None:
        """Begins to read what the joules of a stretch need, in a thread, so that the first one comes sooner."""
        if self._ahead is None:
            self._ahead = threading.Thread(target=self._energy, name="reading-ahead", daemon=True)
            self._ahead.start()

    def _energy(self) -> None:
        with self.energies, suppress(OpJouleError, OSError):  # whoever asks for joules is told
            if self.extent.samples > WHOLE and self.run.answer.record.is_finished:
                self.run.forget_samples()
            self.run.energy(0.0, self.extent.end_s / 2)


class Shelf:
    """All records under one folder, which may be a record itself. Safe from several threads."""

    def __init__(self, folder: Path) -> None:
        """Raises: RecordFault: there is no such folder."""
        self.folder = folder
        self._open: OrderedDict[str, ShownRun] = OrderedDict()
        self._lock = threading.Lock()
        self._listed: dict[Path, tuple[tuple[int, int], Listed]] = {}
        self.places()

    def places(self) -> dict[str, Path]:
        """Every record by its name, the newest first."""
        found = {self._name(path): path for path in run_folders(self.folder)}
        return dict(sorted(found.items(), reverse=True))

    def _name(self, path: Path) -> str:
        return path.resolve().name if path == self.folder else path.relative_to(self.folder).as_posix()

    def listing(self) -> list[Listed]:
        """Every record, with its title; what did not change since the last call is not read again."""
        return [self._one(name, path) for name, path in self.places().items()]

    def open(self, name: str) -> ShownRun:
        """The run of that name.

        Raises: BadInput: there is none. RecordFault: it cannot be read.
        """
        with self._lock:
            shown = self._open.get(name)
            if shown is None:
                path = self.places().get(name)
                if path is None:
                    raise BadInput(f"there is no run '{name}' in {self.folder}")
                shown = self._open[name] = ShownRun(open_run(path))
            self._open.move_to_end(name)
            while len(self._open) > OPEN_AT_ONCE:
                self._open.popitem(last=False)
        return shown

    def _one(self, name: str, path: Path) -> Listed:
        try:
            info = (path / "run.json").stat()
        except OSError as error:
            return Listed(name, name, UNREADABLE, "", error.strerror or "")
        mark = info.st_mtime_ns, info.st_size
        known = self._listed.get(path)
        if known is None or known[0] != mark:
            known = self._listed[path] = mark, _listed(name, path)
        return known[1]


def _listed(name: str, path: Path) -> Listed:
    try:
        with reading(path):
            answer = open_answer(path)
            return Listed(name, answer.title, answer.record.status, answer.run.found.started_utc or "")
    except (OpJouleError, OSError) as fault:
        return Listed(name, name, UNREADABLE, "", str(fault))
