"""The operations of a measurement from its logs, checked against the loader's own counts.

Logs are read strictly. If a log is damaged, missing or differs from the loader's count, every figure per operation is
withheld; the energies of the windows do not depend on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from opjoule.base.errors import RecordFault
from opjoule.base.notices import Notice, NoticeKind, withheld_by
from opjoule.energy.operations.board_files import marked_operations
from opjoule.energy.operations.operation_table import LOADER_KINDS, OperationTable
from opjoule.energy.operations.oplog import FILE_HEADER, read_operation_log
from opjoule.runs.record.groups import PER_OPERATION
from opjoule.runs.record.run import LoaderSummary
from opjoule.runs.record.run_record import RunRecord

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
