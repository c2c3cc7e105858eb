"""One append-only Arrow stream file with rows waiting in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from opjoule.system_errors import naming


class AppendStream:
    """One append-only Arrow stream file with rows waiting in memory."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._file = path.open("xb")
        self._schema = schema
        self._waiting: list[pa.RecordBatch] = []
        with naming(path):
            self._writer = pa.ipc.new_stream(self._file, schema)
            # The schema reaches the file with the first batch.
            self._writer.write_batch(pa.RecordBatch.from_pylist([], schema))
            self._file.flush()

    def append(self, columns: list[Any]) -> None:
        """Rows of the schema's columns, to wait for `flush`."""
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def flush(self) -> None:
        """Hands what waits to the kernel. Raises: OSError: the medium is full or gone."""
        with naming(self._path):
            if self._waiting:
                table = pa.Table.from_batches(self._waiting).combine_chunks()
                self._writer.write_table(table)
                self._waiting.clear()
            self._file.flush()

    def close(self) -> None:
        """Ends the stream and waits until the medium has it. Raises: OSError: as `flush`; the file is closed."""
        with naming(self._path):
            try:
                self.flush()
                self._writer.close()
                self._file.flush()
                os.fsync(self._file.fileno())
            finally:
                self._file.close()
