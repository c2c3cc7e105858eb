"""Versions that meet: a record of the oldest form is read by everything, one of a newer form is refused in one line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from opjoule.record.run_record import with_digest

HOST = Path(__file__).resolve().parents[2]
EXAMPLE = HOST.parent / "runs/example"
"""A record of schema version 1, the oldest that there is."""
READERS = {
    "report": ["report", "{run}"],
    "verify": ["verify", "{run}"],
    "list": ["runs", "list", "{run}"],
    "show": ["runs", "show", "{run}"],
    "export": ["runs", "export", "{run}", "--csv", "{run}-csv"],
}


@pytest.fixture
def run(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "run")
    return tmp_path / "run"


def said(asked, run):
    return subprocess.run(
        [sys.executable, "-m", "opjoule.cli.start", *(part.format(run=run) for part in asked)],
        capture_output=True,
        text=True,
        check=False,
        cwd=run.parent,
        env={**os.environ, "PYTHONPATH": str(HOST)},
    )


@pytest.mark.parametrize("reader", ["report", "verify", "list", "show", "export"])
def test_the_oldest_record_is_read(run, reader):
    assert json.loads((run / "run.json").read_text())["schema"]["version"] == 1
    ended = said(READERS[reader], run)
    assert ended.returncode == 0, ended.stderr


def newer(path: Path) -> None:
    """Makes a file say that it is of the next version."""
    if path.suffix == ".json":
        entry = json.loads(path.read_text())
        entry["schema"]["version"] = 99
        path.write_text(json.dumps(with_digest(entry) if path.name == "run.json" else entry))
        return
    table = pq.read_table(path)
    told = {**json.loads(table.schema.metadata[b"opjoule.schema"]), "version": 99}
    pq.write_table(table.replace_schema_metadata({b"opjoule.schema": json.dumps(told).encode()}), path)


def test_a_record_of_a_newer_form_is_refused_in_one_line(run):
    newer(run / "run.json")
    for reader in ("report", "verify", "show", "export"):
        ended = said(READERS[reader], run)
        assert ended.returncode != 0, reader
        lines = (ended.stdout + ended.stderr).strip().splitlines()
        assert len(lines) == 1 and "version 99" in lines[0], (reader, lines)


@pytest.mark.parametrize("name", ["result.json", *sorted(path.name for path in EXAMPLE.glob("*.parquet"))])
def test_a_newer_file_of_a_record_is_never_taken_for_one_of_today(run, name):
    newer(run / name)
    ended = said(READERS["verify"], run)
    assert ended.returncode == 4 and "Traceback" not in ended.stderr
    assert f"{name}: schema" in ended.stdout and "version 99" in ended.stdout
    assert "Traceback" not in said(READERS["report"], run).stderr
