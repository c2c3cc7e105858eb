"""Parquet files of what the loader wrote, its text files, and latencies."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.base.errors import RecordFault
from opjoule.energy.operations import tables
from opjoule.energy.operations.board_files import read_events, read_system, sync_edges
from opjoule.energy.operations.operation_table import LOADER_KINDS, PART_ROWS, OperationTable, latency_s, median_ns
from opjoule.energy.operations.tables import EVENTS, SYSTEM, read_operations, read_parquet, write_operations
from opjoule.energy.trace import parquet_file
from opjoule.energy.trace.parquet_file import write_parquet


def some_operations(count, seed=0):
    rng = np.random.default_rng(seed)
    return OperationTable(
        np.cumsum(rng.integers(1, 1000, count)).astype(np.int64),
        rng.integers(1, 10**6, count),
        rng.integers(0, len(LOADER_KINDS), count).astype(np.uint8),
        rng.integers(0, 4, count).astype(np.uint16),
        rng.integers(0, 10**4, count),
        rng.random(count) > 0.1,
    )


def rows(table):
    return [
        column.tolist()
        for column in (table.board_ns, table.duration_ns, table.kind, table.thread, table.bytes, table.ok)
    ]


@pytest.mark.parametrize(("parts", "groups"), [([], []), ([30] * 7, [100, 20, 90]), ([250], [100, 100, 50])])
def test_small_parts_of_a_parquet_file_share_a_row_group(tmp_path, monkeypatch, parts, groups):
    monkeypatch.setattr(parquet_file, "ROW_GROUP_ROWS", 100)
    path, schema = tmp_path / "numbers.parquet", pa.schema([("number", pa.int64())])
    write_parquet(path, schema, (pa.table({"number": [*range(rows)]}, schema) for rows in parts))
    file = pq.ParquetFile(path)
    assert file.read().column("number").to_pylist() == [number for rows in parts for number in range(rows)]
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == groups


def test_only_columns_whose_values_come_back_have_a_dictionary(tmp_path):
    path, schema = (
        tmp_path / "numbers.parquet",
        pa.schema([("noisy", pa.float64()), ("steady", pa.float64())]),
    )
    noisy = np.random.default_rng(1).random(1000)
    write_parquet(path, schema, [pa.table({"noisy": noisy, "steady": np.full(1000, 5.0)}, schema)])
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert [group.column(column).has_dictionary_page for column in (0, 1)] == [False, True]
    assert pq.read_table(path)["noisy"].to_numpy().tolist() == noisy.tolist()


@pytest.mark.parametrize("count", [0, 1, 100, 250])
def test_operations_come_back_from_parquet_in_row_groups(tmp_path, monkeypatch, count):
    for module in (tables, parquet_file):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", 100)
    path = tmp_path / "operations.parquet"
    write_operations(path, some_operations(count))
    assert rows(read_operations(path)) == rows(some_operations(count))
    file = pq.ParquetFile(path)
    assert file.num_row_groups == max(-(-count // 100), 1)
    assert file.schema_arrow.metadata[b"opjoule.schema"] == b'{"name": "operations", "version": 1}'
    assert set(file.read().column("kind").to_pylist()) <= set(LOADER_KINDS)
    assert not list(tmp_path.glob("*.tmp"))


def test_an_absent_or_corrupt_parquet_file_is_one_line(tmp_path):
    with pytest.raises(RecordFault, match=r"operations\.parquet.* record"):
        read_operations(tmp_path / "operations.parquet")
    (tmp_path / "operations.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordFault, match=r"operations\.parquet.* readable"):
        read_operations(tmp_path / "operations.parquet")


def test_sorting_puts_threads_together_by_start():
    table = some_operations(50)
    order = np.random.default_rng(1).permutation(50)
    assert rows(table.select(order).sorted()) == rows(table)
    halves = OperationTable.concatenate([table.select(slice(25, 50)), table.select(slice(25))])
    assert rows(halves.sorted()) == rows(table)
    assert sum(table.counts().values()) == 50


@given(st.lists(st.integers(1, 10**9) | st.integers(1, 10**10), min_size=1, max_size=300))
@settings(max_examples=60, deadline=None)
def test_percentiles_are_nearest_rank(durations):
    latency = latency_s(np.array(durations, np.int64))
    for percent, value in ((50, latency.p50), (95, latency.p95), (99, latency.p99)):
        value_ns = round(value * 1e9)
        assert value_ns in durations
        at_most = sum(duration <= value_ns for duration in durations)
        below = sum(duration < value_ns for duration in durations)
        assert at_most >= percent / 100 * len(durations) > below
    assert round(latency.max * 1e9) == max(durations)
    assert latency.mean == pytest.approx(sum(durations) / len(durations) * 1e-9)


@given(st.lists(st.integers(1, 20) | st.integers(1, 10**15), min_size=1, max_size=300))
@settings(max_examples=60, deadline=None)
def test_the_median_is_numpys(durations):
    assert median_ns(np.array(durations, np.int64)) == np.median(durations)


def test_the_rows_of_a_stretch_are_one_table():
    """Whatever needs their latencies takes those that were computed first."""
    table = some_operations(50)
    ends = int(table.board_ns[10]), int(table.board_ns[40])
    assert rows(table.started_in(*ends)) == rows(table.select(slice(10, 40)))
    assert table.started_in(*ends) is table.started_in(*ends) is not table.started_in(ends[0], ends[1] + 1)


@pytest.mark.parametrize("greatest", [10**4, 1 << 50])
def test_bytes_add_up_exactly(greatest):
    """In floating point, odd numbers above 2^53 would not."""
    table = some_operations(PART_ROWS + 1000)
    table = replace(table, bytes=table.bytes * (greatest // 10**4) + 1)
    expected = {name: sum(table.bytes[table.of_kind(name)].tolist()) for name in table.kinds}
    assert table.bytes_by_kind() == expected


def test_latency_by_kind_leaves_out_kinds_that_do_not_occur():
    table = some_operations(100)
    reads = table.select(table.kind == 0)
    assert reads.latency_by_kind == {"read": latency_s(reads.duration_ns)}
    assert OperationTable.empty().latency is None


EVENT_LINES = [
    {"event": "compaction", "board_ns": 300, "end_board_ns": 500, "detail": "level 0 to 1"},
    {"event": "sync-edge", "board_ns": 100, "u_ns": 250.0, "level": 1},
    {"event": "flush", "board_ns": 200, "end_board_ns": 250, "detail": {"bytes": 4096}},
]


def test_events_are_sorted_and_their_sync_edges_found(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in EVENT_LINES) + '{"event": "syn')
    read = read_events(path)
    assert read.column("event").to_pylist() == ["sync-edge", "flush", "compaction"]
    assert read.column("detail").to_pylist() == [None, '{"bytes": 4096}', "level 0 to 1"]
    edges = sync_edges(read)
    assert (edges.board_ns.tolist(), edges.level.tolist(), edges.u_ns.tolist()) == ([100], [1], [250.0])
    write_parquet(tmp_path / "events.parquet", EVENTS, [read])
    assert read_parquet(tmp_path / "events.parquet", "events").equals(read)


def test_a_bad_event_names_file_and_line(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(EVENT_LINES[0]) + '\n{"event": "flush"}\n')
    with pytest.raises(RecordFault, match=r"events\.jsonl: line 2 "):
        read_events(path)


def system_lines(count):
    header = ",".join(SYSTEM.names)
    return [
        header,
        *(",".join(str(row * 100 + column) for column in range(len(SYSTEM.names))) for row in range(count)),
    ]


def test_system_samples_are_read_in_any_column_order(tmp_path):
    path = tmp_path / "system.csv"
    path.write_text("\n".join(system_lines(3)) + "\n77,1")
    read = read_system(path)
    assert len(read) == 3
    assert read.column("rss_anon_bytes").to_pylist() == [9, 109, 209]
    backwards = [",".join(reversed(line.split(","))) for line in system_lines(3)]
    path.write_text("\n".join(backwards) + "\n")
    assert read_system(path).equals(read)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["board_ns,cpu_busy_s"], "line 1: no column 'process_cpu_s'"),
        ([*system_lines(1), "1,2,3"], "line 3 "),
        ([*system_lines(5)[:4], "x", *system_lines(2)[1:]], "line 5 .*: 'x'"),
        ([*system_lines(0), ",".join(["x"] * len(SYSTEM.names))], "line 2 "),
        ([], "empty"),
    ],
)
def test_a_bad_system_file_names_the_line(tmp_path, lines, said):
    path = tmp_path / "system.csv"
    path.write_text("".join(line + "\n" for line in lines))
    with pytest.raises(RecordFault, match=said):
        read_system(path)


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)))
@settings(max_examples=100, deadline=None)
def test_no_text_brings_anything_but_a_record_fault(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("text") / "file"
    header = (",".join(SYSTEM.names) + "\n").encode()
    for read, start in ((read_events, b""), (read_system, b""), (read_system, header)):
        path.write_bytes(start + content)
        try:
            read(path)
        except RecordFault as fault:
            assert str(path) in str(fault)
