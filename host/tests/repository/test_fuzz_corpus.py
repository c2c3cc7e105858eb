"""What the fuzzers have found, and what reaches the parsers' corners, is read or refused in one line."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opjoule.base.errors import RecordFault
from opjoule.boards.probe import LINE_MAX, ProbeAnswer, probe_line
from opjoule.energy.operations.board_files import read_events, read_system
from opjoule.energy.operations.tables import OPERATIONS, SYSTEM, read_operations
from opjoule.energy.trace import parquet_file
from opjoule.energy.trace.journal import read_trace
from opjoule.energy.trace.parquet_file import POWER

FUZZ = Path(__file__).parents[3] / "fuzz"
sys.path.insert(0, str(FUZZ))

import python_parsers  # noqa: E402  # the path is set just above
import run as fuzz_run  # noqa: E402


@pytest.mark.parametrize("parser", fuzz_run.PYTHON_PARSERS)
def test_a_parser_takes_what_the_fuzzers_have_found(parser):
    inputs = fuzz_run.inputs_of(parser)
    assert inputs
    for data in inputs:
        python_parsers.feed(parser, data)


def test_every_parser_has_a_corpus_and_is_on_the_list():
    every = {*fuzz_run.PYTHON_PARSERS, *(name for names in fuzz_run.PROGRAMS.values() for name in names)}
    assert {path.stem for path in fuzz_run.CORPUS.glob("*.hex")} == every
    assert set(python_parsers.PARSERS) == set(fuzz_run.PYTHON_PARSERS)


@pytest.mark.parametrize(
    "line",
    [
        '{"board_ns": 1e999, "event": "x"}',
        '{"board_ns": 9223372036854775808, "event": "x"}',
        '{"board_ns": 1, "end_board_ns": -9223372036854775809, "event": "x"}',
        '{"board_ns": 1, "event": "x", "level": 300}',
        '{"board_ns": 1, "event": "\\ud800"}',
        "[" * 100_000,
    ],
)
def test_an_event_that_no_table_holds_is_named(tmp_path, line):
    path = tmp_path / "a.events.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(RecordFault, match="line 1 "):
        read_events(path)


def test_a_sample_that_no_table_holds_is_named(tmp_path):
    path = tmp_path / "a.system.csv"
    names = SYSTEM.names
    path.write_text(",".join(names) + "\n" + ",".join("9" * 30 for _ in names) + "\n")
    with pytest.raises(RecordFault, match="line 2 "):
        read_system(path)


def claims(path, schema, rows):
    """A parquet file of constants: it takes hardly a byte a thousand rows."""
    columns = []
    for field in schema:
        value = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["read"]))
        plain = value if pa.types.is_dictionary(field.type) else pa.array([0]).cast(field.type)
        columns.append(
            pa.repeat(plain[0], rows) if plain is not value else value.take(pa.array(np.zeros(rows, np.int8)))
        )
    table = pa.table(columns, schema=schema)
    pq.write_table(table, path, compression="zstd", row_group_size=rows, data_page_size=1 << 30)


@pytest.mark.parametrize(
    ("name", "schema", "read"),
    [
        ("power.parquet", POWER, lambda path: read_trace(path.parent)),
        ("operations.parquet", OPERATIONS, read_operations),
    ],
)
def test_a_file_that_claims_more_rows_than_its_bytes_hold_fills_no_memory(tmp_path, monkeypatch, name, schema, read):
    monkeypatch.setattr(parquet_file, "ROWS_A_BYTE", 10)
    claims(tmp_path / name, schema, 1_000_000)
    with pytest.raises(RecordFault, match=r"damaged: it claims 1000000 rows in \d+ bytes"):
        read(tmp_path / name)


def test_a_damaged_column_of_a_row_group_is_a_fault_and_does_not_end_the_process(tmp_path):
    """pyarrow ends the process if the metadata of such a column is asked for."""
    path = tmp_path / "power.parquet"
    path.write_bytes(fuzz_run.inputs_of("power-parquet")[-1])
    statements = "group = {}.row_group(0); [group.column(number) for number in range(group.num_columns)]"
    checked = "from opjoule.energy.trace.parquet_file import checked_metadata as ask"
    plain = "from pyarrow.parquet import read_metadata as ask"
    for read, status, words in ((plain, -signal.SIGABRT, "terminate"), (checked, 1, "RecordFault")):
        code = f"import sys; from pathlib import Path; {read}; {statements.format('ask(Path(sys.argv[1]))')}"
        ended = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
        assert ended.returncode == status
        assert words in ended.stderr


@pytest.mark.parametrize("stored", ["parquet", "stream"])
def test_columns_of_a_trace_are_read_by_name_and_each_is_there_once(tmp_path, stored):
    def columns(*names):
        kept = {"meter_ns": [1, 2, 3], "current_a": [0.5, 1.0, 1.5], "voltage_v": [5.0, 5.1, 5.2]}
        kept["clipped"] = [False] * 3
        fields = [*(POWER.field(name) for name in names), pa.field("noted", pa.int64())]
        arrays = [*(kept[name] for name in names), [7, 8, 9]]
        table = pa.table(arrays, schema=pa.schema(fields, POWER.metadata))
        (tmp_path / "raw").mkdir(exist_ok=True)
        if stored == "parquet":
            pq.write_table(table, tmp_path / "power.parquet")
        else:
            with pa.ipc.new_stream(tmp_path / "raw" / "power.arrows", table.schema) as stream:
                stream.write_table(table)
        return read_trace(tmp_path)

    trace = columns("clipped", "voltage_v", "current_a", "meter_ns")
    assert trace.meter_ns.tolist() == [1, 2, 3]
    assert trace.voltage_v.tolist() == [5.0, 5.1, 5.2]
    with pytest.raises(RecordFault, match="2 columns are called 'voltage_v'"):
        columns(*POWER.names, "voltage_v")


@pytest.mark.parametrize(
    "line",
    [
        b'{"mark":"phase-begin","name":"x","board_ns":1e999}',
        b'{"mark":"phase-begin","name":"x","board_ns":"5"}',
        b'{"answer":"whatever","line":5}',
        b'{"answer":["clock"]}',
        b"[" * 100_000,
        b'"mark"',
        b"\xff\xfe",
        b'{"answer":"clock","received_ns":' + b"1" * 5000 + b"}",
    ],
)
def test_what_no_probe_says_is_passed_over(line):
    assert probe_line(line) is None


def test_words_of_a_board_are_cut():
    said = probe_line(b'{"fault":"' + b"x" * 100_000 + b'"}')
    assert isinstance(said, str)
    assert len(said) == 500


def test_the_answer_to_a_whole_signature_is_a_line():
    bits = b"01" * 32_767
    said = probe_line(b'{"answer":"signature","start_ns":1,"end_ns":2,"bits":"' + bits + b'"}')
    assert isinstance(said, ProbeAnswer)
    assert len(bits) * 2 < LINE_MAX
