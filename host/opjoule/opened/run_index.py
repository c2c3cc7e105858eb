"""Index of records: the listed properties of all records in a folder, kept in one file so that a list is fast.

The index contains no data of its own. An entry is valid as long as run.json, result.json and notes.json of its record
are the same files (inode, size, time of change); other records are read again. An index that is missing, damaged or
from another version of this program is made again. Without write permission there is no index.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from opjoule.files import rewriting
from opjoule.opened.run_list import ListedRun, listed, run_folders
from opjoule.record.notes import NOTES

INDEX: Final = "runs.index"
VERSION: Final = 2
WATCHED: Final = ("run.json", "result.json", NOTES)
KEEP_AT_ONCE: Final = 500
"""The index is written after this many newly read records, in case the program ends before all are read."""

Mark = tuple[tuple[int, int, int], ...]
"""Inode, size [B] and time of change [ns] of each watched file; zeros if there is no such file."""


class _Entry(msgspec.Struct):
    mark: Mark
    run: ListedRun


class _Kept(msgspec.Struct):
    version: int
    entries: dict[str, _Entry]


_DECODER: Final = msgspec.json.Decoder(_Kept, dec_hook=lambda kind, text: kind(text))
"""Decoder that converts texts to paths."""


class RunIndex:
    """The records in or below one folder. May be used from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.total = 0
        """Number of records that `runs` yields; known once it has yielded the first."""
        self._lock = threading.Lock()
        self._known: dict[str, _Entry] | None = None

    def places(self) -> dict[str, Path]:
        """Record's path below the folder -> its directory. Raises: RecordFault: the folder is not a directory."""
        return {self._name(path): path for path in run_folders(self.folder)}

    def runs(self) -> Iterator[tuple[str, ListedRun]]:
        """Yields every record with its name, in the order of `places`; only new and changed records are read.

        The index is updated when the iterator is exhausted. Raises: RecordFault: the folder is not a directory.
        """
        with self._lock:
            if self._known is None:
                self._known = self._read()
            known, current, unsaved = self._known, {}, 0
            places = self.places()
            self.total = len(places)
            for name, path in places.items():
                mark = _mark(path)
                # A running record may end, or be killed, without a change of these files.
                if name in known and known[name].mark == mark and not known[name].run.goes_on:
                    current[name] = known[name]
                else:
                    current[name] = known[name] = _Entry(mark, listed(path))
                    unsaved += 1
                yield name, current[name].run
                if unsaved >= KEEP_AT_ONCE:
                    self._keep(known)
                    unsaved = 0
            gone = known.keys() - current.keys()
            self._known = current
            if unsaved or gone:
                self._keep(current)

    def _name(self, path: Path) -> str:
        return path.resolve().name if path == self.folder else path.relative_to(self.folder).as_posix()

    def _read(self) -> dict[str, _Entry]:
        try:
            kept = _DECODER.decode((self.folder / INDEX).read_bytes())
        except (OSError, msgspec.MsgspecError):
            return {}
        entries = kept.entries.items() if kept.version == VERSION else ()
        return {
            name: _Entry(entry.mark, replace(entry.run, path=self.folder / name)) for name, entry in entries
        }

    def _keep(self, known: dict[str, _Entry]) -> None:
        """Writes the index beside the records; there is none if the folder itself is a record."""
        if (self.folder / "run.json").exists():
            return
        with suppress(OSError), rewriting(self.folder / INDEX) as file:
            file.write(msgspec.json.encode(_Kept(VERSION, known), enc_hook=str))


def _mark(path: Path) -> Mark:
    stats = []
    for name in WATCHED:
        try:
            stat = (path / name).stat()
            stats.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            stats.append((0, 0, 0))
    return tuple(stats)
