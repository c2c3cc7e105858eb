"""Parquet files of operations, events, system samples and attribution: their columns, reading and writing."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opjoule.base.errors import RecordFault
from opjoule.energy.operations.operation_table import COLUMNS, KINDS_MAX, LOADER_KINDS, OperationTable
from opjoule.energy.trace.parquet_file import ROW_GROUP_ROWS, complete, open_parquet, readable, versioned, write_parquet

OPERATIONS: Final = complete(
    versioned(
        "operations",
        1,
        board_ns=pa.int64(),
        duration_ns=pa.int64(),
        kind=pa.dictionary(pa.int8(), pa.string()),
        thread=pa.uint16(),
        bytes=pa.int64(),
        ok=pa.bool_(),
    )
)

EVENTS: Final = versioned(
    "events",
    1,
    board_ns=pa.int64(),
    end_board_ns=pa.int64(),
    event=pa.string(),
    level=pa.int8(),
    u_ns=pa.float64(),
    detail=pa.string(),
)

SYSTEM: Final = versioned(
    "system",
    2,
    board_ns=pa.int64(),
    cpu_busy_s=pa.float64(),
    process_cpu_s=pa.float64(),
    process_read_bytes=pa.int64(),
    process_written_bytes=pa.int64(),
    device_read_bytes=pa.int64(),
    device_written_bytes=pa.int64(),
    dirty_bytes=pa.int64(),
    rss_bytes=pa.int64(),
    rss_anon_bytes=pa.int64(),
)

ATTRIBUTION: Final = versioned(
    "attribution",
    1,
    repeat=pa.int32(),
    board_ns=pa.int64(),
    end_board_ns=pa.int64(),
    part=pa.string(),
    energy_j=pa.float64(),
)

BY_NAME: Final = {"attribution": ATTRIBUTION, "operations": OPERATIONS, "events": EVENTS, "system": SYSTEM}


def read_parquet(path: Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """A parquet file of a run record. Raises: RecordFault: absent, corrupt, of another kind or newer."""
    with open_parquet(path, BY_NAME[name], columns), readable(path):
        return pq.read_table(path, columns=columns)


def write_operations(path: Path, operations: OperationTable) -> None:
    """Writes operations.parquet, sorted by start, with a million rows in a row group."""
    starts = range(0, max(len(operations), 1), ROW_GROUP_ROWS)
    parts = (_operations_part(operations.select(slice(at, at + ROW_GROUP_ROWS))) for at in starts)
    write_parquet(path, OPERATIONS, parts)


def _operations_part(operations: OperationTable) -> pa.Table:
    kind_codes = pa.array(operations.kind.astype(np.int8))
    kind = pa.DictionaryArray.from_arrays(kind_codes, pa.array(operations.kinds))
    columns = [kind if name == "kind" else pa.array(getattr(operations, name)) for name in COLUMNS]
    return pa.table(columns, schema=OPERATIONS)


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
