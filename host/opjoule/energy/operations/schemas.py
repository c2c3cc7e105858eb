"""Columns of the parquet files made from the loader's and the probe's files."""

from typing import Final

import pyarrow as pa

from opjoule.energy.trace.schemas import versioned

OPERATIONS: Final = versioned(
    "operations",
    1,
    board_ns=pa.int64(),
    duration_ns=pa.int64(),
    kind=pa.dictionary(pa.int8(), pa.string()),
    thread=pa.uint16(),
    bytes=pa.int64(),
    ok=pa.bool_(),
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
