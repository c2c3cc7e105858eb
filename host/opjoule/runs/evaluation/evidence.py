"""Input of an analysis from a record, except trace and operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from opjoule.base.errors import RecordFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, Exchange, read_exchanges
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.operations.board_files import read_events
from opjoule.energy.operations.tables import EVENTS
from opjoule.runs.record.run_record import RunRecord


@dataclass(frozen=True)
class Evidence:
    """Input of the analysis, except the trace, the board's files and run.json's phases."""

    board_exchanges: Sequence[Exchange]
    meter_exchanges: Sequence[Exchange]
    sensor: ErrorBounds
    cores: int
    ended_early: bool

    @classmethod
    def of(cls, record: RunRecord, *, ended_early: bool) -> Evidence:
        """The evidence in a record, no matter how its run ended."""
        run = record.run
        if run.sensor is None or run.found.cores is None:
            raise RecordFault(f"{record.directory} is not a measurement: it has no sensor or no board")
        exchanges = _exchanges(record, BOARD_EXCHANGES), _exchanges(record, METER_EXCHANGES)
        return cls(*exchanges, run.sensor, run.found.cores, ended_early)


@dataclass(frozen=True)
class BoardEvents:
    """Events of the board, read once."""

    by_file: Mapping[str, pa.Table]
    """Name of the raw file -> its events, in order of time."""
    damaged: bool = False
    """Whether a file of events could not be read; then no file is used."""

    @classmethod
    def of(cls, record: RunRecord) -> BoardEvents:
        """Events from all files of events. Raises: RecordFault: a file is damaged."""
        return cls({path.name: read_events(path) for path in record.raw_files("*.events.jsonl")})

    @property
    def table(self) -> pa.Table:
        """All events in order of time."""
        parts = list(self.by_file.values())
        return pa.concat_tables(parts).sort_by("board_ns") if parts else EVENTS.empty_table()


def _exchanges(record: RunRecord, name: str) -> list[Exchange]:
    """Round trips of a raw file; if it is damaged, none, and a fault in the record."""
    try:
        return read_exchanges(record.intact(f"raw/{name}"))
    except RecordFault as fault:
        record.add_notices(Notice(NoticeKind.FAULT, str(fault)))
        return []
