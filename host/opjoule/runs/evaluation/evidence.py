"""Input of an analysis from a record: clocks' exchanges and events, the corrected trace, and the checked operations.

Logs are read strictly. If a log is damaged, missing or differs from the loader's count, every figure per operation is
withheld; the energies of the windows do not depend on it. A trace is corrected by the calibration in run.json; its
file stays as recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from opjoule.base.errors import RecordFault
from opjoule.base.notices import Notice, NoticeKind, withheld_by
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, Exchange, read_exchanges
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.operations.board_files import marked_operations, read_events
from opjoule.energy.operations.operation_table import LOADER_KINDS, OperationTable
from opjoule.energy.operations.oplog import FILE_HEADER, read_operation_log
from opjoule.energy.operations.tables import EVENTS
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.runs.record.result import PER_OPERATION
from opjoule.runs.record.run import LoaderSummary
from opjoule.runs.record.run_record import RunRecord


@dataclass(frozen=True)
class Evidence:
    """Input of the analysis, except the trace, the board's files and run.json's phases."""

    board_exchanges: Sequence[Exchange]
    """Round trips, like `meter_exchanges`; none from a file that is damaged."""
    meter_exchanges: Sequence[Exchange]
    sensor: ErrorBounds
    cores: int
    ended_early: bool
    damaged: bool = False
    """Whether a file of round trips could not be read."""

    @classmethod
    def of(cls, record: RunRecord, *, ended_early: bool) -> Evidence:
        """The evidence in a record, no matter how its run ended."""
        run = record.run
        if run.sensor is None or run.found.cores is None:
            raise RecordFault(f"{record.directory} is not a measurement: it has no sensor or no board")
        exchanges = _exchanges(record, BOARD_EXCHANGES), _exchanges(record, METER_EXCHANGES)
        board, meter = (round_trips or [] for round_trips in exchanges)
        return cls(board, meter, run.sensor, run.found.cores, ended_early, damaged=None in exchanges)


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


def _exchanges(record: RunRecord, name: str) -> list[Exchange] | None:
    """Round trips of a raw file; if it is damaged, None, and a fault in the record."""
    try:
        return read_exchanges(record.intact(f"raw/{name}"))
    except RecordFault as fault:
        record.add_notices(Notice(NoticeKind.FAULT, str(fault)))
        return None


@dataclass(frozen=True)
class CorrectedTrace:
    """The trace of one sensor, with the sensor's error bounds."""

    trace: PowerTrace
    sensor: ErrorBounds
    """Error bounds: with the calibration if it was applied, otherwise as delivered."""
    refusal: tuple[Notice, ...] = ()
    """Why the calibration was not applied; empty if it was, or if there is none."""

    @classmethod
    def of(cls, trace: PowerTrace, sensor: ErrorBounds, *, overwrite: bool = False) -> CorrectedTrace:
        """Applies the sensor's calibration if it is valid for this trace; `overwrite`: in the columns of that trace."""
        calibration = sensor.calibration
        if calibration is None:
            return cls(_at_board(trace, sensor, overwrite=overwrite), sensor)
        if why := calibration.refusal(trace):
            line = (
                f"calibration {calibration.identity} does not apply to this trace: {why}. It is not used, "
                "and the intervals are those of the data sheets"
            )
            refused = Notice(
                NoticeKind.NOT_CALIBRATED, line, "calibrate over the whole range (docs/how-to/calibrate.md)"
            )
            delivered = replace(sensor, calibration=None)
            return cls(_at_board(trace, sensor, overwrite=overwrite), delivered, (refused,))
        made = calibration.apply(trace, overwrite=overwrite)
        return cls(_at_board(made, sensor, overwrite=True), sensor)


def _at_board(trace: PowerTrace, sensor: ErrorBounds, *, overwrite: bool) -> PowerTrace:
    return trace.behind(sensor.wire_ohm, overwrite=overwrite) if sensor.wire_ohm else trace


_TAG: Final = re.compile(r"(load|reads|run|blocks)-([0-9]+)")


@dataclass(frozen=True)
class LoggedOperations:
    """The operations in a record's logs."""

    table: OperationTable
    """Operations of all sound logs, sorted by start."""
    faults: tuple[Notice, ...]
    """One for each unreliable log."""

    @property
    def withheld(self) -> str:
        """Reason why figures per operation are withheld: the fault of a run's log; empty if all logs are sound."""
        return withheld_by(self.faults).get(PER_OPERATION, "")


def read_logs(record: RunRecord, events: pa.Table) -> LoggedOperations:
    """The operations of every load and run, and those that workloads marked among the events.

    A loader that finished has left a summary, and its log must agree with it exactly. Without a summary, the run was
    killed, and its log ends where it was cut off.
    """
    summaries = record.run.loader
    tags = {path.stem for path in (record.directory / "raw").glob("*.oplog")}
    tables, faults = [], []
    for tag in sorted(tag for tag in tags | summaries.keys() if _TAG.fullmatch(tag)):
        path, summary = record.path(f"raw/{tag}.oplog"), summaries.get(tag)
        if summary is None and path.stat().st_size < FILE_HEADER.size:
            continue  # killed before its first block
        try:
            log = read_operation_log(record.intact(f"raw/{tag}.oplog"))
            if summary is not None:
                _check_against(log.operations, log.torn_bytes, summary, path)
        except RecordFault as fault:
            counts = tag.startswith("run-") and summary is not None
            line, withholds = (f"no figure per operation: {fault}", (PER_OPERATION,)) if counts else (str(fault), ())
            faults.append(Notice(NoticeKind.OPERATION_LOG, line, withholds=withholds))
            continue
        tables.append(log.operations)
    marked = marked_operations(events)
    table = OperationTable.concatenate([*tables, *([marked] if len(marked) else [])]).sorted()
    return LoggedOperations(table, tuple(faults))


def _check_against(logged: OperationTable, torn_bytes: int, summary: LoaderSummary, path: Path) -> None:
    """Raises RecordFault if a log differs from the summary of its loader."""
    if torn_bytes:
        why = f"its last {torn_bytes} bytes are not a whole block, although the loader ended"
        raise RecordFault(f"operation log {path}: {why}")
    _compare(path, "operations", len(logged), summary.operations)
    counts = logged.counts()
    for kind in LOADER_KINDS if summary.by_kind else ():
        counted = summary.by_kind[kind].count if kind in summary.by_kind else 0
        _compare(path, f"operations of kind {kind}", counts.get(kind, 0), counted)
    if summary.bytes is not None:
        _compare(path, "bytes of values", int(logged.bytes.sum()), summary.bytes)


def _compare(path: Path, what: str, logged: int, counted: object) -> None:
    if logged != counted:
        raise RecordFault(f"operation log {path}: holds {logged} {what}, the loader counted {counted}")
