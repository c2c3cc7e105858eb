"""Columns of the trace files; every file carries its schema's name and version in its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from opjoule.errors import NewerSchema, RecordFault

SCHEMA_KEY = b"opjoule.schema"


def with_version(schema: pa.Schema, name: str, version: int, **metadata: str) -> pa.Schema:
    """The schema with `{"name", "version"}` under the key `opjoule.schema`, and further text metadata."""
    entries = {SCHEMA_KEY: json.dumps({"name": name, "version": version}).encode()}
    entries |= {key.encode(): value.encode() for key, value in metadata.items()}
    return schema.with_metadata(entries)


def check_version(schema: pa.Schema, name: str, newest: int, path: Path) -> int:
    """The file's schema version.

    Raises: RecordFault: the file carries no version, is of another kind, or newer than this program reads.
    """
    metadata: Mapping[bytes, bytes] = schema.metadata or {}
    try:
        found = json.loads(metadata[SCHEMA_KEY])
        found_name, version = str(found["name"]), int(found["version"])
    except (KeyError, ValueError, TypeError):
        raise RecordFault(f"{path}: no schema version in its metadata: not of a run record") from None
    if found_name != name:
        raise RecordFault(f"{path}: holds '{found_name}', expected '{name}'")
    if version > newest:
        raise NewerSchema(path, name, version, newest)
    return version


POWER_VERSION = 1
POWER = with_version(
    pa.schema([("meter_ns", pa.int64()), ("current_a", pa.float64()), ("voltage_v", pa.float64())]),
    "power",
    POWER_VERSION,
)

GAPS_VERSION = 1
GAPS = with_version(
    pa.schema(
        [
            ("start_meter_ns", pa.int64()),
            ("end_meter_ns", pa.int64()),
            ("lost_samples", pa.int64()),
            ("charge_c", pa.float64()),
            ("reason", pa.string()),
        ]
    ),
    "gaps",
    GAPS_VERSION,
)

EDGES_VERSION = 1
EDGES = with_version(
    pa.schema([("meter_ns", pa.int64()), ("level", pa.int8()), ("index", pa.int64())]), "edges", EDGES_VERSION
)
