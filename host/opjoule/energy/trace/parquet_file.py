"""All Parquet files of a record: checked when they are read; complete or absent, and written in row groups."""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opjoule.base.errors import RecordFault
from opjoule.base.files import rewriting
from opjoule.energy.trace.schemas import check_columns, check_version

ROW_GROUP_ROWS: Final = 1 << 20
EXAMINED_ROWS: Final = 1 << 18
"""Number of first rows that decide whether a column gets a dictionary."""
ROWS_A_BYTE: Final = 1000
"""Maximum number of rows a byte of a record's files; a file that claims more is damaged and would fill the memory."""


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Context in which a parquet file that is absent or cannot be read raises RecordFault."""
    try:
        yield
    except FileNotFoundError:
        raise RecordFault(f"{path}: not in this record") from None
    except (pa.ArrowException, ValueError, OSError) as fault:
        raise RecordFault(f"{path}: not a readable parquet file: {str(fault).splitlines()[0]}") from None


def open_parquet(path: Path, wanted: pa.Schema, columns: Iterable[str] | None = None) -> pq.ParquetFile:
    """A file of a record in which these columns of a schema can be read; None: all of them.

    Raises: RecordFault: absent, corrupt, of another kind or older. NewerSchema: a newer version.
    """
    with readable(path):
        file = pq.ParquetFile(path)
        _check_rows(file.metadata, path)
        check_version(file.schema_arrow, wanted, path)
    needed = wanted.names if columns is None else columns
    check_columns(file.schema_arrow, pa.schema([wanted.field(name) for name in needed]), path)
    return file


def checked_metadata(path: Path) -> pq.FileMetaData:
    """Metadata of a parquet file whose columns in each row group can be asked for.

    pyarrow ends the process when it is asked for a damaged one; reading a row of it first is a fault like any other.
    Raises: RecordFault: the file is damaged.
    """
    with readable(path):
        file = pq.ParquetFile(path)
        _check_rows(file.metadata, path)
        for group in range(file.num_row_groups):
            next(file.iter_batches(1, row_groups=[group]), None)
    return file.metadata


def _check_rows(claimed: pq.FileMetaData, path: Path) -> None:
    """Checks the number of rows that a parquet file claims, in all and in its parts.

    Raises: RecordFault: more than fit into its bytes, or its parts contradict that number.
    """
    size, rows = path.stat().st_size, int(claimed.num_rows)
    if rows > ROWS_A_BYTE * size:
        raise RecordFault(f"{path}: damaged: it claims {rows} rows in {size} bytes")
    # Their columns are not asked for: on damaged ones pyarrow would end the process.
    groups = (claimed.row_group(number) for number in range(claimed.num_row_groups))
    if sum(group.num_rows for group in groups) != rows:
        raise RecordFault(f"{path}: damaged: its parts do not have the {rows} rows that it claims")


def write_parquet(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Writes a Parquet file part by part under a temporary name, then renames it, so that it is complete or absent.

    Small parts are joined until they fill a row group.
    """
    coming = iter(parts)
    first: list[pa.Table] = []
    while sum(part.num_rows for part in first) < EXAMINED_ROWS and (part := next(coming, None)) is not None:
        first.append(part)
    examined = pa.concat_tables(first or [schema.empty_table()])
    stamps = [field.name for field in schema if field.type == pa.int64()]
    others = [name for name in schema.names if name not in stamps]
    encoding = {
        "compression": "zstd",
        "compression_level": 1,
        # stamps rise by about the same from row to row, so that a dictionary does not help
        "column_encoding": dict.fromkeys(stamps, "DELTA_BINARY_PACKED"),
        "use_dictionary": [name for name in others if _repeats(examined[name])],
    }
    with rewriting(path) as file, pq.ParquetWriter(file, schema, **encoding) as writer:
        waiting: list[pa.Table] = []
        rows = 0
        for part in itertools.chain(first, coming):
            waiting.append(part)
            rows += part.num_rows
            if rows >= ROW_GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_ROWS)
                waiting, rows = [], 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_ROWS)


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether values repeat often enough for a dictionary: a converter's steps do, a noisy current does not."""
    some = column.slice(0, EXAMINED_ROWS)
    return bool(pa.types.is_dictionary(column.type) or pc.count_distinct(some).as_py() <= len(some) / 4)
