"""Columns of the trace files; the metadata of every file contains its schema's name and version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from opjoule.errors import NewerSchema, RecordFault

SCHEMA_KEY = b"opjoule.schema"


def with_version(schema: pa.Schema, name: str, version: int, **metadata: str) -> pa.Schema:
    """The schema with `{"name", "version"}` under the key `opjoule.schema`, and with further text metadata."""
    entries = {SCHEMA_KEY: json.dumps({"name": name, "version": version}).encode()}
    entries |= {key.encode(): value.encode() for key, value in metadata.items()}
    return schema.with_metadata(entries)


def check_version(schema: pa.Schema, name: str, newest: int, path: Path) -> int:
    """The file's schema version.

    Raises: RecordFault: the file has no version, an older one, or another table. NewerSchema: a newer version.
    """
    metadata: Mapping[bytes, bytes] = schema.metadata or {}
    try:
        stored = json.loads(metadata[SCHEMA_KEY])
        stored_name, version = str(stored["name"]), int(stored["version"])
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        why = "no schema version in its metadata: it is not part of a run record"
        raise RecordFault(f"{path}: {why}") from None
    if stored_name != name:
        raise RecordFault(f"{path}: contains '{stored_name}', expected '{name}'")
    if version > newest:
        raise NewerSchema(path, name, version, newest)
    if version < newest:
        raise RecordFault(f"{path}: schema '{name}' version {version}, this program reads version {newest}")
    return version


ROWS_A_BYTE: Final = 1000
"""Maximum number of rows a byte of a record's files; a file that claims more is damaged and would fill the memory."""


def check_rows(claimed: pq.FileMetaData, path: Path) -> int:
    """The number of rows that a parquet file claims, in all and in its parts.

    Raises: RecordFault: more than fit into its bytes, or its parts contradict that number.
    """
    size, rows = path.stat().st_size, int(claimed.num_rows)
    if rows > ROWS_A_BYTE * size:
        raise RecordFault(f"{path}: damaged: it claims {rows} rows in {size} bytes")
    # Their columns are not asked for: on damaged ones pyarrow would end the process.
    groups = (claimed.row_group(number) for number in range(claimed.num_row_groups))
    if sum(group.num_rows for group in groups) != rows:
        raise RecordFault(f"{path}: damaged: its parts do not have the {rows} rows that it claims")
    return rows


def check_columns(schema: pa.Schema, wanted: pa.Schema, path: Path) -> None:
    """Checks a table's columns. Raises: RecordFault: a column is missing, is there twice or has another type."""
    names = names_of(schema, path)
    for field in wanted:
        if (count := names.count(field.name)) != 1:
            what = f"{count} columns are called" if count else "there is no column"
            raise RecordFault(f"{path}: damaged: {what} '{field.name}'")
        types = schema.field(field.name).type, field.type
        if types[0] != types[1] and not all(map(pa.types.is_dictionary, types)):
            raise RecordFault(f"{path}: damaged: column '{field.name}' is {types[0]}")


POWER_VERSION = 2
_SAMPLE = {
    "meter_ns": pa.int64(),
    "current_a": pa.float64(),
    "voltage_v": pa.float64(),
    "clipped": pa.bool_(),
}
POWER = with_version(pa.schema(_SAMPLE), "power", POWER_VERSION)

GAPS_VERSION = 2
_STRETCH = {"start_meter_ns": pa.int64(), "end_meter_ns": pa.int64()}
_LOSS = {"lost_samples": pa.int64(), "charge_c": pa.float64(), "reason": pa.string()}
GAPS = with_version(pa.schema({**_STRETCH, **_LOSS, "clipped_samples": pa.int64()}), "gaps", GAPS_VERSION)

BUS_VERSION = 1
BUS = with_version(pa.schema({"meter_ns": pa.int64(), "voltage_v": pa.float64()}), "bus", BUS_VERSION)

EDGES_VERSION = 1
_EDGE = {"meter_ns": pa.int64(), "level": pa.int8(), "index": pa.int64()}
EDGES = with_version(pa.schema(_EDGE), "edges", EDGES_VERSION)


def names_of(schema: pa.Schema, path: Path) -> list[str]:
    """The names of a table's columns. Raises: RecordFault: a name is not text."""
    try:
        return list(schema.names)
    except UnicodeDecodeError:
        raise RecordFault(f"{path}: damaged: the name of a column is not text") from None
