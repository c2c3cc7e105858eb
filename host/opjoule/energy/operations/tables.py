"""Parquet files of operations, events and system samples: written completely, in row groups, then renamed."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opjoule.base.errors import RecordFault
from opjoule.energy.operations import schemas
from opjoule.energy.operations.operation_table import COLUMNS, KINDS_MAX, LOADER_KINDS, OperationTable
from opjoule.energy.trace.parquet_file import ROW_GROUP_ROWS, open_parquet, readable, write_parquet


def read_parquet(path: Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """A parquet file of a run record. Raises: RecordFault: absent, corrupt, of another kind or newer."""
    with open_parquet(path, schemas.BY_NAME[name], columns), readable(path):
        return pq.read_table(path, columns=columns)


def write_operations(path: Path, operations: OperationTable) -> None:
    """Writes operations.parquet, sorted by start, with a million rows in a row group."""
    starts = range(0, max(len(operations), 1), ROW_GROUP_ROWS)
    parts = (_operations_part(operations.select(slice(at, at + ROW_GROUP_ROWS))) for at in starts)
    write_parquet(path, schemas.OPERATIONS, parts)


def _operations_part(operations: OperationTable) -> pa.Table:
    kind_codes = pa.array(operations.kind.astype(np.int8))
    kind = pa.DictionaryArray.from_arrays(kind_codes, pa.array(operations.kinds))
    columns = [kind if name == "kind" else pa.array(getattr(operations, name)) for name in COLUMNS]
    return pa.table(columns, schema=schemas.OPERATIONS)


def read_operations(path: Path) -> OperationTable:
    """The operations of a record. Raises: RecordFault: the file is absent or corrupt."""
    table = read_parquet(path, "operations")
    kind = table.column("kind").combine_chunks()
    names = kind.dictionary.to_pylist() if isinstance(kind, pa.DictionaryArray) else []
    if len(names) > KINDS_MAX or len(set(names)) < len(names) or None in names:
        raise RecordFault(f"{path}: damaged: the names of its kinds of operation are not text")
    codes = kind.indices.to_numpy().astype(np.uint8) if len(table) else np.empty(0, np.uint8)
    board_ns, duration_ns, thread, moved, ok = (
        table.column(name).to_numpy() for name in ("board_ns", "duration_ns", "thread", "bytes", "ok")
    )
    kinds = tuple(names) or LOADER_KINDS
    return OperationTable(board_ns, duration_ns, codes, thread, moved, ok, kinds)
