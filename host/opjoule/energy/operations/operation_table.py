"""The operations of a run as columns, and their latencies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import RecordFault
from opjoule.energy.trace.power_trace import BoolArray, Int64Array

PERCENTILES: Final = (50, 95, 99, 100)
"""Percentiles in the order of Latency's fields."""


@dataclass(frozen=True)
class Latency:
    """Latencies of some operations [s]; percentiles by the nearest-rank method."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


def latency_s(duration_ns: Int64Array) -> Latency:
    """Latency of the operations with these durations, shape (n,), n >= 1."""
    ranks = [max(math.ceil(duration_ns.size * percent / 100), 1) - 1 for percent in PERCENTILES]
    found_ns = _at_ranks(duration_ns, ranks)
    return Latency(float(duration_ns.mean()) * 1e-9, *(latency_ns * 1e-9 for latency_ns in found_ns))


def median_ns(duration_ns: Int64Array) -> float:
    """Median of some durations [ns], shape (n,), n >= 1: that of numpy, in less than half of its time."""
    return float(np.mean(_at_ranks(duration_ns, [(duration_ns.size - 1) // 2, duration_ns.size // 2])))


def _at_ranks(values: Int64Array, ranks: Sequence[int]) -> list[int]:
    """Values at some rising places, from 0, of the sorted values.

    numpy finds one place several times as fast as several at once; each further one is among the values behind it.
    """
    found, behind = [], 0
    for rank in ranks:
        values = np.partition(values, rank - behind)[rank - behind :]
        found.append(int(values[0]))
        behind = rank
    return found


LOADER_KINDS: Final = ("read", "update", "insert", "read-modify-write", "scan", "remove")
"""Kinds of operation by their code in the loader's operation log."""
ACTIVITIES: Final = ("flush", "compaction", "sync", "checkpoint")
"""Background activity of an engine, by the names of the loader's events. A stall is not an activity."""
KINDS_MAX: Final = 127
"""Maximum number of kinds that the column of operations.parquet can number."""
PART_ROWS: Final = 1 << 16
"""Number of rows of one part."""
_EXACT: Final = (1 << 53) // PART_ROWS
"""Numbers below this one add up exactly in floating point, if there are at most PART_ROWS of them."""
COLUMNS: Final = ("board_ns", "duration_ns", "kind", "thread", "bytes", "ok")


@dataclass(frozen=True)
class OperationTable:
    """One row for each operation, sorted by start; every column has shape (n,)."""

    board_ns: Int64Array
    """Start of the operation on the board's clock."""
    duration_ns: Int64Array
    kind: npt.NDArray[np.uint8]
    """Index into `kinds`."""
    thread: npt.NDArray[np.uint16]
    bytes: Int64Array
    """Bytes of values moved; 0 if the log does not state it."""
    ok: BoolArray
    """False if the operation ended differently than the workload expects."""
    kinds: tuple[str, ...] = LOADER_KINDS
    """Names of the kinds in the study."""

    def __len__(self) -> int:
        return int(self.board_ns.size)

    def select(self, rows: BoolArray | npt.NDArray[np.intp] | slice) -> OperationTable:
        """A part of the rows, given by a mask of shape (n,), indices, or a slice."""
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def started_in(self, start_board_ns: int, end_board_ns: int) -> OperationTable:
        """The rows that started in a stretch, which excludes its end; not copied, and the same table each time."""
        stretch_ns = start_board_ns, end_board_ns
        if stretch_ns not in self._started:
            some = self.select(slice(*np.searchsorted(self.board_ns, stretch_ns).tolist()))
            return self._started.setdefault(stretch_ns, some)
        return self._started[stretch_ns]

    def of_kind(self, name: str) -> BoolArray:
        """Whether each row is of the kind `name`, shape (n,)."""
        return np.asarray(self.kind == self.kinds.index(name), np.bool_)

    def sorted(self) -> OperationTable:
        """The table in order of start; operations with the same start keep their order."""
        if len(self) < 2 or bool(np.all(self.board_ns[1:] >= self.board_ns[:-1])):
            return self
        return self.select(np.argsort(self.board_ns, kind="stable"))

    def counts(self) -> dict[str, int]:
        """Number of operations by kind, for kinds that occur."""
        return {name: count for name, count in zip(self.kinds, self._counts, strict=True) if count}

    def bytes_by_kind(self) -> dict[str, int]:
        """Bytes of values moved by kind."""
        return dict(zip(self.kinds, self._bytes, strict=True))

    def parts(self) -> Iterator[OperationTable]:
        """All rows in parts whose arrays stay in the processor's cache."""
        return (self.select(slice(at, at + PART_ROWS)) for at in range(0, len(self), PART_ROWS))

    @cached_property
    def latency(self) -> Latency | None:
        """Latency of all operations; None if there are none."""
        return latency_s(self.duration_ns) if len(self) else None

    @cached_property
    def latency_by_kind(self) -> dict[str, Latency]:
        """Latency of each kind that occurs."""
        names = list(self.counts())
        if len(names) == 1 and self.latency:
            return {names[0]: self.latency}
        # numpy takes values at places in half the time in which it selects them by a mask
        return {name: latency_s(self.duration_ns.take(np.flatnonzero(self.of_kind(name)))) for name in names}

    @cached_property
    def threads(self) -> int:
        """Number of threads that carried out an operation."""
        counts = [np.bincount(part.thread) for part in self.parts()]
        return len({thread for count in counts for thread in np.flatnonzero(count).tolist()})

    @cached_property
    def _started(self) -> dict[tuple[int, int], OperationTable]:
        """Stretch -> its rows, whose latencies are then computed once."""
        return {}

    @cached_property
    def _counts(self) -> list[int]:
        none = np.zeros(len(self.kinds), np.int64)
        counts = sum((np.bincount(part.kind, minlength=none.size) for part in self.parts()), none)
        return [int(count) for count in counts]

    @cached_property
    def _bytes(self) -> list[int]:
        sums = [0] * len(self.kinds)
        for part in self.parts():
            if int(part.bytes.min()) >= 0 and int(part.bytes.max()) < _EXACT:
                by_kind = np.bincount(part.kind, part.bytes, len(sums)).tolist()
            else:
                by_kind = [part.bytes[part.kind == code].sum() for code in range(len(sums))]
            sums = [before + int(more) for before, more in zip(sums, by_kind, strict=True)]
        return sums

    def renamed(self, kinds: tuple[str, ...]) -> OperationTable:
        """The same operations with codes for `kinds`, which must contain all kinds of this table."""
        if kinds == self.kinds:
            return self
        code_of = np.array([kinds.index(name) for name in self.kinds] or [0], np.uint8)
        return replace(self, kind=code_of[self.kind], kinds=kinds)

    @classmethod
    def empty(cls, rows: int = 0) -> OperationTable:
        """A table with `rows` rows, to be filled."""
        board_ns, duration_ns, moved = (np.zeros(rows, np.int64) for _ in range(3))
        kind, thread, ok = np.zeros(rows, np.uint8), np.zeros(rows, np.uint16), np.zeros(rows, np.bool_)
        return cls(board_ns, duration_ns, kind, thread, moved, ok)

    @classmethod
    def concatenate(cls, tables: Sequence[OperationTable]) -> OperationTable:
        """The rows of several tables, not sorted. Raises: RecordFault: too many kinds of operation."""
        if not tables:
            return cls.empty()
        kinds = tuple(dict.fromkeys(name for table in tables for name in table.kinds))
        if len(kinds) > KINDS_MAX:
            raise RecordFault(f"{len(kinds)} kinds of operation: at most {KINDS_MAX} are supported")
        if len(tables) == 1:
            return tables[0]
        named = [table.renamed(kinds) for table in tables]
        columns = {name: np.concatenate([getattr(table, name) for table in named]) for name in COLUMNS}
        return replace(cls.empty(), **columns, kinds=kinds)
