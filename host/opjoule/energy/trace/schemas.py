"""Columns of the trace files; the metadata of every file contains its schema's name and version."""

import json
from pathlib import Path

import pyarrow as pa

from opjoule.base.errors import NewerSchema, RecordFault

SCHEMA_KEY = b"opjoule.schema"


def versioned(name: str, version: int, **columns: pa.DataType) -> pa.Schema:
    """The columns of a table, with `{"name", "version"}` under the key `opjoule.schema` of the metadata."""
    stated = json.dumps({"name": name, "version": version}).encode()
    return pa.schema(list(columns.items()), {SCHEMA_KEY: stated})


POWER = versioned("power", 2, meter_ns=pa.int64(), current_a=pa.float64(), voltage_v=pa.float64(), clipped=pa.bool_())
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
