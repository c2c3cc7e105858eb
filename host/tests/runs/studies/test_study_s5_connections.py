"""Study S5 on the host: the connections that users give, and what is measured or left out because of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from opjoule.base.errors import BadInput, NoWheels
from opjoule.boards.shell import LocalShell
from opjoule.cli.commands import main
from opjoule.cli.doctor import examine
from opjoule.runs.studies.command import JobStudy
from opjoule.runs.studies.folder import find_study
from study_s5 import PASSWORD, PROBE, STUDY, connections


def plan(capsys, *options: str) -> tuple[int, str]:
    try:
        status = main(["--study", "s5", "--device", "rpi3", "--simulate", "--dry-run", *options])
    except SystemExit as ended:
        status = int(ended.code or 0)
    return status, "".join(capsys.readouterr())


def test_cells_that_nobody_gave_a_connection_for_are_left_out_by_name(capsys, tmp_path):
    _, said = plan(capsys)
    assert "12 conditions in 3 randomised blocks" in said
    assert re.search("left out   sqlserver = .*--connections FILE", said)
    assert "left out   zen-odbc = " in said
    _, said = plan(capsys, *connections(tmp_path, sqlserver="DSN=x", zen_odbc="DSN=y"))
    assert "24 conditions" in said and "left out" not in said
    status, said = plan(capsys, "--only", "sync=sqlserver")
    assert status == 2 and re.search("--connections FILE .*sqlserver = ", said)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sqlservr = DSN=x", "line 1: unknown database 'sqlservr'"),
        ("sqlserver", "line 1: write NAME = "),
        ("zen = a\nzen = b", "line 2: zen "),
    ],
)
def test_a_file_of_connections_that_is_none_is_one_line(capsys, tmp_path, line, says):
    (tmp_path / "file").write_text(line + "\n")
    status, said = plan(capsys, "--connections", str(tmp_path / "file"))
    assert status == 2 and says in said
    status, said = plan(capsys, "--connections", str(tmp_path / "none"))
    assert status == 2 and "No such file" in said


def test_what_was_tested_with_a_stand_in_is_said_wherever_databases_are_listed(capsys, tmp_path):
    for command in ("databases", "studies"):
        assert main([command]) == 0
        said = capsys.readouterr().out
        assert "never with Actian's own" in said and "never with SQL Server" in said
    checks = {check.about: check.line for check in examine(tmp_path / "none", simulate=True)}
    assert "Actian Zen (" in checks["tested otherwise"]
    assert "SQL Server (its ODBC path" in checks["tested otherwise"]


def cell(tmp_path: Path, system: str, sync: str, given: Path | None = None) -> JobStudy:
    return JobStudy.of(
        find_study("s5"),
        {"system": system, "transactions": "batch", "sync": sync},
        [{"opens": (2,), "rows": (20,), "by_state": (8,), "by_zip": (4,)}],
        along=(PROBE / "opjoule_marks.py", STUDY.parent / "opjoule_study.py"),
        scale=1.0,
        seed=1,
        dataset=None,
        connections=given,
        cache=tmp_path,
    )


def test_a_server_that_an_axis_names_is_the_rigs_unless_the_user_gives_one(tmp_path):
    assert [cell(tmp_path, "sqlite", sync).server for sync in ("none", "postgresql", "sqlserver")] == [
        *("", "postgresql", ""),
    ]
    (tmp_path / "given").write_text(f"postgresql = Password={PASSWORD}\n")
    given = cell(tmp_path, "sqlite", "postgresql", tmp_path / "given")
    assert given.server == "" and given.given == ("postgresql",)
    assert PASSWORD not in json.dumps(given.to_json()) and "given" not in given.to_json()["files"]


def test_a_board_that_there_are_no_wheels_for_uses_its_own_modules(tmp_path, monkeypatch):
    reason = "pyodbc.txt has no wheels for Python 3.11 on armv7l with glibc 2.36"

    def refuse(*_):
        raise NoWheels(reason)

    def copied(file: Path) -> str:
        return str(shutil.copy(file, tmp_path))

    monkeypatch.setattr("opjoule.runs.studies.command.bring_wheels", refuse)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    board = SimpleNamespace(
        shell=LocalShell(),
        runner=SimpleNamespace(copy_in=copied, files_folder=str(tmp_path)),
        programs=SimpleNamespace(loader=""),
        check_server=lambda database, paths: None,
    )
    there = cell(tmp_path, "sqlite-odbc", "none")
    there.check(board)
    assert there.said["operations"] == 5 * (2 + 20 + 3 * 8 + 3 * 4)
    with pytest.raises(BadInput, match=rf"^S5, contacts in .*, zen-odbc: zen-odbc: give its .* \({reason}\)$"):
        cell(tmp_path, "zen-odbc", "none").check(board)
