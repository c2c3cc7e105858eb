"""Study S5: its contacts, its tests on four systems with one answer, carried to a server or not, and its errors.

Actian Zen is a library of the same functions (btrieve_stand_in.cc), its ODBC driver SQLite's, SQL Server PostgreSQL:
nothing here says anything about their speed or energy.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from moved_servers import server_on
from opjoule.cli.commands import main
from opjoule.cli.doctor.command import examine
from opjoule.comparison.study.rows import read_studies
from opjoule.devices.connection.shell import LocalShell
from opjoule.devices.programs.binaries import find_program
from opjoule.devices.programs.probe import Probe
from opjoule.devices.programs.runner import PROBE_FOLDER, Runner
from opjoule.devices.server.setup import DatabaseServer, ServerPrograms
from opjoule.errors import BadInput, NoWheels
from opjoule.plots import figures
from opjoule.studies.command.study import JobStudy
from opjoule.studies.folder import find_study

ROOT = Path(__file__).resolve().parents[3]
STUDY = ROOT / "studies" / "s5"
PROBE = ROOT / "loader-cpp" / "probe"
SESSION = "opjoule-5555555555aa"
PORT = 27957
SYSTEMS = ("sqlite", "sqlite-odbc", "zen", "zen-odbc")
MODULES = ("btrieve", "contacts", "job", "odbc", "phases", "sql_systems", "study_run", "zen")
TESTS = ("T1", "T2", "T3A", "T3B", "T4A", "T4B", "T5A", "T5B")
SMALL = ("--opens", "2", "--rows", "8", "--by-state", "3", "--by-zip", "2", "--runs", "2")
PASSWORD = "not-for-records"


@pytest.fixture
def study(monkeypatch):
    """Gives a module of the study's folder by its name; they are flat there, and forgotten afterwards."""
    for folder in (PROBE, STUDY.parent, STUDY):
        monkeypatch.syspath_prepend(str(folder))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def job(study, monkeypatch, capfd):
    """The job in this process: gives (exit status, what it said to stderr, to stdout)."""
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["job.py", *arguments])
        capfd.readouterr()
        try:
            status = study("job").main()
        except SystemExit as ended:
            status = ended.code
        said = capfd.readouterr()
        return status, said.err, said.out

    return run


def own_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "OPJOULE_MARKS"}
    own["PYTHONPATH"] = os.pathsep.join(map(str, (PROBE, STUDY.parent)))
    command = [sys.executable, str(STUDY / "job.py"), *arguments]
    return subprocess.run(command, env=own, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    """In place of Actian Zen's."""
    made = tmp_path_factory.mktemp("zen") / "libbtrieveC.so"
    source = ROOT / "host/tests/support/btrieve_stand_in.cc"
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", made, source],
        check=True,
        timeout=300,
    )
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Address of a PostgreSQL, as the rig starts it for the job."""
    folder, shell = tmp_path_factory.mktemp("server"), LocalShell()
    program, session = str(find_program(ROOT / "build", platform.machine(), "probe")), str(folder / SESSION)
    probe = Probe(shell, program, f"{session}/{PROBE_FOLDER}", [])
    made = DatabaseServer(
        shell,
        Runner(shell, program, session),
        server_on("postgresql", PORT),
        ServerPrograms(),
        data=str(folder / f"{SESSION}-postgresql"),
        tag="server-1",
        raw=folder,
    )
    yield made.url
    made.stop()
    probe.close()


def as_odbc(server: str, password: str = "") -> str:
    """The connection string that a user would give for it."""
    if not password:
        password = Path(server.partition("passfile=")[2]).read_text().strip().rpartition(":")[2]
    place = f"Servername=127.0.0.1;Port={PORT};Database=postgres;Username=opjoule"
    return f"Driver=PostgreSQL Unicode;{place};Password={password}"


def connections(folder: Path, **lines: str) -> list[str]:
    """Option of the job and the host with a file of such lines; _ in a name stands for -."""
    file = folder / "connections"
    file.write_text(
        "# of the test\n" + "".join(f"{name.replace('_', '-')} = {line}\n" for name, line in lines.items())
    )
    return ["--connections", str(file)]


# --- contacts


def test_contacts_follow_from_the_seed_and_each_filter_finds_its_own_rows(study):
    contacts = study("contacts")
    rows = contacts.drawn(2_500, 1_000, 500, seed=1)
    assert [row.id for row in rows] == list(range(1, 2_501))
    by_state = {row.id for row in rows if row.state == contacts.STATE}
    by_zip = {row.id for row in rows if row.zip == contacts.ZIP}
    assert len(by_state) == 1_000 and len(by_zip) == 500 and not by_state & by_zip
    assert not any(row.state == contacts.NEW_STATE or row.zip == contacts.NEW_ZIP for row in rows)
    assert 100 < sorted(by_state)[100] < 500, "they lie among the others"
    for column, width in contacts.WIDTHS.items():
        assert 0 < max(len(getattr(row, column)) for row in rows) <= width
    assert rows == contacts.drawn(2_500, 1_000, 500, seed=1) != contacts.drawn(2_500, 1_000, 500, seed=2)
    assert contacts.digest(rows) == contacts.digest(reversed(rows)) != contacts.digest(rows[1:])


def test_each_test_finds_exactly_its_rows_in_what_those_before_have_left(study):
    asked = study("phases").AskedRows(7, 100, 40, 20, 1, batch=False)
    assert {test: len(rows) for test, rows in asked.expected.items()} == {
        **{"T2": 100, "T3A": 40, "T3B": 20, "T4A": 100, "T4B": 100},
        **{"T5A": 60, "T5B": 40},
    }
    contacts = study("contacts")
    changed = asked.expected["T4B"]
    assert sum(row.zip == contacts.NEW_ZIP for row in changed) == 40
    assert sum(row.state == contacts.NEW_STATE for row in changed) == 20
    counts = [asked.count(test) for test in TESTS]
    assert counts == [7, 100, 40, 20, 40, 20, 40, 20]


# --- systems


@pytest.fixture(scope="module")
def told(tmp_path_factory, server, library):
    """What each system told, by its transactions; each transaction was carried to a PostgreSQL."""
    found = {}
    for system in SYSTEMS:
        for transactions in ("row", "batch"):
            folder = tmp_path_factory.mktemp(system)
            given = connections(folder, zen=str(library), zen_odbc=f"Driver=SQLite3;Database={folder}/zen")
            options = ["--transactions", transactions, "--sync", "postgresql", "--server", server, *given]
            ended = own_process(
                system, "--storage", str(folder), *options, *SMALL, "--results", str(folder / "results")
            )
            assert ended.returncode == 0, ended.stderr
            assert "carried to PostgreSQL 15" in ended.stdout
            first, *lines = (json.loads(line) for line in (folder / "results").read_text().splitlines())
            assert "carried to PostgreSQL 15" in first["software"], (
                "what is measured is named before its phases"
            )
            found[system, transactions] = {line["phase"]: line for line in lines}
    return found


@pytest.mark.slow
def test_every_system_does_every_test(told):
    harness = {f"HARNESS_{test}" for test in ("T1", "T2", "T4A", "T4B", "T5A", "T5B")}
    for lines in told.values():
        assert set(lines) == {*TESTS, *harness}
        assert not any(line["not_supported"] for line in lines.values())


@pytest.mark.slow
def test_all_systems_give_the_same_answers_row_by_row_and_together(told):
    for test in TESTS:
        assert len({lines[test]["answer"] for lines in told.values()}) == 1
    answers = [told["zen", "row"][test]["answer"] for test in TESTS]
    assert [answer.split()[0] for answer in answers] == ["2", "8", "3", "2", "8", "8", "5", "3"]


@pytest.mark.slow
def test_times_are_the_runs_median_by_row_and_the_harness_is_apart(told):
    for lines in told.values():
        assert lines["T2"]["operations"] == 2 * 8 and lines["HARNESS_T2"]["operations"] % 8 == 0
        for test, count in (("T1", 2), ("T3A", 3), ("T3B", 2)):
            times, rest = divmod(lines[test]["operations"], count)
            assert times >= 2 and rest == 0, "where they are too quick for joules, they were done again"
        assert lines["T4A"]["operations"] == 2 * 3 and lines["T4B"]["operations"] == 2 * 2
        for test in TESTS:
            own = lines[test]["figures"]
            assert 0 < own["least_per_row_us"] <= own["per_row_us"] <= own["greatest_per_row_us"]
        figures, harness = lines["T4A"]["figures"], lines["HARNESS_T4A"]["figures"]
        assert figures["harness_per_row_us"] == harness["per_row_us"]


def test_a_median_is_of_the_runs_and_progress_counts_to_what_the_check_has_said(study, job, tmp_path, capfd):
    runs, phases = study("study_run"), study("phases")
    asked = phases.AskedRows(2, 100, 40, 20, 1, batch=True)
    names = [name for test in TESTS for name in (test, f"HARNESS_{test}")]
    each = [
        SimpleNamespace(seconds=dict.fromkeys(names, seconds), times={**dict.fromkeys(names, 1), "T3A": 4})
        for seconds in (3.0, 1.0, 5.0)
    ]
    results = study("opjoule_study").Results(str(tmp_path / "results"))
    runs.tell(asked, each, results)
    told = [json.loads(line) for line in (tmp_path / "results").read_text().splitlines()]
    assert {line["phase"]: line["operations"] for line in told if line["phase"] in ("T2", "T3A")} == {
        **{"T2": 3 * 100, "T3A": 3 * 4 * 40},
    }
    assert "T2: 30000.00 us a row (10000.00 to 50000.00)" in capfd.readouterr().out
    system = study("sql_systems").SqliteTable(str(tmp_path / "db"))
    run = runs.ContactRun(system, None, asked, before=282, now=[""], harness=True)
    run.progress.told_s = float("-inf")
    run.all()
    changing = {"T2", "T4A", "T4B", "T5A", "T5B"}
    assert {test: run.times[test] for test in changing} == dict.fromkeys(changing, 1)
    assert {test for test in run.times if test.startswith("HARNESS_")} == {
        f"HARNESS_{x}" for x in {"T1", *changing}
    }
    run.progress.told_s = float("-inf")
    run.progress.tell()
    told = [json.loads(line)["progress"]["operations"] for line in capfd.readouterr().out.splitlines()]
    counts = ["--opens", "2", "--rows", "100", "--by-state", "40", "--by-zip", "20", "--runs", "2"]
    _, _, said = job("sqlite", "--storage", "/nowhere", *counts, "--check")
    assert told[-1] == json.loads(said)["operations"] == 2 * 282


class Seen:
    """A server that notes what it is given, and whether others see it in the database by then."""

    def __init__(self, file):
        self._file, self.calls = file, []

    def __getattr__(self, name):
        return lambda given: self.calls.append(
            (name, given, self._count("state = 'QA'"), self._count("1 = 1"))
        )

    def _count(self, condition):
        with sqlite3.connect(self._file) as other:
            return other.execute(f"SELECT count(*) FROM opjoule_contacts WHERE {condition}").fetchone()[0]


@pytest.mark.parametrize("batch", [False, True])
def test_every_transaction_is_made_before_it_is_carried_and_is_as_large_as_asked(study, tmp_path, batch):
    phases = study("phases")
    system, asked = (
        study("sql_systems").SqliteTable(str(tmp_path / "db")),
        phases.AskedRows(1, 12, 4, 3, 1, batch=batch),
    )
    system.create()
    system.open()
    server = Seen(tmp_path / "db" / "contacts.sqlite")
    for test in ("T2", "T4A", "T5A"):
        phases.TESTS[test](system, asked, server, lambda done: None)
    assert system.everything() == asked.expected["T2"][:0] + [
        tuple(row) for row in asked.contacts if row.state != "QA"
    ]
    system.close()
    if batch:
        assert [(name, len(given)) for name, given, _, _ in server.calls] == [
            *(("insert_all", 12), ("store_all", 4), ("remove_all", 4)),
        ]
        assert [seen for *_, seen in server.calls] == [12, 12, 8]
        return
    assert [name for name, *_ in server.calls] == ["insert"] * 12 + ["store"] * 4 + ["remove"] * 4
    assert [seen for *_, seen in server.calls] == [*range(1, 13), *[12] * 4, 11, 10, 9, 8]
    assert [given[6] for name, given, *_ in server.calls if name == "store"] == ["99999-9999"] * 4


def test_a_wrong_answer_ends_the_run_with_the_name_of_the_test_and_the_place(study, tmp_path):
    runs, sql, phases = study("study_run"), study("sql_systems"), study("phases")

    class Forgetful(sql.SqliteTable):
        def update_all(self, column, value, target, written):
            super().update_all(column, value if column == "state" else "none", target, written)

        def store_all(self, contacts):
            super().store_all(contacts[1:])

    asked = phases.AskedRows(1, 20, 8, 4, 1, batch=True)
    with pytest.raises(runs.WrongAnswer, match=r"^T4B: \(\d+, .*, not "):
        runs.ContactRun(Forgetful(str(tmp_path / "one")), None, asked, before=0, now=[""]).all()
    system, server = sql.SqliteTable(str(tmp_path / "two")), Forgetful(str(tmp_path / "three"))
    with pytest.raises(runs.WrongAnswer, match=r"^T4A, on the server: "):
        runs.ContactRun(system, server, asked, before=0, now=[""]).all()


def test_a_server_of_the_users_is_reached_by_its_connection_and_keeps_no_table(server, tmp_path, study, job):
    given = connections(tmp_path, sqlserver=as_odbc(server), postgresql=as_odbc(server))
    options = ["--transactions", "batch", *SMALL, *given]
    for name in ("sqlserver", "postgresql"):
        status, wrong, said = job("sqlite", "--storage", str(tmp_path), "--sync", name, *options)
        assert status == 0, wrong
        assert "carried to PostgreSQL 15" in said and "Password" not in said + wrong
    connection = study("odbc").connect("postgresql", as_odbc(server))
    assert connection.cursor().tables(table="opjoule%").fetchall() == []
    connection.close()


# --- Actian Zen


@pytest.fixture
def zen_job(job, library, tmp_path, monkeypatch):
    """The job on Zen, with another library or variables of the stand-in."""

    def run(*arguments: str, path: object = library, **variables: str) -> tuple[int, str, str]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        given = connections(tmp_path, zen=str(path))
        return job("zen", "--storage", str(tmp_path), *SMALL, *given, *arguments)

    return run


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"STAND_IN_VERSION": "12.10"}, "Actian Zen 12.10 is too old: 13 or later has Btrieve 2"),
        (
            {"STAND_IN_FAULT": "BtrieveClientGetVersion=20"},
            "Actian Zen does not answer: BtrieveClientGetVersion: status 20, Record manager inactive",
        ),
    ],
)
def test_a_zen_that_is_too_old_or_does_not_answer_is_one_line(zen_job, variables, says):
    status, said, _ = zen_job("--check", **variables)
    assert status == 2 and said == f"job.py: {says}\n"


def test_a_library_that_is_missing_or_another_is_one_line(zen_job, job, tmp_path):
    status, said, _ = zen_job("--check", path=tmp_path / "none.so")
    assert status == 2 and said.count("\n") == 1
    assert "none.so: cannot open" in said and "install Actian Zen on the board" in said
    status, said, _ = zen_job("--check", path="libm.so.6")
    assert status == 2 and "libm.so.6 is not a Btrieve 2 library" in said
    status, said, _ = job("zen", "--storage", str(tmp_path), "--check")
    assert status == 2 and "libbtrieveC.so is not in /usr/local/actianzen/lib*" in said


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("BtrieveFileRecordCreate=18@5", "T2"),
        ("BtrieveFileRecordUpdate=18@2", "T4A"),
        ("BtrieveFileRecordRetrieveNext=2", "T2"),  # while the table is looked at after it
        ("BtrieveFileRecordDelete=18@4", "T5B"),
        ("BtrieveClientFileOpen=46", "a new database"),
    ],
)
def test_a_status_that_no_test_expects_ends_it_with_the_functions_name(zen_job, fault, test):
    function, _, status = fault.partition("@")[0].partition("=")
    ended, said, _ = zen_job(STAND_IN_FAULT=fault)
    assert ended == 3 and said.count("\n") == 1
    assert f"zen, {test}: BtrieveFault: {function}: status {status}, " in said


@pytest.fixture
def table(study, library, tmp_path):
    """A table of Zen's with 12 rows, open."""
    made = study("zen").ZenTable(str(tmp_path / "db"), str(library))
    made.create()
    made.open()
    made.insert_all(study("contacts").drawn(12, 4, 3, seed=1))
    yield made
    made.close()


def test_a_place_is_kept_and_lost_as_the_stand_in_says(table, study):
    """What zen.py rests on: without it its loops would be right by chance."""
    btrieve, contacts = study("btrieve"), study("contacts")
    library, file, buffer = table._library, table._file, table._buffer
    for _ in table._found("zip", contacts.ZIP, btrieve.NO_INDEX):
        library.call("BtrieveFileRecordDelete", file)
        break
    assert table._next(file, buffer, len(buffer), 0) < 0 and table._status(file) == 8
    with pytest.raises(btrieve.BtrieveFault, match="BtrieveFileRecordDelete: status 8, Position not set"):
        library.call("BtrieveFileRecordDelete", file)
    assert len(table.everything()) == 11
    next(table._found("state", contacts.STATE, btrieve.NO_INDEX))
    with pytest.raises(btrieve.BtrieveFault, match="status 83"):
        table._together(lambda: library.call("BtrieveFileRecordDelete", file))
    assert len(table.everything()) == 11


def test_a_transaction_that_fails_leaves_nothing_and_a_key_that_is_there_is_refused(table, study):
    btrieve, contacts = study("btrieve"), study("contacts")
    further = [row._replace(id=row.id + 9) for row in contacts.drawn(12, 4, 3, seed=1)]
    with pytest.raises(btrieve.BtrieveFault, match="status 5"):
        table.insert_all(reversed(further))
    assert [row[0] for row in table.everything()] == list(range(1, 13))


def test_a_record_holds_texts_as_long_as_their_columns(table, study):
    contacts = study("contacts")
    whole = contacts.Contact(99, *("x" * width for width in contacts.WIDTHS.values()))
    table.insert(whole)
    assert table.row(99) == tuple(whole)
    assert ctypes.sizeof(table._buffer) == 159


# --- where it cannot work


def test_a_disk_too_small_is_one_line_before_anything_is_loaded(job, tmp_path):
    for further in ((), ("--check",)):
        status, said, _ = job("sqlite", "--storage", str(tmp_path), "--rows", "1000000000000", *further)
        assert status == 2 and "take a smaller scale or another medium" in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_nobody_gave_or_a_driver_that_is_missing_is_one_line(job, tmp_path):
    no_driver = connections(tmp_path, sqlite_odbc="Driver=/no/such.so;Database={file}")
    for arguments, says in (
        (("zen-odbc",), "zen-odbc: give its ODBC connection string, as 'zen-odbc = ...'"),
        (("sqlite", "--sync", "sqlserver"), "sqlserver: give its ODBC connection string"),
        (("sqlite", "--sync", "postgresql"), "--server is missing"),
        (
            ("sqlite-odbc", *no_driver, "--check"),
            "/no/such.so' : file not found (0): apt install libsqliteodbc",
        ),
        (
            ("sqlite", "--rows", "2", "--by-state", "2", "--by-zip", "1"),
            "less than the 3 rows that the filters find",
        ),
        (("sqlite", "--connections", str(tmp_path / "none")), "No such file"),
        (("sqlite", "--storage", str(tmp_path / "none")), "none: no such folder"),
    ):
        status, said, _ = job(*arguments[:1], "--storage", str(tmp_path), *arguments[1:])
        assert status == 2 and says in said.splitlines()[-1]


def test_a_server_that_is_out_of_reach_or_lets_nobody_in_is_one_line(job, server, tmp_path):
    nobody_there = as_odbc(server).replace(f"Port={PORT}", "Port=1")
    for string, says in (
        (nobody_there, "sqlserver: .*Connection refused"),
        (as_odbc(server, "wrong"), "sqlserver: .*password authentication failed"),
        (
            "Driver=No such driver;Server=x",
            "Can't open lib 'No such driver'.*Microsoft's ODBC driver or tdsodbc",
        ),
    ):
        given = connections(tmp_path, sqlserver=string)
        status, said, _ = job("sqlite", "--storage", str(tmp_path), "--sync", "sqlserver", "--check", *given)
        assert status == 2 and said.count("\n") == 1
        assert re.search(says, said)


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (None, "the Python module pyodbc is missing (import of pyodbc halted"),
        (SimpleNamespace(version="4.0.29"), "pyodbc 4.0.29 is too old: 4.0.30 or later"),
    ],
)
def test_a_module_that_is_missing_or_of_the_wrong_version_is_one_line(
    job, monkeypatch, module, says, tmp_path
):
    monkeypatch.setitem(sys.modules, "pyodbc", module)
    status, said, _ = job("sqlite-odbc", "--storage", str(tmp_path), "--check")
    assert status == 2 and says in said and said.count("\n") == 1


# --- on the host


def plan(capsys, *options: str) -> tuple[int, str]:
    try:
        status = main(["--study", "s5", "--device", "rpi3", "--simulate", "--dry-run", *options])
    except SystemExit as ended:
        status = int(ended.code or 0)
    return status, "".join(capsys.readouterr())


def test_cells_that_nobody_gave_a_connection_for_are_left_out_by_name(capsys, tmp_path):
    _, said = plan(capsys)
    assert "12 conditions in 3 randomised blocks" in said
    assert (
        "left out   sqlserver = ODBC connection string of a SQL Server: give it by --connections FILE" in said
    )
    assert "left out   zen-odbc = " in said
    _, said = plan(capsys, *connections(tmp_path, sqlserver="DSN=x", zen_odbc="DSN=y"))
    assert "24 conditions" in said and "left out" not in said
    status, said = plan(capsys, "--only", "sync=sqlserver")
    assert status == 2 and "no system of the study is available: give --connections FILE with " in said
    assert "sqlserver = ODBC connection string of a SQL Server" in said


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sqlservr = DSN=x", "line 1: unknown database 'sqlservr'"),
        ("sqlserver", "line 1: write NAME = "),
        ("zen = a\nzen = b", "line 2: zen is given twice"),
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
        assert "a library of the same functions that the tests build, never with Actian's own" in said
        assert "tested with PostgreSQL's driver and server, never with SQL Server" in said
    found = {each.about: each.detail for each in examine(tmp_path / "none", simulate=True)}
    assert "Actian Zen (tested with a library" in found["tested otherwise"]
    assert "SQL Server (its ODBC path" in found["tested otherwise"]


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

    monkeypatch.setattr("opjoule.studies.command.study.bring_wheels", refuse)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    board = SimpleNamespace(
        shell=LocalShell(),
        runner=SimpleNamespace(copy_in=copied, files_folder=str(tmp_path)),
        programs=SimpleNamespace(loader=""),
        check_server=lambda database, found: None,
    )
    there = cell(tmp_path, "sqlite-odbc", "none")
    there.check(board)
    assert there.said["operations"] == 5 * (2 + 20 + 3 * 8 + 3 * 4)
    with pytest.raises(
        BadInput, match=rf"^S5, contacts in .*, zen-odbc: zen-odbc: give its .* \({reason}\)$"
    ):
        cell(tmp_path, "zen-odbc", "none").check(board)


SYNCHRONISED = ("sqlite-odbc,zen", "postgresql")
ALONE = ("sqlite,zen-odbc", "none")


@pytest.mark.rig
@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "cells", [(SYNCHRONISED,), (SYNCHRONISED, ALONE)], ids=["two systems", "every system"]
)
def test_every_system_gives_joules_and_the_same_answers_on_the_simulated_rig(
    tmp_path, capsys, monkeypatch, library, studies_postgresql, cells
):
    measured = sorted(system for systems, _ in cells for system in systems.split(","))
    records = tmp_path / "records"
    zen_odbc = f"Driver=SQLite3;Database={tmp_path}/zen.sqlite;PWD={PASSWORD}"
    asked = ["--study", "s5", "--device", "rpi3", "--simulate", "--idle", "0.3", "--scale", "0.002"]
    asked += connections(tmp_path, zen=str(library), zen_odbc=zen_odbc)
    asked += ["--only", "transactions=batch", "--repeats", "1", "--out", str(records)]
    for systems, sync in cells:
        status = main([*asked, "--only", f"system={systems}", "--only", f"sync={sync}"])
        said = capsys.readouterr()
        assert status in (0, 6), said.err + said.out
    assert f"answers    the same in all of {', '.join(measured)}" in said.out
    (found,) = read_studies([path.parent for path in records.glob("*/run.json")])
    assert not found.faults and {row.phase for row in found.rows if row.system == "zen"} >= set(TESTS)
    rows = {(row.system, row.phase): row.measures for row in found.rows}
    for system in measured:
        assert rows[system, "T2"]["per_row_us"] > 0
    for system in ("sqlite-odbc", "zen"):
        assert rows[system, "T2"]["energy_per_operation_j"] > 0
    logs = "".join(path.read_text() for path in records.glob("*/raw/run-1.log"))
    assert (
        logs.count("50 SYNTHETIC contacts") == len(measured) and logs.count("carried to PostgreSQL 15") == 2
    )
    files = [path for path in records.rglob("*") if path.is_file()]
    assert files and not any(PASSWORD.encode() in path.read_bytes() for path in files)
    monkeypatch.setattr(figures, "FIGURES", {})
    assert main(["runs", "figures", str(records), "--out", str(tmp_path / "drawn")]) == 0
    assert list((tmp_path / "drawn").glob("s5-*-sync-postgresql-phases.pdf"))
