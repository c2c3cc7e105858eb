"""The one writer of Parquet files: whole or absent, in row groups."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from opjoule.files import rewriting

ROW_GROUP_ROWS: Final = 1 << 20


def write_parquet(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Writes a Parquet file part by part under a temporary name, then renames it: it is whole or absent.

    Args:
        parts: tables of the schema; small ones are joined until they fill a row group.
    """
    stamps = [field.name for field in schema if field.type == pa.int64()]
    encoding = {
        "compression": "zstd",
        "compression_level": 1,
        # stamps rise by about the same from row to row: a dictionary of them is tried in vain
        "column_encoding": dict.fromkeys(stamps, "DELTA_BINARY_PACKED"),
        "use_dictionary": [name for name in schema.names if name not in stamps],
    }
    with rewriting(path) as file, pq.ParquetWriter(file, schema, **encoding) as writer:
        waiting: list[pa.Table] = []
        for part in parts:
            waiting.append(part)
            if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_ROWS)
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_ROWS)
