"""An operation log that is read while the loader writes it, block by block."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from opjoule.operations.operation_table import OperationTable
from opjoule.operations.oplog import BLOCK_HEADER, BLOCK_MAGIC, FILE_HEADER, LogBlock, decode_block

READ_BYTES: Final = 1 << 22
"""At a time; the rest waits for the next."""


class GrowingLog:
    """Hands out each block once, as soon as it is there whole. Checksums are left to whoever reads the finished log."""

    def __init__(self, path: Path) -> None:
        """Opens it. Raises: OSError: it is not there."""
        self._file = path.open("rb")
        self._at = FILE_HEADER.size

    def more(self) -> list[OperationTable]:
        """The operations of the blocks that have come since, each block of one thread, in order of time.

        Raises: ValueError: this is no operation log.
        """
        self._file.seek(self._at)
        data, offset, found = self._file.read(READ_BYTES), 0, []
        while offset + BLOCK_HEADER.size <= len(data):
            magic, thread, _, records, size, base_board_ns, crc32, *_ = BLOCK_HEADER.unpack_from(data, offset)
            if magic != BLOCK_MAGIC:
                raise ValueError(f"block magic is {magic:#010x}")
            payload_at = offset + BLOCK_HEADER.size
            end = payload_at + size
            if end > len(data):
                break
            block = LogBlock(self._at + offset, thread, records, base_board_ns, crc32, payload_at, end)
            table = OperationTable.empty(records)
            filled, _ = decode_block(block, data[payload_at:end], table, 0)
            if filled:
                found.append(table.select(slice(filled)))
            offset = end
        self._at += offset
        return found

    def close(self) -> None:
        """Ends reading."""
        self._file.close()
