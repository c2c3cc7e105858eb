"""A plain, slow writer of operation logs after docs/reference/operation-log.md, for tests of the reader."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

BLOCK_BYTES = 65536


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def file_header(board_ns: int = 0, version: int = 2) -> bytes:
    return sealed(struct.pack("<8sIIQII", b"OPJLOG1\n", version, BLOCK_BYTES, board_ns, 0, 0))


def sealed(header: bytes) -> bytes:
    """A header with its checksum, which is computed with zeros in bytes 28 to 31."""
    return header[:28] + struct.pack("<I", zlib.crc32(header)) + header[32:]


def block(
    thread: int,
    base_board_ns: int,
    records: Sequence[tuple[int, int, int]],
    sequence: int = 0,
) -> bytes:
    payload = b"".join(varint(value) for record in records for value in record)
    header = struct.pack(
        "<IHHIIQIIQ",
        0x4B4C4250,
        thread,
        0,
        len(records),
        len(payload),
        base_board_ns,
        zlib.crc32(payload),
        0,
        sequence,
    )
    return sealed(header) + payload


def log(blocks: Sequence[tuple[int, int, Sequence[tuple[int, int, int]]]]) -> list[bytes]:
    """Header and blocks of a whole log, numbered; each is (thread, base_board_ns, records)."""
    return [file_header(), *(block(*contents, sequence=number) for number, contents in enumerate(blocks))]


def operation(kind: int, gap_ns: int, duration_ns: int, ok: bool = True) -> tuple[int, int, int]:
    return kind | ok << 3, gap_ns, duration_ns


def byte_size(kind: int, size: int) -> tuple[int, int, int]:
    return 0x10 | kind, size, 0
