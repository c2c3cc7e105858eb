"""power.parquet is written while its journal is read."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet as pq
import pytest
from opjoule.trace import power_file
from opjoule.trace.journal import TraceJournal, read_trace, to_parquet
from opjoule.trace.power_file import WAITING, PowerFile


def journal(directory, batches=3, rows=100, bus=False):
    """A trace of so many flushes."""
    written = TraceJournal(directory)
    for at in range(batches):
        meter_ns = (np.arange(rows, dtype=np.int64) + at * rows) * 1000
        if bus:
            written.append_bus(int(meter_ns[0]), 5.0)
        written.append_samples(meter_ns, np.linspace(0.1, 0.2, rows), np.full(rows, 5.0))
        written.flush()
    written.close()


def read_with(file, directory):
    """The trace, its samples given to the file from another thread."""
    with ThreadPoolExecutor(1) as beside:
        made = beside.submit(file.write)
        try:
            trace = read_trace(directory, also=file.add)
        finally:
            file.end(whole=True)
        return trace, made.result()


def test_the_file_is_the_one_that_is_made_from_the_journal_alone(tmp_path):
    for name in ("beside", "alone"):
        journal(tmp_path / name, batches=WAITING + 6)
    trace, made = read_with(PowerFile.of(tmp_path / "beside"), tmp_path / "beside")
    to_parquet(tmp_path / "alone")
    assert made == [tmp_path / "beside" / "power.parquet"]
    assert len(trace) == 100 * (WAITING + 6)
    assert made[0].read_bytes() == (tmp_path / "alone" / "power.parquet").read_bytes()
    assert [path.name for path in to_parquet(tmp_path / "beside", made_before=made)] == [
        "gaps.parquet",
        "edges.parquet",
    ]


def test_a_trace_that_is_not_whole_leaves_no_file(tmp_path):
    journal(tmp_path)
    file = PowerFile.of(tmp_path)
    read_trace(tmp_path, also=file.add)
    file.end(whole=False)
    assert file.write() == []
    assert not list(tmp_path.glob("power*"))


def test_a_file_that_cannot_be_written_keeps_nobody_waiting(tmp_path, monkeypatch):
    """The medium fills up after the first batch, while more come than may wait."""
    journal(tmp_path, batches=WAITING + 40)

    def full(path, schema, tables):
        next(iter(tables))
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(power_file, "write_parquet", full)
    with pytest.raises(OSError, match="No space left"):
        read_with(PowerFile.of(tmp_path), tmp_path)


def test_a_trace_whose_voltages_are_not_the_journals_is_written_when_it_is_known(tmp_path):
    journal(tmp_path / "bus", bus=True)
    assert PowerFile.of(tmp_path / "bus") is None
    journal(tmp_path / "made")
    to_parquet(tmp_path / "made")
    assert PowerFile.of(tmp_path / "made") is None
    assert pq.read_metadata(tmp_path / "made" / "power.parquet").num_rows == 300
