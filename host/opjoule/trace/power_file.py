"""power.parquet, written beside the reading of its journal: what is read once makes the trace and the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Final

import pyarrow as pa

from opjoule.trace import schemas
from opjoule.trace.parquet_file import write_parquet

WAITING: Final = 64
"""Batches of a second that may wait for the file."""


class PowerFile:
    """Takes batches from one thread and writes them in another one; a trace that ends in a fault leaves no file."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "power.parquet"
        self._coming: Queue[pa.RecordBatch | None] = Queue(WAITING)
        self._whole = False

    @classmethod
    def of(cls, directory: Path) -> PowerFile | None:
        """Power file to make for a record whose trace is in its journal, voltages included; None for any other."""
        raw = directory / "raw"
        read_otherwise = (directory / "power.parquet").exists() or (raw / "bus.arrows").exists()
        return cls(directory) if (raw / "power.arrows").exists() and not read_otherwise else None

    def add(self, batch: pa.RecordBatch) -> None:
        """The next rows; waits while many are waiting."""
        self._coming.put(batch)

    def end(self, *, whole: bool) -> None:
        """No more rows come; without all of them nothing is kept."""
        self._whole = whole
        self._coming.put(None)

    def write(self) -> list[Path]:
        """Writes until the end; the file that was made, or none. Raises: OSError: the medium is full or gone."""
        tables = self._tables()
        try:
            write_parquet(self._path, schemas.POWER, tables)
        except _NotWhole:
            return []
        finally:
            for _ in tables:  # whoever reads does not wait for a file that cannot be written
                pass
        return [self._path]

    def _tables(self) -> Iterator[pa.Table]:
        ended = False
        try:
            while (batch := self._coming.get()) is not None:
                yield pa.Table.from_batches([batch], schemas.POWER)
            ended = True
        finally:
            while not ended:
                ended = self._coming.get() is None
        if not self._whole:
            raise _NotWhole


class _NotWhole(Exception):
    """Not all of the trace could be read."""
