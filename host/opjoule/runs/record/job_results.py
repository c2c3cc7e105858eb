"""Results that the job of a study reported: its phases and the measured software (`raw/run-N.results.jsonl`)."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opjoule.base.errors import RecordFault
from opjoule.runs.record.run_record import RunRecord

_OF_PHASE: Final = ("phase", "mark", "cell", "operations", "answer", "not_supported", "figures")

SYNTHETIC: Final = "SYNTHETIC data"
"""Caveat of a job that takes a data set and made up its data."""
MONGODB_SERVER: Final = "mongodb.server"
"""Setting in which the loader names the server: MONGOD with its build, or another."""
MONGOD: Final = "mongod"


@dataclass(frozen=True)
class Software:
    """Measured software, by the name and version that it reports."""

    name: str
    stand_in: str = ""
    """Name of the software that it stands in for; empty if it does not stand in for another."""

    def __str__(self) -> str:
        return f"{self.name} (in place of {self.stand_in})" if self.stand_in else self.name


def job_results(record: RunRecord) -> tuple[list[dict[str, Any]], tuple[Software, ...]]:
    """(each phase of each run, each software once). Raises: RecordFault: a file that no job has written."""
    phases: list[dict[str, Any]] = []
    software: dict[Software, None] = {}
    for file in record.raw_files("run-*.results.jsonl"):
        for line in _lines(file):
            if "software" in line:
                software[Software(str(line["software"]), str(line.get("stand_in", "")))] = None
            else:
                phases.append(line)
    return phases, tuple(software)


def stand_in_caveat(name: str) -> str:
    """The caveat of a record in which other software was measured in place of `name`."""
    return f"not {name}: a stand-in"


def caveats_of(record: RunRecord) -> tuple[str, ...]:
    """What the software and the data of a record are not; nothing on software where its files cannot be read."""
    names: dict[str, None] = {}
    with suppress(RecordFault):
        names = dict.fromkeys(software.stand_in for software in job_results(record)[1] if software.stand_in)
    if record.run.summary.settings.get(MONGODB_SERVER, MONGOD).partition(" ")[0] != MONGOD:
        names["MongoDB"] = None
    study = record.document.get("plan", {}).get("study", {})
    takes_data = any("{dataset}" in part for part in study.get("command", ()))
    return (*map(stand_in_caveat, names), *([SYNTHETIC] if takes_data and not study.get("dataset") else []))


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
        for line in lines:
            known = isinstance(line, dict) and ("software" in line or all(key in line for key in _OF_PHASE))
            if not known:
                raise ValueError("a line does not describe a phase of a study")
        return lines
    except (OSError, ValueError) as error:
        raise RecordFault(f"{file}: not the output of a study's job ({error})") from None
