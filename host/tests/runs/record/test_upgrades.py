"""Versions that meet: records of today and of 0.1.0 are read by everything, of another version refused in one line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from opjoule.base.files import file_sha256
from opjoule.runs.record.run_record import with_digest

HOST = Path(__file__).resolve().parents[3]
EXAMPLE = HOST.parent / "runs/example"
EARLIER = HOST / "tests/support/earlier_record"
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


def said(argv, run):
    return subprocess.run(
        [sys.executable, "-m", "opjoule.cli.start", *(part.format(run=run) for part in argv)],
        capture_output=True,
        text=True,
        check=False,
        cwd=run.parent,
        env={**os.environ, "PYTHONPATH": str(HOST)},
    )


@pytest.mark.parametrize("reader", ["report", "verify", "list", "show", "export"])
@pytest.mark.parametrize("record", [EXAMPLE, EARLIER])
def test_a_record_of_today_and_an_earlier_one_are_read(tmp_path, record, reader):
    run = tmp_path / "run"
    shutil.copytree(record, run)
    ended = said(READERS[reader], run)
    assert ended.returncode == 0, ended.stderr


def state_version(path: Path, version: int = 99) -> None:
    """Makes a file state another version."""
    if path.suffix == ".json":
        entry = json.loads(path.read_text())
        entry["schema"]["version"] = version
        path.write_text(json.dumps(with_digest(entry) if path.name == "run.json" else entry))
        return
    table = pq.read_table(path)
    schema = {**json.loads(table.schema.metadata[b"opjoule.schema"]), "version": version}
    pq.write_table(table.replace_schema_metadata({b"opjoule.schema": json.dumps(schema).encode()}), path)


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 99])
def test_a_record_of_another_version_is_refused_in_one_line(run, version):
    state_version(run / "run.json", version)
    for reader in ("report", "verify", "show", "export"):
        ended = said(READERS[reader], run)
        assert ended.returncode != 0, reader
        lines = (ended.stdout + ended.stderr).strip().splitlines()
        assert len(lines) == 1 and f"version {version}" in lines[0], (reader, lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["result.json", *sorted(path.name for path in EXAMPLE.glob("*.parquet"))])
def test_a_newer_file_of_a_record_is_never_taken_for_one_of_today(run, name):
    state_version(run / name)
    document = json.loads((run / "run.json").read_text())
    document["checksums"][name] = file_sha256(run / name)
    (run / "run.json").write_text(json.dumps(with_digest(document)))
    ended = said(READERS["verify"], run)
    assert ended.returncode == 4 and "Traceback" not in ended.stderr
    assert f"{name}: schema" in ended.stdout and "version 99" in ended.stdout
    assert "Traceback" not in said(READERS["report"], run).stderr
