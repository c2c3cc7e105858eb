"""What a study's job reported of its phases and of the software that it measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from opjoule.base.errors import RecordFault
from opjoule.runs.record.result import Software, job_results
from opjoule.runs.record.run_record import RunRecord
from opjoule_study import Results
from report_record import make_record


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    """A record of a job, whose results are written by the job's own module."""
    place = tmp_path / "record"
    make_record(place)
    results = Results(str(place / "raw" / "run-1.results.jsonl"))
    results.made_by("MongoDB 7.0.42, FerretDB: not mongod", stand_in="MongoDB")
    results.add("INGEST", operations=3)
    results.made_by("MongoDB 7.0.42, FerretDB: not mongod", stand_in="MongoDB")
    results.made_by("SQLite 3.40.1")
    return RunRecord.open(place)


def test_software_is_named_once_and_is_no_phase(record: RunRecord) -> None:
    phases, software = job_results(record)
    assert [line["phase"] for line in phases] == ["INGEST"]
    assert software == (
        Software("MongoDB 7.0.42, FerretDB: not mongod", "MongoDB"),
        Software("SQLite 3.40.1"),
    )
    named, _, stood_in_for = str(software[0]).partition(" (")
    assert named == software[0].name and "MongoDB" in stood_in_for
    assert str(software[1]) == "SQLite 3.40.1"


@pytest.mark.parametrize("line", ['{"phase": "INGEST"', '{"phase": "INGEST"}', "[]"], ids=["cut", "short", "list"])
def test_another_file_is_refused_by_name(record: RunRecord, line: str) -> None:
    with record.path("raw/run-1.results.jsonl").open("a") as file:
        file.write(line)
    with pytest.raises(RecordFault, match=r"run-1\.results\.jsonl: "):
        job_results(record)
