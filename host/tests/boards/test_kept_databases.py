"""A database is loaded once and copied for every repeat: the copy is whole, and half of one is never taken for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from opjoule.base.errors import BadInput, DeviceFault
from opjoule.boards.board import ProbeOptions
from opjoule.boards.board_state import StateSettings
from opjoule.boards.databases import find_database
from opjoule.boards.medium import FOLDER, KeptDatabases, find_kept, remove_kept
from opjoule.boards.medium import Medium as BoardMedium
from opjoule.boards.profiles import find_profile
from opjoule.boards.rig_board import board_on
from opjoule.boards.sessions import database_folder, find_sessions, new_session, remove_sessions
from opjoule.boards.shell import LocalShell
from opjoule.cli.commands import main, parse
from opjoule.cli.measure.planning import make_plan
from opjoule.runs.studies.properties import YcsbCore, check_space
from opjoule.runs.studies.ycsb import YcsbStudy

ROOT = Path(__file__).resolve().parents[3]
LOADER = ROOT / "build" / "loader" / "loader"
WORKLOAD = ROOT / "ycsb-workloads" / "workloadc.properties"
NAME = "leveldb-0123456789abcdef"
STOPS = """#!/bin/sh
[ -e '{reached}' ] && exec {real} "$@"
{first}
touch '{reached}'
sleep 60
"""
HALF_COPY = 'for to; do :; done; mkdir "$to" && printf half > "$to/first"'


class Medium:
    """A folder as a board's medium."""

    def __init__(self, path: Path) -> None:
        self.path, self.shell = path, LocalShell()
        self.kept = KeptDatabases(self.shell, f"{path}/{FOLDER}")
        path.mkdir(parents=True)

    def place(self) -> str:
        """Path of a new session's database."""
        return database_folder(str(self.path), new_session(), "leveldb")

    def database(self) -> str:
        """Two files and a folder in a session's name."""
        place = Path(self.place())
        (place / "deeper").mkdir(parents=True)
        (place / "first").write_bytes(os.urandom(100_000))
        (place / "deeper" / "second file").write_bytes(b"")
        return str(place)

    def copy(self, name: str = NAME) -> tuple[str, subprocess.CompletedProcess[str]]:
        place = self.place()
        command = self.kept.copy_command(name, place)
        return place, subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def medium(tmp_path):
    return Medium(tmp_path / 'a medium; $(touch injected) "x"')


def contents(folder: str | Path) -> dict[str, bytes]:
    root = Path(folder)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def load_and_read(command: str, engine: str, place: str, rows: int) -> dict:
    read_all = ["-p", "requestdistribution=sequential", "-p", f"operationcount={rows}"]
    done = subprocess.run(
        [
            LOADER,
            command,
            "--db",
            engine,
            "--path",
            place,
            "--workload",
            WORKLOAD,
            "-p",
            f"recordcount={rows}",
        ]
        + (read_all if command == "run" else []),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["summary"]


@pytest.mark.parametrize("engine", ["leveldb", "rocksdb", "sqlite", "lmdb", "nestedfolder"])
def test_a_copy_has_every_row_and_leaves_the_kept_one_as_it_was(medium, engine):
    """The run reads each row, and ends with status 0 only if it is there."""
    place, name = medium.place(), f"{engine}-0123456789abcdef"
    load_and_read("load", engine, place, 300)
    medium.kept.keep(place, name)
    assert not Path(place).exists()
    before = contents(medium.path / FOLDER)
    copied, ran = medium.copy(name)
    assert ran.returncode == 0, ran.stderr
    summary = load_and_read("run", engine, copied, 300)
    assert summary["operations"] == 300
    assert summary["errors"] == 0
    assert contents(medium.path / FOLDER) == before
    assert medium.kept.size_bytes(name) > 1000


def stopped_at(program: str, first: str, folder: Path, monkeypatch) -> Path:
    """Puts a program before the system's that stays at its first call, after `first`; the file that says it has."""
    real = subprocess.run(["which", program], capture_output=True, text=True, check=True).stdout.strip()
    reached = folder / "reached"
    stub = folder / "bin" / program
    stub.parent.mkdir()
    stub.write_text(STOPS.format(real=real, first=first, reached=reached))
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    return reached


def kill_once(reached: Path, command) -> None:
    """Kills a command and all that it has started with SIGKILL, once it has come there."""
    running = subprocess.Popen(command, start_new_session=True)
    while not reached.exists():
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def test_a_copy_that_is_killed_halfway_belongs_to_its_session_alone(medium, tmp_path, monkeypatch):
    medium.kept.keep(medium.database(), NAME)
    whole = contents(medium.path / FOLDER / NAME / "database")
    killed = medium.place()
    reached = stopped_at("cp", f"case $1$2 in *--help) exit 0 ;; esac; {HALF_COPY}", tmp_path, monkeypatch)
    kill_once(reached, medium.kept.copy_command(NAME, killed))
    assert contents(killed) == {"first": b"half"}
    assert find_sessions(medium.shell, [str(medium.path)]) == [killed]
    copied, ran = medium.copy()
    assert ran.returncode == 0, ran.stderr
    assert contents(copied) == whole
    assert remove_sessions(medium.shell, [killed]) == [killed]
    assert contents(medium.path / FOLDER / NAME / "database") == whole


@pytest.mark.parametrize("program", ["mkdir", "mv", "stat", "sync"])
def test_a_database_is_kept_whole_or_not_at_all(medium, tmp_path, monkeypatch, program):
    """Killed before any of its steps, it is a session's leftover, and the next one is kept in its place."""
    place = medium.database()
    script = medium.kept.copy_command(NAME, place)[2]
    keep = ["sh", "-c", script, "sh", "keep", place, medium.kept._path(NAME)]
    reached = stopped_at(program, "", tmp_path, monkeypatch)
    kill_once(reached, keep)
    assert medium.kept.size_bytes(NAME) is None
    assert find_kept(medium.shell, [str(medium.path)]) == []
    left = find_sessions(medium.shell, [str(medium.path)])
    assert remove_sessions(medium.shell, left) == left
    another = medium.database()
    whole = contents(another)
    medium.kept.keep(another, NAME)
    assert contents(medium.path / FOLDER / NAME / "database") == whole


def test_the_second_of_two_that_load_the_same_leaves_the_first(medium):
    medium.kept.keep(medium.database(), NAME)
    first = contents(medium.path / FOLDER)
    medium.kept.keep(medium.database(), NAME)
    assert contents(medium.path / FOLDER) == first
    assert find_sessions(medium.shell, [str(medium.path)]) == []


def test_a_kept_database_that_was_changed_is_not_copied(medium):
    medium.kept.keep(medium.database(), NAME)
    with (medium.path / FOLDER / NAME / "database" / "first").open("ab") as file:
        file.write(b"x")
    place, ran = medium.copy()
    assert ran.returncode != 0
    assert NAME in ran.stderr and "restore --kept" in ran.stderr
    assert not Path(place).exists()


def test_a_copy_without_room_says_so_before_anything_is_written(medium, tmp_path, monkeypatch):
    medium.kept.keep(medium.database(), NAME)
    stub = tmp_path / "bin" / "du"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\nprintf '99999999999\\tx\\n'\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    place, ran = medium.copy()
    assert ran.returncode != 0
    assert "takes 97656249 MiB, and " in ran.stderr and "--reset load" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not Path(place).exists()


def test_only_kept_databases_are_found_and_removed(medium, tmp_path):
    medium.kept.keep(medium.database(), NAME)
    foreign = medium.path / FOLDER / "leveldb-mine"
    foreign.mkdir()
    (medium.path / FOLDER / "sqlite-0123456789abcdef").symlink_to(tmp_path)
    [kept] = find_kept(medium.shell, [str(medium.path), str(tmp_path / "nowhere")])
    assert kept == str(medium.path / FOLDER / NAME)
    for other in (foreign, medium.path / FOLDER / "sqlite-0123456789abcdef", medium.path):
        with pytest.raises(DeviceFault, match="left alone"):
            remove_kept(medium.shell, [str(other)])
    assert remove_kept(medium.shell, [kept]) == [kept]
    assert foreign.is_dir() and tmp_path.is_dir()
    assert find_sessions(medium.shell, [str(medium.path)]) == []


def named(database="leveldb", loader="a" * 64, *, threads=1, seed=1, generator=None, **properties) -> str:
    values = {"recordcount": "100", "operationcount": "5", "readproportion": "1", **properties}
    study = YcsbStudy(find_database(database), WORKLOAD, values, threads, seed, generator=generator)
    return study.kept_name(loader)


def test_one_name_for_all_runs_on_one_load_and_another_for_every_other_load():
    of_the_run = [
        {"operationcount": "6"},
        {"readproportion": "0", "updateproportion": "1"},
        {"requestdistribution": "latest"},
        {"maxexecutiontime": "3"},
    ]
    assert {named(**changed) for changed in of_the_run} == {named()}
    of_the_load = [
        {"database": "sqlite"},
        {"loader": "b" * 64},
        {"threads": 2},
        {"seed": 2},
        {"generator": YcsbCore(ROOT)},
        *({key: "7"} for key in ("recordcount", "fieldlength", "insertorder", "durability")),
        {"leveldb.compression": "none"},
    ]
    assert len({named(**changed) for changed in of_the_load} | {named()}) == len(of_the_load) + 1


def test_a_first_load_needs_room_for_two():
    check_space({"recordcount": "1000"}, 2_000_000, "the card", databases=2)
    with pytest.raises(BadInput, match=r"0\.0 GB, 2 times \(one is kept.*on the card.*--reset load"):
        check_space({"recordcount": "1000"}, 1_999_999, "the card", databases=2)


def test_a_server_cannot_be_copied_and_the_reason_is_given(capsys):
    status = main(["--db", "mongodb", "--device", "rpi4", "--simulate", "--reset", "copy", "--dry-run"])
    [line] = capsys.readouterr().err.splitlines()
    assert status == BadInput.exit_code
    assert "--reset copy" in line and "--reset load" in line


@pytest.mark.parametrize("file_system", ["new", "keep"])
def test_a_medium_that_is_made_anew_each_time_is_refused(tmp_path, file_system):
    words = ["--db", "leveldb", "--device", "rpi4", "--reset", "copy"]
    study = make_plan(parse(words).options).study
    board = board_on(
        LocalShell(),
        find_profile("rpi4"),
        BoardMedium(str(tmp_path / "medium")),
        builds=ROOT / "build",
        probe=ProbeOptions(),
        wanted=StateSettings().changed({"file_system": file_system}, "test"),
        journal=str(tmp_path / "journal"),
    )
    with closing(board):
        if file_system == "keep":
            study.check(board)
            return
        with pytest.raises(BadInput, match=r"--reset copy: file_system = \"new\".*--reset load"):
            study.check(board)
