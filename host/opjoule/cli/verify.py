"""`measure.py verify`: are the files of a record as its run left them?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from opjoule.errors import RecordFault
from opjoule.record.run_record import RunRecord, reading


def run_verify(options: argparse.Namespace) -> int:
    """Prints what was changed or is missing in each record; exit status 4 if anything was."""
    found = [_verified(directory) for directory in options.records]
    if options.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        for one in found:
            for line in one["problems"]:
                print(line)
            if not one["problems"]:
                print(f"{one['record']}: {one['said']}")
    return RecordFault.exit_code if any(one["problems"] for one in found) else 0


def _verified(directory: Path) -> dict[str, Any]:
    try:
        with reading(directory):
            record = RunRecord.open(directory)
            problems = record.verify()
    except RecordFault as fault:
        return {"record": str(directory), "status": None, "said": "", "problems": [str(fault)]}
    return {
        "record": str(directory),
        "status": record.status,
        "said": _sound(record),
        "problems": problems,
    }


def _sound(record: RunRecord) -> str:
    if record.is_finished:
        count = len(record.run.checksums or {})
        old = "" if record.has_seals else "; only raw files have one in this version of a record"
        return f"{count} files are as the run left them ({record.status}){old}"
    if record.has_seals:
        return "did not come to its end; what was sealed on the way is as it was written"
    return "did not come to its end, and records of its version have no checksum before that"
