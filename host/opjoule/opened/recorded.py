"""The trace and the tables of a record, each checked against its checksum as it is read."""

from __future__ import annotations

import pyarrow as pa

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.evaluation.corrected_trace import CorrectedTrace
from opjoule.operations.tables import read_parquet
from opjoule.record.run_record import RunRecord
from opjoule.trace.journal import read_trace
from opjoule.trace.power_trace import PowerTrace


def table_of(record: RunRecord, name: str, newest: int) -> pa.Table:
    """One of a record's tables, of the schema version `newest`.

    Raises: RecordFault: it is absent, damaged, or was changed since it was recorded.
    """
    return read_parquet(record.intact(f"{name}.parquet"), name, newest)


def corrected_trace(record: RunRecord) -> tuple[PowerTrace, ErrorBounds | None]:
    """The trace, corrected by its sensor's calibration, and the sensor's error bounds; None where they are not known.

    Raises: RecordFault: it is absent, damaged, or was changed since it was recorded.
    """
    record.check_beside()
    names = "power", "gaps", "bus"
    files = [*(f"{name}.parquet" for name in names), *(f"raw/{name}.arrows" for name in names)]
    first = files[: len(names)] if (record.directory / files[0]).exists() else files
    for name in first:
        record.intact(name)
    trace, sensor = read_trace(record.directory), record.run.sensor
    for name in files:  # the journals, too: their checksums took until now
        record.intact(name)
    if sensor is None:
        return trace, None
    corrected = CorrectedTrace.of(trace, sensor, overwrite=True)
    return corrected.trace, corrected.sensor
