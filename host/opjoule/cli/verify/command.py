"""`measure.py verify`: are the files of a record as its run left them?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opjoule.cli.short_commands import VerifyOptions
from opjoule.errors import RecordFault
from opjoule.opened.recorded import table_of
from opjoule.opened.run import open_run
from opjoule.operations.schemas import ATTRIBUTION_VERSION
from opjoule.record.result import read_result
from opjoule.record.run_record import RunRecord, reading
from opjoule.trace.journal import read_edges


def run_verify(options: VerifyOptions) -> int:
    """Verifies the records that were named."""
    return print_verified(options.records, as_json=options.json)


def print_verified(records: Sequence[Path], *, as_json: bool) -> int:
    """Prints what of each record was changed, is missing or cannot be read; exit status 4 if anything was."""
    outcomes = [_verified(directory) for directory in records]
    if as_json:
        sys.stdout.write(json.dumps(outcomes, indent=2) + "\n")
    else:
        for one in outcomes:
            for line in one["problems"]:
                print(line)
            if not one["problems"]:
                print(f"{one['record']}: {one['said']}")
    return RecordFault.exit_code if any(one["problems"] for one in outcomes) else 0


def _verified(directory: Path) -> dict[str, Any]:
    try:
        with reading(directory):
            record = RunRecord.open(directory)
            problems = record.verify() or _unreadable(record)
    except RecordFault as fault:
        return {"record": str(directory), "status": None, "said": "", "problems": [str(fault)]}
    said = "ended early; its sealed parts are as they were written"
    if record.is_finished:
        said = f"{len(record.run.checksums or {})} files are as the run left them ({record.status})"
    return {"record": str(directory), "status": record.status, "said": said, "problems": problems}


def _unreadable(record: RunRecord) -> list[str]:
    """One line for each file of a record that is as the run left it and still cannot be read."""
    run, said = open_run(record.directory), []
    readers: dict[str, Callable[[], object]] = {
        "power.parquet": lambda: run.power,
        "edges.parquet": lambda: read_edges(record.directory),
        "operations.parquet": lambda: run.operations,
        "events.parquet": lambda: run.events,
        "system.parquet": lambda: run.system,
        "attribution.parquet": lambda: table_of(record, "attribution", ATTRIBUTION_VERSION),
        "result.json": lambda: read_result(record.directory),
    }
    for name, read in readers.items():
        try:
            if record.path(name).exists():
                read()
        except RecordFault as fault:
            said.append(str(fault))
    return said
