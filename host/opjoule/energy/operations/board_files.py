"""Text files of the work: events (JSON lines) and system samples (CSV) of the board, the load of a simulating computer.

If their writer was killed, a file may end inside a line; this last line is left out.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Self

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pa_csv

from opjoule.base.errors import RecordFault
from opjoule.energy.operations.operation_table import KINDS_MAX, LOADER_KINDS, OperationTable
from opjoule.energy.operations.tables import EVENTS, SYSTEM
from opjoule.energy.trace.power_trace import Float64Array, Int64Array

SYNC_EDGE = "sync-edge"
LOAD_CHANGE = "load-change"
OPERATION = "operation"
PHASE_BEGIN, PHASE_END = "phase-begin", "phase-end"
MARKS_FILE = "marks.jsonl"
"""File in raw/ with the phase marks that the host received during the run, in the form of the board's events."""
BEGIN = "begin"
"""Event at the beginning of an activity, for live readers; the event of the activity itself follows at its end."""


_Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


@dataclass(frozen=True)
class PhaseMark:
    """Begin or end of a phase of a workload, stamped by the board."""

    board_ns: int
    name: str
    begins: bool


@dataclass(frozen=True)
class BoardEdges:
    """Edges of the sync line, or changes of the load, made by the board; each array of shape (n,)."""

    board_ns: Int64Array
    level: npt.NDArray[np.int8]
    u_ns: Float64Array
    """Standard uncertainty of each edge's time on the board's clock [ns]."""


def read_events(path: Path) -> pa.Table:
    """Background activity and sync edges, one JSON object a line, sorted by start.

    Raises: RecordFault: the file has other contents.
    """
    lines = enumerate(_lines(path), start=1)
    rows = [_event(path, number, line) for number, line in lines if line.strip()]
    rows.sort(key=lambda row: row.board_ns)
    return pa.Table.from_pylist([msgspec.structs.asdict(row) for row in rows], schema=EVENTS)


def read_system(path: Path) -> pa.Table:
    """System samples, one CSV row each under a header line. Raises: RecordFault: absent, or not system samples."""
    lines = _lines(path)
    if not lines:
        raise RecordFault(f"{path}: empty, expected a header line of system samples")
    header = lines[0].split(",")
    missing = [name for name in SYSTEM.names if name not in header]
    if missing:
        raise RecordFault(f"{path}: line 1: no column '{missing[0]}'")
    table = _numbers(lines)
    if table is None:
        counts = range(1, len(lines) + 1)
        number = 1 + bisect_left(counts, True, key=lambda count: _numbers(lines[:count]) is None)
        raise RecordFault(f"{path}: line {number} is not a system sample: {lines[number - 1][:60]!r}")
    return table


def marked_operations(events: pa.Table) -> OperationTable:
    """The operations that workloads marked, not sorted. Raises: RecordFault: too many kinds of operation."""
    chosen = events.filter(pc.equal(events["event"], OPERATION))
    start_ns = chosen["board_ns"].to_numpy()
    words = [str(detail).split() for detail in chosen["detail"].to_pylist()]
    names = [word[0] if word else "operation" for word in words]
    kinds = tuple(dict.fromkeys(names))
    if (count := len(kinds)) > KINDS_MAX:
        raise RecordFault(f"{count} kinds of operation were marked: at most {KINDS_MAX} are supported")
    code_of = {name: code for code, name in enumerate(kinds)}
    return OperationTable(
        start_ns,
        chosen["end_board_ns"].to_numpy() - start_ns,
        np.array([code_of[name] for name in names], np.uint8),
        np.zeros(len(names), np.uint16),
        np.array([int(word[1]) if len(word) > 1 and word[1].isdigit() else 0 for word in words], np.int64),
        np.array([word[-1] != "failed" for word in words], np.bool_),
        kinds or LOADER_KINDS,
    )


def without_operations(events: pa.Table) -> pa.Table:
    """The events without marked operations, which have a table of their own, and without begin events."""
    return events.filter(pc.invert(pc.is_in(events["event"], pa.array([OPERATION, BEGIN]))))


def sync_edges(events: pa.Table) -> BoardEdges:
    """The sync edges in the events."""
    return _edges(events, SYNC_EDGE)


def load_changes(events: pa.Table) -> BoardEdges:
    """The changes of a load signature in the events; level 1: from idle to busy."""
    return _edges(events, LOAD_CHANGE)


def _edges(events: pa.Table, kind: str) -> BoardEdges:
    chosen = events.filter(pc.equal(events["event"], kind))
    columns = (chosen[name].fill_null(0).to_numpy() for name in ("board_ns", "level", "u_ns"))
    return BoardEdges(*columns)


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as fault:
        raise RecordFault(f"{path}: {fault.strerror}") from None
    return text.split("\n")[:-1]


def _numbers(lines: list[str]) -> pa.Table | None:
    """System samples under their header line; None if a line does not have the probe's format."""
    try:
        table = pa_csv.read_csv(
            pa.py_buffer("".join(f"{line}\n" for line in lines).encode()),
            parse_options=pa_csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=pa_csv.ConvertOptions(column_types=SYSTEM, null_values=[], include_columns=SYSTEM.names),
        )
    except pa.ArrowInvalid:
        return None
    is_whole = not any(column.null_count for column in table.columns)
    return table.cast(SYSTEM).combine_chunks() if is_whole else None


class _Event(msgspec.Struct):
    """One line of a file of events."""

    board_ns: _Int64
    event: str
    end_board_ns: _Int64 | None = None
    level: Annotated[int, msgspec.Meta(ge=-128, le=127)] | None = None
    u_ns: float | None = None
    detail: Any = None

    def __post_init__(self) -> None:
        if self.detail is not None and not isinstance(self.detail, str):
            self.detail = json.dumps(self.detail)


_EVENT: Final = msgspec.json.Decoder(_Event)


def _event(path: Path, number: int, line: str) -> _Event:
    try:
        return _EVENT.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        raise RecordFault(f"{path}: line {number} is not an event: {line[:60]!r}") from None


COMPUTER: Final = "computer.csv"
"""File in raw/."""
COLUMNS: Final = ("board_ns", "processors", "busy_s", "own_s")


@dataclass(frozen=True)
class ComputerLoad:
    """Processor time at moments of the simulated board's clock, which is the computer's; each array of shape (n,)."""

    board_ns: Int64Array
    processors: Float64Array
    busy_s: Float64Array
    """Time of all processors together that was not idle, cumulative; time taken by other virtual machines counts."""
    own_s: Float64Array
    """Part of it of the simulated rig, the programs on its board, and the kernel's threads, cumulative."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the file; a last line that was cut off is left out. Raises: RecordFault: it has other contents."""
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            head, *rows = [line.split(",") for line in lines] or [[]]
            if tuple(head) != COLUMNS:
                raise ValueError("expected a header line")
            stamps = np.array([int(row[0]) for row in rows], np.int64)
            numbers = np.array([row[1:] for row in rows], np.float64).reshape(-1, len(COLUMNS) - 1)
        except (OSError, ValueError) as error:
            raise RecordFault(f"{path}: not samples of a computer's processors: {error}") from None
        return cls(stamps, *numbers.T)

    def others_share(self, start_board_ns: int, end_board_ns: int) -> float:
        """Mean share of the processors that other programs took in a stretch of time; 0 where it was not sampled."""
        if not self.board_ns.size:
            return 0.0
        first_ns, last_ns = self.board_ns[[0, -1]].tolist()
        start_ns, end_ns = max(start_board_ns, first_ns), min(end_board_ns, last_ns)
        lasts_s = float(end_ns - start_ns) * 1e-9
        if lasts_s <= 0.0:
            return 0.0
        since_s = (self.board_ns - start_ns) * 1e-9
        taken_s = np.diff(np.interp([0.0, lasts_s], since_s, self.busy_s - self.own_s))
        return max(float(taken_s[0]), 0.0) / (float(self.processors.mean()) * lasts_s)
