"""The trace's files: appended, readable after a kill, converted whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.base.errors import RecordFault
from opjoule.energy.trace import journal as journal_module
from opjoule.energy.trace.journal import AppendStream, TraceJournal, read_edges, read_trace, to_parquet
from opjoule.energy.trace.power_trace import Gap, PowerTrace

HOST = Path(__file__).parents[3]


def append(journal, first, count):
    """`count` samples 1000 ns apart from number `first` on."""
    number = np.arange(first, first + count, dtype=np.int64)
    journal.append_samples(1000 * number, number * 0.5, np.full(count, 5.0))


def recorded(directory):
    """100 samples, a gap of 3, 100 samples, two edges; not closed."""
    journal = TraceJournal(directory)
    append(journal, 0, 100)
    journal.append_gap(Gap.between(99_000, 103_000, 3, "frame lost", 0.7))
    append(journal, 103, 100)
    journal.append_edge(2_500, 1, 0)
    journal.append_edge(9_500, 0, 1)
    return journal


def check_contents(directory):
    trace, edges = read_trace(directory), read_edges(directory)
    assert len(trace) == 203 and int(trace.good.sum()) == 200 and trace.lost_samples == 3
    assert trace.meter_ns.tolist() == list(range(0, 203_000, 1000))
    assert np.isnan(trace.power_w[100:103]).all() and trace.power_w[103] == 103 * 0.5 * 5.0
    (gap,) = trace.gaps
    assert (gap.start_meter_ns, gap.end_meter_ns, gap.reason) == (99_500, 102_500, "frame lost")
    assert gap.charge_c == pytest.approx(0.7 * 3e-6)
    assert edges.meter_ns.tolist() == [2_500, 9_500] and edges.level.tolist() == [1, 0]


def test_streams_and_parquet_hold_the_same_trace(tmp_path):
    journal = recorded(tmp_path)
    journal.flush()
    check_contents(tmp_path)
    journal.close()
    check_contents(tmp_path)
    assert [path.name for path in to_parquet(tmp_path)] == ["gaps.parquet", "edges.parquet", "power.parquet"]
    for stream in (tmp_path / "raw").glob("*.arrows"):
        stream.rename(stream.with_suffix(".away"))
    check_contents(tmp_path)


KILLED = """
import sys; sys.path[:0] = sys.argv[2:]
from pathlib import Path
from test_trace import append, recorded
journal = recorded(Path(sys.argv[1]))
journal.flush()
append(journal, 203, 50)
print("ready", flush=True)
input()
"""


def test_whoever_reads_a_running_journal_finds_the_voltages_up_to_its_last_current(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(AppendStream, "flush", lambda stream: flushed.append(stream._path.name))
    writing = TraceJournal(tmp_path)
    writing.append_samples(np.array([1]), np.ones(1), np.ones(1))
    writing.append_bus(2, 5.0)
    flushed.clear()
    writing.flush()
    assert flushed.index("bus.arrows") < flushed.index("power.arrows")
    monkeypatch.undo()
    writing.close()


def test_a_killed_recorder_leaves_everything_up_to_its_last_flush(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(HOST), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        assert recorder.stdout.readline() == b"ready\n"
        os.kill(recorder.pid, signal.SIGKILL)
    check_contents(tmp_path)
    to_parquet(tmp_path)
    check_contents(tmp_path)


def test_a_stream_torn_anywhere_yields_its_whole_batches(tmp_path):
    journal = TraceJournal(tmp_path / "run")
    path = tmp_path / "run" / "raw" / "power.arrows"
    ends = [path.stat().st_size]
    for first in range(0, 50, 10):
        append(journal, first, 10)
        journal.flush()
        ends.append(path.stat().st_size)
    whole = path.read_bytes()
    for size in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:size])
        batches = max(sum(size >= end for end in ends) - 1, 0)
        assert len(read_trace(tmp_path / "run")) == 10 * batches


def test_conversion_keeps_metadata_and_leaves_no_temporary_file(tmp_path):
    recorded(tmp_path).close()
    to_parquet(tmp_path)
    assert not list(tmp_path.glob("*.tmp"))
    assert pq.read_schema(tmp_path / "power.parquet").metadata[b"opjoule.schema"] == b'{"name": "power", "version": 2}'


def test_clipped_samples_keep_their_mark_in_streams_and_parquet(tmp_path):
    journal = recorded(tmp_path)
    clipped = np.array([False, True, True])
    journal.append_samples(np.array([203, 204, 205]) * 1000, np.ones(3), np.full(3, 5.0), clipped=clipped)
    journal.append_gap(Gap.between(205_000, 210_000, 4, "frame lost", 0.7, clipped_samples=2))
    journal.close()
    for _ in ("from the streams", "from parquet"):
        trace = read_trace(tmp_path)
        assert np.flatnonzero(trace.clipped).tolist() == [204, 205]
        assert [gap.clipped_samples for gap in trace.gaps] == [0, 2]
        assert trace.clipped_samples == 4
        to_parquet(tmp_path)


@pytest.mark.parametrize("name", ["power.parquet", "raw/power.arrows"])
def test_a_trace_of_another_version_is_refused(tmp_path, name):
    recorded(tmp_path).close()
    to_parquet(tmp_path)
    older = pq.read_table(tmp_path / "power.parquet").replace_schema_metadata(
        {"opjoule.schema": '{"name": "power", "version": 1}'}
    )
    (tmp_path / "power.parquet").unlink()
    if name.endswith("parquet"):
        pq.write_table(older, tmp_path / name)
    else:
        with pa.ipc.new_stream(str(tmp_path / name), older.schema) as stream:
            stream.write_table(older)
    with pytest.raises(RecordFault, match=r"version 1, .* version 2"):
        read_trace(tmp_path)


def test_raw_data_is_never_overwritten(tmp_path):
    recorded(tmp_path).close()
    with pytest.raises(FileExistsError):
        TraceJournal(tmp_path)


def test_samples_out_of_order_are_refused(tmp_path):
    journal = recorded(tmp_path)
    with pytest.raises(ValueError, match="out of order"):
        append(journal, 202, 5)


def test_unreadable_files_are_one_line(tmp_path):
    with pytest.raises(RecordFault, match="no power trace"):
        read_trace(tmp_path)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "power.arrows").write_bytes(b"nonsense")
    with pytest.raises(RecordFault, match=r"power\.arrows") as caught:
        read_trace(tmp_path)
    assert "\n" not in str(caught.value)
    (tmp_path / "power.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(RecordFault, match=r"power\.parquet"):
        read_trace(tmp_path)


def test_a_parquet_file_without_or_with_a_newer_schema_version_is_refused(tmp_path):
    table = pa.table({"meter_ns": [1], "current_a": [1.0], "voltage_v": [1.0]})
    pq.write_table(table, tmp_path / "power.parquet")
    with pytest.raises(RecordFault, match="no schema version"):
        read_trace(tmp_path)
    newer = table.replace_schema_metadata({"opjoule.schema": '{"name": "power", "version": 99}'})
    pq.write_table(newer, tmp_path / "power.parquet")
    with pytest.raises(RecordFault, match="version 99"):
        read_trace(tmp_path)


@given(st.integers(0, 2**60), st.integers(1, 1000), st.integers(1_000, 2_000_000))
def test_a_gap_covers_the_cells_of_its_lost_conversions(last_good_ns, lost, period_ns):
    next_good_ns = last_good_ns + (lost + 1) * period_ns
    gap = Gap.between(last_good_ns, next_good_ns, lost, "frame lost")
    assert abs(gap.duration_ns - lost * period_ns) <= 1
    assert np.abs(gap.lost_centres_ns() - last_good_ns - period_ns * np.arange(1, lost + 1)).max() <= 1


@pytest.mark.parametrize(
    ("meter_ns", "current_a", "said"),
    [([1, 1], [0.0, 0.0], "after sample 0"), ([1, 2], [0.0], "differ in length")],
)
def test_a_trace_that_makes_no_sense_is_refused(meter_ns, current_a, said):
    with pytest.raises(ValueError, match=said):
        PowerTrace.of(meter_ns, current_a, [5.0] * len(meter_ns))


def test_a_trace_that_grows_while_it_is_read_is_whole_up_to_where_it_was_read(tmp_path, monkeypatch):
    """As where a point of a calibration is taken: the stream is longer than it was when its reading began."""
    journal = TraceJournal(tmp_path)
    stamps = np.arange(1, 501, dtype=np.int64) * 1_000_000

    def one_batch_then_another(path, name):
        yield from read_stream(path, name)
        if name != "power":
            return
        journal.append_samples(stamps + 10**9, np.full(500, 2.0), np.full(500, 5.0))
        journal.flush()
        yield list(read_stream(path, name))[-1]

    read_stream = journal_module.read_stream
    journal.append_samples(stamps, np.ones(500), np.full(500, 5.0))
    journal.flush()
    monkeypatch.setattr(journal_module, "read_stream", one_batch_then_another)
    trace = read_trace(tmp_path)
    assert len(trace) == 1000 and trace.current_a.sum() == 1500.0
    journal.close()
