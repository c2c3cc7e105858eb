"""All Parquet files of a record: checked when they are read; complete or absent, and written in row groups.

The metadata of every file contains its schema's name and version. A stretch of power.parquet is read without the rest.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opjoule.base.errors import NewerSchema, RecordFault
from opjoule.base.files import rewriting
from opjoule.energy.trace.power_trace import Int64Array, PowerTrace

SCHEMA_KEY = b"opjoule.schema"


def versioned(name: str, version: int, **columns: pa.DataType) -> pa.Schema:
    """The columns of a table, with `{"name", "version"}` under the key `opjoule.schema` of the metadata."""
    stated = json.dumps({"name": name, "version": version}).encode()
    return pa.schema(list(columns.items()), {SCHEMA_KEY: stated})


def complete(schema: pa.Schema) -> pa.Schema:
    """The same columns without absent values, so that their files need no mark for each value."""
    return pa.schema([field.with_nullable(False) for field in schema], schema.metadata)


POWER = complete(
    versioned("power", 2, meter_ns=pa.int64(), current_a=pa.float64(), voltage_v=pa.float64(), clipped=pa.bool_())
)
GAPS = versioned(
    "gaps",
    2,
    start_meter_ns=pa.int64(),
    end_meter_ns=pa.int64(),
    lost_samples=pa.int64(),
    charge_c=pa.float64(),
    reason=pa.string(),
    clipped_samples=pa.int64(),
)
BUS = versioned("bus", 1, meter_ns=pa.int64(), voltage_v=pa.float64())
EDGES = versioned("edges", 1, meter_ns=pa.int64(), level=pa.int8(), index=pa.int64())


def check_version(schema: pa.Schema, wanted: pa.Schema, path: Path) -> None:
    """Checks name and version of a file's schema, of which `wanted` is the newest version.

    Raises: RecordFault: the file has no version, an older one, or another table. NewerSchema: a newer version.
    """
    try:
        stored_name, version = _stated(schema)
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        why = "no schema version in its metadata: it is not part of a run record"
        raise RecordFault(f"{path}: {why}") from None
    name, newest = _stated(wanted)
    if stored_name != name:
        raise RecordFault(f"{path}: contains '{stored_name}', expected '{name}'")
    if version > newest:
        raise NewerSchema(path, name, version, newest)
    if version < newest:
        raise RecordFault(f"{path}: schema '{name}' version {version}, this program reads version {newest}")


def _stated(schema: pa.Schema) -> tuple[str, int]:
    stored = json.loads((schema.metadata or {})[SCHEMA_KEY])
    return str(stored["name"]), int(stored["version"])


def check_columns(schema: pa.Schema, wanted: pa.Schema, path: Path) -> None:
    """Checks a table's columns.

    Raises: RecordFault: a column is missing, is there twice or has another type, or a name is not text.
    """
    try:
        names = list(schema.names)
    except UnicodeDecodeError:
        raise RecordFault(f"{path}: damaged: the name of a column is not text") from None
    for field in wanted:
        if (count := names.count(field.name)) != 1:
            what = f"{count} columns are called" if count else "there is no column"
            raise RecordFault(f"{path}: damaged: {what} '{field.name}'")
        types = schema.field(field.name).type, field.type
        if types[0] != types[1] and not all(map(pa.types.is_dictionary, types)):
            raise RecordFault(f"{path}: damaged: column '{field.name}' is {types[0]}")


ROW_GROUP_ROWS: Final = 1 << 20
EXAMINED_ROWS: Final = 1 << 16
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
    repeating = [name for name in others if _repeats(examined[name])]
    encoding = {
        # noise and differences of stamps hardly become smaller
        "compression": {name: "zstd" if name in repeating else "none" for name in schema.names},
        "compression_level": dict.fromkeys(repeating, 1),
        # stamps rise by about the same from row to row, so that a dictionary does not help
        "column_encoding": dict.fromkeys(stamps, "DELTA_BINARY_PACKED"),
        "use_dictionary": repeating,
        "write_statistics": [field.name for field in schema if field.type in (pa.int64(), pa.float64())],
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


COLUMNS = ["meter_ns", "current_a", "voltage_v"]
KEPT = 3
"""Number of row groups that stay in memory."""


class StretchReader:
    """Reads a row group at a time; the last few stay in memory."""

    def __init__(self, path: Path) -> None:
        """Raises: RecordFault: the file is not readable."""
        self._file, self._path = open_parquet(path, POWER), path
        self._group = lru_cache(KEPT)(self._read)
        # The times are read, not taken from the file's statistics: on damaged ones pyarrow would end the process.
        with readable(path):
            firsts = [self._first_of(number) for number in range(self._file.num_row_groups)]
        self._first_ns = np.array([first_ns for first_ns in firsts if first_ns is not None], np.int64)

    def _first_of(self, group: int) -> int | None:
        """The time of a row group's first sample; None if it has none."""
        batches = self._file.iter_batches(1, row_groups=[group], columns=COLUMNS[:1])
        return next((int(batch.column(0)[0].as_py()) for batch in batches), None)

    def between(self, start_ns: int, end_ns: int) -> PowerTrace:
        """The samples of a stretch of the meter's clock and two more on either side, as recorded, without gaps."""
        first = max(int(np.searchsorted(self._first_ns, start_ns, "right")) - 1, 0)
        last = max(int(np.searchsorted(self._first_ns, end_ns, "left")), first + 1)
        read = self._groups(first, last)
        some = around(read.meter_ns, start_ns, end_ns)
        before, behind = first > 0 and some.start == 0, last < self._first_ns.size and some.stop > len(read)
        if before or behind:
            read = self._groups(first - before, last + behind)
            some = around(read.meter_ns, start_ns, end_ns)
        return PowerTrace(read.meter_ns[some], read.current_a[some], read.voltage_v[some])

    def _groups(self, first: int, last: int) -> PowerTrace:
        parts = [self._group(number) for number in range(first, last)]
        if len(parts) == 1:
            return parts[0]
        return PowerTrace.of(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))

    def _read(self, group: int) -> PowerTrace:
        with readable(self._path):
            table = self._file.read_row_group(group, columns=COLUMNS)
            return PowerTrace.of(*(table[name].to_numpy() for name in COLUMNS))


def around(meter_ns: Int64Array, start_ns: int, end_ns: int) -> slice:
    """The samples of a stretch and up to two more on either side."""
    first, last = np.searchsorted(meter_ns, [start_ns, end_ns]).tolist()
    return slice(max(first - 2, 0), last + 2)
