"""The writer of all Parquet files: a file is complete or absent, and written in row groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opjoule.files import rewriting

ROW_GROUP_ROWS: Final = 1 << 20
LOOKED_AT: Final = 1 << 14
"""Number of values examined to decide whether a column gets a dictionary."""


def write_parquet(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Writes a Parquet file part by part under a temporary name, then renames it, so that it is complete or absent.

    Small parts are joined until they fill a row group.
    """
    coming = iter(parts)
    first = list(itertools.islice(coming, 1))
    stamps = [field.name for field in schema if field.type == pa.int64()]
    others = [name for name in schema.names if name not in stamps]
    encoding = {
        "compression": "zstd",
        "compression_level": 1,
        # stamps rise by about the same from row to row, so that a dictionary does not help
        "column_encoding": dict.fromkeys(stamps, "DELTA_BINARY_PACKED"),
        "use_dictionary": [name for name in others if all(_repeats(part[name]) for part in first)],
    }
    with rewriting(path) as file, pq.ParquetWriter(file, schema, **encoding) as writer:
        waiting: list[pa.Table] = []
        for part in itertools.chain(first, coming):
            waiting.append(part)
            if sum(batch.num_rows for batch in waiting) >= ROW_GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_ROWS)
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_ROWS)


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether a column's first values repeat often enough for a dictionary; a noisy current's do not."""
    some = column.slice(0, LOOKED_AT)
    return bool(pa.types.is_dictionary(column.type) or pc.count_distinct(some).as_py() <= len(some) / 4)
