"""The board's samples of one repeat, whatever version of the record holds them."""

from __future__ import annotations

import pyarrow as pa

from opjoule.operations.board_files import of_loader_alone, read_system
from opjoule.record.run_record import RunRecord


def read_samples(record: RunRecord, repeat: int) -> pa.Table:
    """The samples around one run.

    Records from before the probe have a file for each loader; on a simulated board of theirs the loader alone counts.

    Raises: RecordFault: the samples are absent, unreadable, or were changed.
    """
    earlier = f"raw/run-{repeat}.system.csv"
    if not record.path(earlier).exists():
        return read_system(record.intact(f"raw/repeat-{repeat}.system.csv")).table
    samples = read_system(record.intact(earlier)).table
    return of_loader_alone(samples) if record.simulated else samples
