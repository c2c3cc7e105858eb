"""Reader of the loader's binary operation log. Byte grammar: docs/reference/operation-log.md."""

import mmap
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import OperationLogFault, RecordFault
from opjoule.energy.operations.operation_table import LOADER_KINDS, OperationTable
from opjoule.energy.trace.power_trace import Int64Array

MAGIC: Final = b"OPJLOG1\n"
VERSION: Final = 2
FILE_HEADER: Final = struct.Struct("<8sIIQII")
BLOCK_MAGIC: Final = 0x4B4C4250
BLOCK_HEADER: Final = struct.Struct("<IHHIIQIIQ")
_HEADER_CRC: Final = slice(28, 32)
"""Place of the header's own checksum, in the file header and in block headers."""
VARINTS_A_RECORD: Final = 3
SIZE_TAG: Final = 0x10
OK_BIT: Final = 0x08
KIND_BITS: Final = 0x07
VARINT_BYTES_MAX: Final = 10
_KNOWN: Final = np.array(
    [tag & KIND_BITS < len(LOADER_KINDS) and tag & ~KIND_BITS in {0, OK_BIT, SIZE_TAG} for tag in range(256)]
)
"""Whether each tag of 8 bits is known."""
_KEEP_4: Final = np.array([0x7F, 0x7F7F, 0x7F7F7F, 0x7F7F7F7F], np.uint32)


@dataclass(frozen=True)
class OperationLog:
    """Contents of an operation log."""

    operations: OperationTable
    torn_bytes: int
    """Number of bytes after the last complete block, left by a writer that was killed."""
    fault: OperationLogFault | None
    """The corruption at which reading stopped; always None with strict=True."""


@dataclass(frozen=True)
class LogBlock:
    """Header of one block, and its place in the file."""

    offset: int
    thread: int
    records: int
    base_board_ns: int
    crc32: int
    payload_at: int
    payload_end: int


class _Torn(Exception):
    """The file ends inside a block."""


def read_operation_log(path: Path, *, strict: bool = True) -> OperationLog:
    """All operations of a log, sorted by start. Not strict: the operations before a corrupt block, and the fault.

    Raises:
        RecordFault: the file is absent, empty or not an operation log.
        OperationLogFault: a block is corrupt, missing or out of order (only if strict). An incomplete last block is not
            corrupt; its bytes are counted.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(path, data, strict)
    except ValueError:
        raise RecordFault(f"operation log {path} is empty: the loader wrote nothing") from None
    except OSError as fault:
        raise RecordFault(f"operation log {path}: {fault.strerror}") from None


def _read(path: Path, data: mmap.mmap, strict: bool) -> OperationLog:
    block_bytes_max = _block_bytes_max(path, data)
    blocks: list[LogBlock] = []
    fault, torn_bytes, end = None, 0, FILE_HEADER.size
    try:
        for block in _blocks(path, data, block_bytes_max):
            blocks.append(block)
            end = block.payload_end
    except OperationLogFault as corruption:
        fault = corruption
    except _Torn:
        torn_bytes = len(data) - end
    table, decoded, decode_fault = _decode(path, data, blocks)
    only_the_last = decoded == len(blocks) - 1 and blocks[-1].payload_end == len(data)
    if decode_fault is not None and fault is None and only_the_last:
        torn_bytes, decode_fault = len(data) - blocks[-1].offset, None
    fault = decode_fault or fault
    if fault is not None and strict:
        raise fault
    return OperationLog(table.sorted(), torn_bytes, fault)


def _block_bytes_max(path: Path, data: mmap.mmap) -> int:
    """Longest payload of a block, from the file header, which is checked."""
    if len(data) < FILE_HEADER.size:
        raise RecordFault(f"operation log {path} is cut off inside its header ({len(data)} bytes)")
    magic, version, block_bytes, _, _, crc32 = FILE_HEADER.unpack_from(data, 0)
    if magic != MAGIC:
        raise RecordFault(f"{path} is not an operation log: it does not begin with OPJLOG1")
    if version != VERSION:
        raise RecordFault(f"operation log {path}: version {version}, this program reads version {VERSION}")
    if not _is_sealed(data[: FILE_HEADER.size], crc32):
        raise OperationLogFault(path, 0, "checksum does not match the file's header")
    return int(block_bytes)


def _is_sealed(header: bytes, crc32: int) -> bool:
    """Whether a header's checksum matches; it is computed with zeros in its own place."""
    plain = bytearray(header)
    plain[_HEADER_CRC] = bytes(4)
    return zlib.crc32(plain) == crc32


def _blocks(path: Path, data: mmap.mmap, block_bytes_max: int) -> Iterator[LogBlock]:
    """Headers of all complete blocks; each header gives the place of the next one."""
    offset, number = FILE_HEADER.size, 0
    while offset < len(data):
        if offset + BLOCK_HEADER.size > len(data):
            raise _Torn
        bytes_of_it = data[offset : offset + BLOCK_HEADER.size]
        magic, thread, _, records, size, base_board_ns, crc32, own_crc32, sequence = BLOCK_HEADER.unpack(bytes_of_it)
        payload_at = offset + BLOCK_HEADER.size
        if magic != BLOCK_MAGIC:
            if not any(data[offset:]):
                raise _Torn  # a power loss left zeros where the file system had reserved space for data
            raise OperationLogFault(path, offset, f"block magic is {magic:#010x}, expected {BLOCK_MAGIC:#010x}")
        if not _is_sealed(bytes_of_it, own_crc32):
            raise OperationLogFault(path, offset, "checksum does not match the block's header")
        if sequence != number:
            raise OperationLogFault(path, offset, f"block number {sequence} in the place of block {number}")
        if size > block_bytes_max:
            raise OperationLogFault(path, offset, f"block of {size} bytes, limit {block_bytes_max}")
        if payload_at + size > len(data):
            raise _Torn
        yield LogBlock(offset, thread, records, base_board_ns, crc32, payload_at, payload_at + size)
        offset, number = payload_at + size, number + 1


def _decode(
    path: Path, data: mmap.mmap, blocks: list[LogBlock]
) -> tuple[OperationTable, int, OperationLogFault | None]:
    """(operations of the blocks, number of intact blocks, fault of the first block that is not intact)."""
    # a record takes at least three bytes: a corrupt count must not decide how much memory is allocated
    rows = sum(min(block.records, (block.payload_end - block.payload_at) // 3) for block in blocks)
    table = OperationTable.empty(rows)
    filled = 0
    ended_ns: dict[int, int] = {}
    for number, block in enumerate(blocks):
        payload = data[block.payload_at : block.payload_end]
        try:
            if zlib.crc32(payload) != block.crc32:
                raise ValueError("block checksum does not match its payload")
            ended = ended_ns.get(block.thread, block.base_board_ns)
            if block.base_board_ns != ended:
                raise ValueError(
                    f"thread {block.thread} continues at {block.base_board_ns} ns, its last block ended at {ended} ns"
                )
            filled, ended_ns[block.thread] = decode_block(block, payload, table, filled)
        except ValueError as problem:
            fault = OperationLogFault(path, block.offset, str(problem))
            return table.select(slice(filled)), number, fault
    return table.select(slice(filled)), len(blocks), None


def decode_block(block: LogBlock, payload: bytes, table: OperationTable, filled: int) -> tuple[int, int]:
    """Fills the table's rows from `filled` on. Returns: (next free row, end of the last operation [ns])."""
    values = decode_varints(payload)
    if values.size != block.records * VARINTS_A_RECORD:
        raise ValueError(f"block contains {values.size} numbers, expected 3 for each of {block.records} records")
    full, second, third = np.ascontiguousarray(values.view(np.int64).reshape(-1, VARINTS_A_RECORD).T)
    tag = full.astype(np.uint8)
    known = (full == tag) & _KNOWN.take(tag)
    if not bool(np.all(known)):
        raise ValueError(f"unknown record tag {int(full[np.argmin(known)]):#x}")
    sizes = np.flatnonzero(tag & SIZE_TAG)
    all_first = sizes.size == 0 or int(sizes[-1]) == sizes.size - 1  # the usual case
    rows = slice(sizes.size, None) if all_first else np.flatnonzero((tag & SIZE_TAG) == 0)
    kept, gap_ns, duration_ns = tag[rows], second[rows], third[rows]
    into = slice(filled, filled + kept.size)
    end_ns = np.cumsum(gap_ns + duration_ns)
    last_ns = block.base_board_ns + (int(end_ns[-1]) if end_ns.size else 0)
    if _wraps(gap_ns, duration_ns, end_ns) or last_ns >= 1 << 63:
        raise ValueError("an operation's time does not fit into 63 bits")
    np.subtract(end_ns, duration_ns, out=table.board_ns[into])
    table.board_ns[into] += block.base_board_ns
    table.duration_ns[into] = duration_ns
    np.bitwise_and(kept, KIND_BITS, out=table.kind[into])
    table.thread[into] = block.thread
    np.not_equal(kept & OK_BIT, 0, out=table.ok[into])
    if all_first:
        by_code = np.zeros(KIND_BITS + 1, np.int64)
        by_code[tag[: sizes.size] & KIND_BITS] = second[: sizes.size]
        by_code.take(table.kind[into], out=table.bytes[into], mode="clip")
    else:
        _fill_bytes(tag, second, sizes, table.bytes[into])
    return filled + kept.size, last_ns


def _wraps(gap_ns: Int64Array, duration_ns: Int64Array, end_ns: Int64Array) -> bool:
    """Whether a time or their cumulative sum exceeds 63 bits."""
    either_ns = gap_ns | duration_ns
    if int(either_ns.min(initial=0)) >= 0 and 2 * int(either_ns.max(initial=0)) * either_ns.size < 1 << 63:
        return False  # the sum of all is too small
    return bool(np.any((either_ns | end_ns) < 0)) or bool(np.any(end_ns[1:] < end_ns[:-1]))


def _fill_bytes(
    tag: npt.NDArray[np.uint8], sizes_given: Int64Array, sizes: npt.NDArray[np.intp], bytes_out: Int64Array
) -> None:
    """Sets each operation's bytes to the last size given for its kind before it, or to 0 if there is none."""
    places = np.flatnonzero((tag & SIZE_TAG) == 0)
    kinds = tag[places] & KIND_BITS
    for code in np.unique(tag[sizes] & KIND_BITS):
        announced = sizes[(tag[sizes] & KIND_BITS) == code]
        mine = np.flatnonzero(kinds == code)
        latest = np.searchsorted(announced, places[mine]) - 1
        known = latest >= 0
        bytes_out[mine[known]] = sizes_given[announced[latest[known]]]


def decode_varints(payload: bytes) -> npt.NDArray[np.uint64]:
    """All varints of a payload, in order. Raises: ValueError: one is cut off, or longer than 64 bits."""
    if not payload:
        return np.empty(0, np.uint64)
    padded = payload + bytes(VARINT_BYTES_MAX)
    octets = np.frombuffer(padded, np.uint8)
    last = np.flatnonzero(octets[: len(payload)] < 0x80)
    if last.size == 0 or last[-1] != len(payload) - 1:
        raise ValueError("the payload ends inside a varint")
    first = np.empty_like(last)
    first[0] = 0
    np.add(last[:-1], 1, out=first[1:])
    extra = last - first
    values = _up_to_4_bytes(padded, len(payload), first, extra).astype(np.uint64)
    longer = np.flatnonzero(extra > 3)
    if longer.size:
        values[longer] = _any_length(octets, first[longer], extra[longer])
    return values


def _up_to_4_bytes(
    padded: bytes, size: int, first: npt.NDArray[np.intp], extra: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint32]:
    """Decodes varints of up to 4 bytes: one unaligned 4-byte load each, then the four groups of 7 bits are joined."""
    word: npt.NDArray[np.uint32] = np.ndarray((size,), "<u4", padded, strides=(1,)).take(first)
    word &= _KEEP_4.take(extra, mode="clip")
    value = word & np.uint32(0x7F)
    value |= (word & np.uint32(0x7F00)) >> np.uint32(1)
    value |= (word & np.uint32(0x7F0000)) >> np.uint32(2)
    value |= (word & np.uint32(0x7F000000)) >> np.uint32(3)
    return value


def _any_length(
    octets: npt.NDArray[np.uint8], first: npt.NDArray[np.intp], extra: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint64]:
    longest = int(extra.max())
    if longest >= VARINT_BYTES_MAX or bool(
        np.any(octets[first[extra == VARINT_BYTES_MAX - 1] + VARINT_BYTES_MAX - 1] > 1)
    ):
        raise ValueError("a varint is longer than 64 bits")
    value = np.zeros(first.size, np.uint64)
    for position in range(longest + 1):
        rows = np.flatnonzero(extra >= position)
        group = (octets[first[rows] + position] & np.uint8(0x7F)).astype(np.uint64)
        value[rows] |= group << np.uint64(7 * position)
    return value
