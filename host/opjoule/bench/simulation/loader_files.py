"""A loader's operation log and events on the simulated board, read while they are written."""

import contextlib
import glob
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from opjoule.energy.operations.board_files import BEGIN
from opjoule.energy.operations.operation_table import ACTIVITIES, OperationTable
from opjoule.energy.operations.oplog import BLOCK_HEADER, BLOCK_MAGIC, FILE_HEADER, LogBlock, decode_block
from opjoule.runs.record.phases import MIX, RUN

READ_BYTES: Final = 1 << 22
"""Bytes per read; the rest follows in the next one."""


class GrowingLog:
    """Returns each block once, as soon as it is complete. Checksums are left to readers of the finished log."""

    def __init__(self, path: Path) -> None:
        """Opens the log. Raises: OSError: it does not exist."""
        self._file = path.open("rb")
        self._at = FILE_HEADER.size

    def more(self) -> list[OperationTable]:
        """The operations of blocks completed since the last call, each block of one thread, in order of time.

        Raises: ValueError: not an operation log.
        """
        self._file.seek(self._at)
        data, offset, tables = self._file.read(READ_BYTES), 0, []
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
                tables.append(table.select(slice(filled)))
            offset = end
        self._at += offset
        return tables

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@dataclass(frozen=True)
class PhaseOperations:
    """Operations of one thread of one loader, in order."""

    phase: str
    """The loader's phase without the number of its repeat: load, run, harness. A run in another mix is a run: an
    operation of a kind draws the same in it."""
    operations: OperationTable


@dataclass
class Event:
    """Background work of an engine."""

    activity: str
    start_ns: int
    end_ns: int | None
    """None while it continues."""


@dataclass
class _Followed:
    log: GrowingLog
    events: Path
    read: int = 0
    partial: bytes = b""
    going: dict[tuple[str, int], Event] = field(default_factory=dict)


class LoaderFiles:
    """Follows the files of all loaders below a folder, each from its first byte to its removal."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._followed: dict[Path, _Followed] = {}
        self._damaged: set[Path] = set()

    def more(self) -> tuple[list[PhaseOperations], list[Event]]:
        """Blocks and events since the last call; an event returned without an end gets its end later."""
        # Path.glob() raises if a folder is removed meanwhile (CPython GH-90208, until 3.12); glob.glob() does not.
        for path in map(Path, glob.glob(f"{glob.escape(str(self._folder))}/*/*/*.oplog")):  # noqa: PTH207
            if path not in self._followed and path not in self._damaged:
                with contextlib.suppress(OSError):  # removed meanwhile
                    self._followed[path] = _Followed(GrowingLog(path), path.with_suffix(".events.jsonl"))
        blocks, events = [], []
        for path, followed in list(self._followed.items()):
            there = path.exists()
            phase = path.stem.rpartition("-")[0] or path.stem
            phase = RUN if phase == MIX else phase
            try:
                blocks += [PhaseOperations(phase, table) for table in followed.log.more()]
                events += list(_events(followed))
            except (ValueError, KeyError):  # damaged: the evaluation reads the complete file and reports it
                there = False
                self._damaged.add(path)
            if not there:
                followed.log.close()
                for event in followed.going.values():
                    event.end_ns = event.start_ns  # its loader has ended
                del self._followed[path]
        return blocks, events


def _events(loader: _Followed) -> Iterator[Event]:
    """New events, in the order of their lines."""
    try:
        with loader.events.open("rb") as file:
            file.seek(loader.read)
            data = file.read()
    except OSError:
        return
    loader.read += len(data)
    *lines, loader.partial = (loader.partial + data).split(b"\n")
    for line in lines:
        row = json.loads(line)
        name, start_ns = str(row["event"]), int(row["board_ns"])
        if name == BEGIN and row["detail"] in ACTIVITIES:
            event = Event(str(row["detail"]), start_ns, None)
            loader.going[event.activity, start_ns] = event
            yield event
        elif name in ACTIVITIES:
            begun = loader.going.pop((name, start_ns), None)
            if begun:
                begun.end_ns = int(row["end_board_ns"])
            else:
                yield Event(name, start_ns, int(row["end_board_ns"]))
