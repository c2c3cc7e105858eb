"""The operations of a run as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

KINDS: Final = ("read", "update", "insert", "read-modify-write", "scan", "remove")
"""Kinds of operation by their code in the operation log."""


@dataclass(frozen=True)
class OperationTable:
    """One row an operation, sorted by its start; every column has shape (n,)."""

    board_ns: npt.NDArray[np.int64]
    """Start of the operation on the board's clock."""
    duration_ns: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    """Index into KINDS."""
    thread: npt.NDArray[np.uint16]
    bytes: npt.NDArray[np.int64]
    """Bytes of values moved; 0 where the log does not say."""
    ok: npt.NDArray[np.bool_]
    """False where the operation ended otherwise than the workload expects."""

    def __len__(self) -> int:
        return int(self.board_ns.size)

    def select(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.intp] | slice) -> OperationTable:
        """The table of some rows."""
        return OperationTable(*(getattr(self, column.name)[rows] for column in fields(self)))

    def sorted(self) -> OperationTable:
        """The table in order of start; operations of one start keep their order."""
        if len(self) < 2 or bool(np.all(self.board_ns[1:] >= self.board_ns[:-1])):
            return self
        return self.select(np.argsort(self.board_ns, kind="stable"))

    def counts(self) -> dict[str, int]:
        """Operations by kind, kinds that do not occur left out."""
        by_code = np.bincount(self.kind, minlength=len(KINDS))
        return {name: int(count) for name, count in zip(KINDS, by_code, strict=True) if count}

    @classmethod
    def empty(cls, rows: int = 0) -> OperationTable:
        """A table of `rows` rows to be filled."""
        return cls(
            np.zeros(rows, np.int64),
            np.zeros(rows, np.int64),
            np.zeros(rows, np.uint8),
            np.zeros(rows, np.uint16),
            np.zeros(rows, np.int64),
            np.zeros(rows, np.bool_),
        )

    @classmethod
    def concatenate(cls, tables: Sequence[OperationTable]) -> OperationTable:
        """The rows of several tables, one after the other, not sorted."""
        if not tables:
            return cls.empty()
        return cls(
            *(np.concatenate([getattr(table, column.name) for table in tables]) for column in fields(cls))
        )
