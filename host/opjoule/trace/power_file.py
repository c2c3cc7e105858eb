"""power.parquet, written while its journal is read, so that the journal is read only once for trace and file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Final

import pyarrow as pa

from opjoule.trace import schemas
from opjoule.trace.parquet_file import write_parquet

WAITING: Final = 64
"""Maximum number of batches (of one second each) that may wait for the file."""


class PowerFile:
    """Takes batches from one thread and writes them in another. A trace that ends in a fault leaves no file."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "power.parquet"
        self._coming: Queue[pa.RecordBatch | None] = Queue(WAITING)
        self._whole = False

    @classmethod
    def of(cls, directory: Path) -> PowerFile | None:
        """The file to write for a record whose journal contains the whole trace with its voltages; None for others."""
        raw = directory / "raw"
        read_otherwise = (directory / "power.parquet").exists() or (raw / "bus.arrows").exists()
        return cls(directory) if (raw / "power.arrows").exists() and not read_otherwise else None

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes the next rows; blocks while too many batches are waiting."""
        self._coming.put(batch)

    def end(self, *, whole: bool) -> None:
        """Ends the rows; the file is kept only if `whole`, i.e. if all rows came."""
        self._whole = whole
        self._coming.put(None)

    def write(self) -> list[Path]:
        """Writes until the end. Returns: the file, if one was made. Raises: OSError: the medium is full or gone."""
        tables = self._tables()
        try:
            write_parquet(self._path, schemas.POWER, tables)
        except _NotWhole:
            return []
        finally:
            for _ in tables:  # the reader must not wait for a file that cannot be written
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
    """The trace could not be read completely."""
