"""Samples of any stretch of power.parquet, read without the rest of the file."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from opjoule.energy.trace.parquet_file import open_parquet, readable
from opjoule.energy.trace.power_trace import Int64Array, PowerTrace
from opjoule.energy.trace.schemas import POWER

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
