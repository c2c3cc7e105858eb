"""The operation log's reader against a plain writer of the documented grammar."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operation_log_writer import block, byte_size, file_header, log, operation, varint
from opjoule.base.errors import OperationLogFault, RecordFault
from opjoule.energy.operations.oplog import decode_varints, read_operation_log

U64 = st.integers(0, 2**64 - 1)
SHORT = st.integers(0, 2**30)


def log_file(tmp_path, *parts: bytes):
    path = tmp_path / "operations.oplog"
    path.write_bytes(b"".join(parts))
    return path


@given(st.lists(st.one_of(st.integers(0, 300), SHORT, U64), max_size=50))
@settings(max_examples=100, deadline=None)
def test_varints_decode_to_what_was_encoded(values):
    assert decode_varints(b"".join(varint(value) for value in values)).tolist() == values


@pytest.mark.parametrize("payload", [b"\x80", b"\x01\xff", b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"])
def test_a_cut_or_overlong_varint_is_refused(payload):
    with pytest.raises(ValueError, match="varint"):
        decode_varints(payload)


def test_the_worked_example_of_the_documentation(tmp_path):
    """docs/reference/operation-log.md gives these bytes and this table."""
    records = [byte_size(0, 1000), operation(0, 200, 3000), operation(1, 150, 9000, ok=False)]
    example = block(thread=2, base_board_ns=1_000_000, records=records)
    assert example[40:].hex(" ") == "10 e8 07 00 08 c8 01 b8 17 01 96 01 a8 46"
    log = read_operation_log(log_file(tmp_path, file_header(999_000), example))
    table = log.operations
    assert log.torn_bytes == 0
    assert table.board_ns.tolist() == [1_000_200, 1_003_350]
    assert table.duration_ns.tolist() == [3000, 9000]
    assert table.kind.tolist() == [0, 1] and table.ok.tolist() == [True, False]
    assert table.bytes.tolist() == [1000, 0] and table.thread.tolist() == [2, 2]


RECORD = st.one_of(
    st.builds(operation, st.integers(0, 5), st.integers(0, 2**40), st.integers(0, 2**40), st.booleans()),
    st.builds(byte_size, st.integers(0, 5), st.integers(0, 2**24)),
)


def following(blocks):
    """The same blocks, each beginning where the one before of its thread ended."""
    ended_ns, made = {}, []
    for thread, wanted_ns, records in blocks:
        base_board_ns = ended_ns.get(thread, wanted_ns)
        made.append((thread, base_board_ns, records))
        spent_ns = sum(gap + duration for tag, gap, duration in records if not tag & 0x10)
        ended_ns[thread] = base_board_ns + spent_ns
    return made


BLOCKS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**60), st.lists(RECORD, max_size=30)), max_size=6).map(
    following
)


@given(BLOCKS)
@settings(max_examples=60, deadline=None)
def test_bulk_decoding_agrees_with_reading_record_by_record(tmp_path_factory, blocks):
    path = log_file(tmp_path_factory.mktemp("log"), *log(blocks))
    table = read_operation_log(path).operations
    rows = list(zip(table.board_ns, table.duration_ns, table.kind, table.thread, table.bytes, table.ok, strict=True))
    assert sorted(rows) == sorted(row for entry in blocks for row in record_by_record(*entry))
    assert np.all(np.diff(table.board_ns) >= 0)


def record_by_record(thread, base_board_ns, records):
    end_ns, sizes = base_board_ns, {}
    for tag, first, second in records:
        if tag & 0x10:
            sizes[tag & 7] = first
            continue
        start_ns, end_ns = end_ns + first, end_ns + first + second
        yield start_ns, second, tag & 7, thread, sizes.get(tag & 7, 0), bool(tag & 8)


FIVE = [operation(0, 10, 20)] * 5
HEADER, *SOUND = log([(0, 150 * number, FIVE) for number in range(4)])
LENGTH = len(SOUND[0])


@pytest.mark.parametrize("kept", [1, 39, 40, 41, LENGTH - 1])
def test_a_torn_last_block_is_counted_and_left_out(tmp_path, kept):
    log = read_operation_log(log_file(tmp_path, HEADER, SOUND[0], SOUND[1][:kept]))
    assert len(log.operations) == 5 and log.torn_bytes == kept and log.fault is None


@pytest.mark.parametrize("tail", [bytes(100), SOUND[1][:40] + bytes(LENGTH - 40)])
def test_zeros_left_by_a_power_cut_are_a_torn_tail(tmp_path, tail):
    log = read_operation_log(log_file(tmp_path, HEADER, SOUND[0], tail))
    assert len(log.operations) == 5 and log.torn_bytes == len(tail)


def flipped(content: bytes, bit: int) -> bytes:
    return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


def test_any_flipped_bit_of_a_block_is_found_and_what_is_before_it_kept(tmp_path):
    """In the second of four blocks: header or payload."""
    for bit in range(8 * LENGTH):
        path = log_file(tmp_path, HEADER, SOUND[0], flipped(SOUND[1], bit), *SOUND[2:])
        with pytest.raises(OperationLogFault) as caught:
            read_operation_log(path)
        assert caught.value.offset == 32 + LENGTH, f"bit {bit}"
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
        log = read_operation_log(path, strict=False)
        assert len(log.operations) == 5 and log.fault is not None


def test_any_flipped_bit_of_the_files_header_is_found(tmp_path):
    for bit in range(8 * 32):
        with pytest.raises(RecordFault):
            read_operation_log(log_file(tmp_path, flipped(HEADER, bit), *SOUND))


@pytest.mark.parametrize("order", [[0, 2, 3], [1, 2, 3], [0, 2, 1, 3], [0, 1, 1, 2, 3], [1, 0, 2, 3]], ids=str)
def test_missing_doubled_and_swapped_blocks_are_reported(tmp_path, order):
    header, *blocks = log([(0, 150 * number, FIVE) for number in range(4)])
    with pytest.raises(OperationLogFault, match=r"byte \d+: .*place of"):
        read_operation_log(log_file(tmp_path, header, *(blocks[number] for number in order)))


@pytest.mark.parametrize("record", [(6, 1, 1), (0x20, 1, 1), (0x18, 1, 1), (2**40, 1, 1), (0, 2**63, 1)])
def test_an_unknown_tag_or_impossible_time_is_corrupt(tmp_path, record):
    path = log_file(tmp_path, *log([(0, 0, [record]), (1, 0, FIVE)]))
    with pytest.raises(OperationLogFault):
        read_operation_log(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"OPJ", "cut off"),
        (b"x" * 40, "OPJLOG1"),
        (file_header(version=9), "version 9"),
    ],
)
def test_a_file_that_is_no_operation_log_says_so(tmp_path, content, said):
    with pytest.raises(RecordFault, match=said):
        read_operation_log(log_file(tmp_path, content))


def test_an_absent_file_is_one_line(tmp_path):
    with pytest.raises(RecordFault, match="No such file"):
        read_operation_log(tmp_path / "none.oplog")


RAW_BLOCKS = st.lists(
    st.tuples(
        st.integers(0, 2**16 - 1),
        st.integers(0, 2**64 - 1),
        st.lists(st.one_of(RECORD, st.tuples(st.integers(0, 31), U64, U64)), max_size=4),
    ),
    max_size=3,
)


@given(RAW_BLOCKS, st.binary(max_size=60), st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=200, deadline=None)
def test_no_bytes_bring_anything_but_a_record_fault(tmp_path_factory, blocks, tail, at, flip):
    """Blocks of any numbers, any tail, and one byte changed anywhere: operations or one clear line."""
    content = bytearray(b"".join([file_header(), *(block(*entry) for entry in blocks), tail]))
    if at < len(content):
        content[at] ^= flip
    path = log_file(tmp_path_factory.mktemp("log"), bytes(content))
    for strict in (True, False):
        try:
            log = read_operation_log(path, strict=strict)
        except RecordFault as fault:
            assert str(path) in str(fault) and "\n" not in str(fault)
        else:
            assert np.all(log.operations.duration_ns >= 0)
