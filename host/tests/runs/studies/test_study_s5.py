"""Study S5: its contacts, its tests on four systems with one answer, carried to a server or not, and its errors.

Actian Zen is a library of the same functions (btrieve_stand_in.cc), its ODBC driver SQLite's, SQL Server PostgreSQL:
nothing here says anything about their speed or energy.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from moved_servers import postgresql_for_jobs
from study_s5 import PROBE, SMALL, STUDY, TESTS, connections

SESSION = "opjoule-5555555555aa"
PORT = 27957
SYSTEMS = ("sqlite", "sqlite-odbc", "zen", "zen-odbc")


def own_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "OPJOULE_MARKS"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (PROBE, STUDY.parent)))
    command = [sys.executable, str(STUDY / "job.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Address of a PostgreSQL, as the rig starts it for the job."""
    with postgresql_for_jobs(tmp_path_factory.mktemp("server"), SESSION, PORT) as address:
        yield address


def release(server):
    """Name and first number of the version of the PostgreSQL at an address."""
    with psycopg.connect(server) as connection:
        return f"PostgreSQL {connection.info.server_version // 10_000}"


def as_odbc(server: str, password: str = "") -> str:
    """The connection string that a user would give for it."""
    if not password:
        password = Path(server.partition("passfile=")[2]).read_text().strip().rpartition(":")[2]
    place = f"Servername=127.0.0.1;Port={PORT};Database=postgres;Username=opjoule"
    return f"Driver=PostgreSQL Unicode;{place};Password={password}"


# --- contacts


def test_contacts_follow_from_the_seed_and_each_filter_finds_its_own_rows(study):
    phases = study("phases")
    rows = phases.drawn(2_500, 1_000, 500, seed=1)
    assert [row.id for row in rows] == list(range(1, 2_501))
    by_state = {row.id for row in rows if row.state == phases.STATE}
    by_zip = {row.id for row in rows if row.zip == phases.ZIP}
    assert len(by_state) == 1_000 and len(by_zip) == 500 and not by_state & by_zip
    assert not any(row.state == phases.NEW_STATE or row.zip == phases.NEW_ZIP for row in rows)
    assert 100 < sorted(by_state)[100] < 500, "they lie among the others"
    for column, width in phases.WIDTHS.items():
        assert 0 < max(len(getattr(row, column)) for row in rows) <= width
    assert rows == phases.drawn(2_500, 1_000, 500, seed=1) != phases.drawn(2_500, 1_000, 500, seed=2)
    assert phases.digest(rows) == phases.digest(reversed(rows)) != phases.digest(rows[1:])


def test_each_test_finds_exactly_its_rows_in_what_those_before_have_left(study):
    questions = study("phases").AskedRows(7, 100, 40, 20, 1, batch=False)
    assert {test: len(rows) for test, rows in questions.expected.items()} == {
        **{"T2": 100, "T3A": 40, "T3B": 20, "T4A": 100, "T4B": 100},
        **{"T5A": 60, "T5B": 40},
    }
    phases = study("phases")
    changed = questions.expected["T4B"]
    assert sum(row.zip == phases.NEW_ZIP for row in changed) == 40
    assert sum(row.state == phases.NEW_STATE for row in changed) == 20
    counts = [questions.count(test) for test in TESTS]
    assert counts == [7, 100, 40, 20, 40, 20, 40, 20]


# --- systems


@pytest.fixture(scope="module")
def results(tmp_path_factory, server, library):
    """What each system reported, by its transactions; each transaction was carried to a PostgreSQL."""
    by_system = {}
    for system in SYSTEMS:
        for transactions in ("row", "batch"):
            folder = tmp_path_factory.mktemp(system)
            given = connections(folder, zen=str(library), zen_odbc=f"Driver=SQLite3;Database={folder}/zen")
            options = ["--transactions", transactions, "--sync", "postgresql", "--server", server, *given]
            ended = own_process(
                system, "--storage", str(folder), *options, *SMALL, "--results", str(folder / "results")
            )
            assert ended.returncode == 0, ended.stderr
            carried = f"carried to {release(server)}"
            assert carried in ended.stdout
            first, *lines = (json.loads(line) for line in (folder / "results").read_text().splitlines())
            assert carried in first["software"], "what is measured is named before its phases"
            by_system[system, transactions] = {line["phase"]: line for line in lines}
    return by_system


@pytest.mark.slow
def test_every_system_does_every_test(results):
    harness = {f"HARNESS_{test}" for test in ("T1", "T2", "T4A", "T4B", "T5A", "T5B")}
    for lines in results.values():
        assert set(lines) == {*TESTS, *harness}
        assert not any(line["not_supported"] for line in lines.values())


@pytest.mark.slow
def test_all_systems_give_the_same_answers_row_by_row_and_together(results):
    for test in TESTS:
        assert len({lines[test]["answer"] for lines in results.values()}) == 1
    answers = [results["zen", "row"][test]["answer"] for test in TESTS]
    assert [answer.split()[0] for answer in answers] == ["2", "8", "3", "2", "8", "8", "5", "3"]


@pytest.mark.slow
def test_times_are_the_runs_median_by_row_and_the_harness_is_apart(results):
    for lines in results.values():
        assert lines["T2"]["operations"] == 2 * 8 and lines["HARNESS_T2"]["operations"] % 8 == 0
        for test, count in (("T1", 2), ("T3A", 3), ("T3B", 2)):
            times, rest = divmod(lines[test]["operations"], count)
            assert times >= 2 and rest == 0, "where they are too quick for joules, they were done again"
        assert lines["T4A"]["operations"] == 2 * 3 and lines["T4B"]["operations"] == 2 * 2
        for test in TESTS:
            figures = lines[test]["figures"]
            assert 0 < figures["least_per_row_us"] <= figures["per_row_us"] <= figures["greatest_per_row_us"]
        figures, harness = lines["T4A"]["figures"], lines["HARNESS_T4A"]["figures"]
        assert figures["harness_per_row_us"] == harness["per_row_us"]


def test_a_median_is_of_the_runs_and_progress_counts_to_what_the_check_has_said(study, job, tmp_path, capfd):
    runs, phases = study("job"), study("phases")
    questions = phases.AskedRows(2, 100, 40, 20, 1, batch=True)
    names = [name for test in TESTS for name in (test, f"HARNESS_{test}")]
    contact_runs = [
        SimpleNamespace(seconds=dict.fromkeys(names, seconds), times={**dict.fromkeys(names, 1), "T3A": 4})
        for seconds in (3.0, 1.0, 5.0)
    ]
    results = study("opjoule_study").Results(str(tmp_path / "results"))
    runs.tell(questions, contact_runs, results)
    lines = [json.loads(line) for line in (tmp_path / "results").read_text().splitlines()]
    assert {line["phase"]: line["operations"] for line in lines if line["phase"] in ("T2", "T3A")} == {
        **{"T2": 3 * 100, "T3A": 3 * 4 * 40},
    }
    assert "T2: 30000.00 us a row (10000.00 to 50000.00)" in capfd.readouterr().out
    system = study("sql_systems").SqliteTable(str(tmp_path / "db"))
    run = runs.ContactRun(system, None, questions, before=282, now=[""], harness=True)
    run.progress.told_s = float("-inf")
    run.all()
    changing = {"T2", "T4A", "T4B", "T5A", "T5B"}
    assert {test: run.times[test] for test in changing} == dict.fromkeys(changing, 1)
    assert {test for test in run.times if test.startswith("HARNESS_")} == {f"HARNESS_{x}" for x in {"T1", *changing}}
    run.progress.told_s = float("-inf")
    run.progress.tell()
    progress = [json.loads(line)["progress"]["operations"] for line in capfd.readouterr().out.splitlines()]
    counts = ["--opens", "2", "--rows", "100", "--by-state", "40", "--by-zip", "20", "--runs", "2"]
    _, _, said = job("sqlite", "--storage", "/nowhere", *counts, "--check")
    assert progress[-1] == json.loads(said)["operations"] == 2 * 282


class Seen:
    """A server that notes what it is given, and whether others see it in the database by then."""

    def __init__(self, file):
        self._file, self.calls = file, []

    def __getattr__(self, name):
        return lambda given: self.calls.append((name, given, self._count("state = 'QA'"), self._count("1 = 1")))

    def _count(self, condition):
        with sqlite3.connect(self._file) as other:
            return other.execute(f"SELECT count(*) FROM opjoule_contacts WHERE {condition}").fetchone()[0]


@pytest.mark.parametrize("batch", [False, True])
def test_every_transaction_is_made_before_it_is_carried_and_is_as_large_as_asked(study, tmp_path, batch):
    phases = study("phases")
    system, questions = (
        study("sql_systems").SqliteTable(str(tmp_path / "db")),
        phases.AskedRows(1, 12, 4, 3, 1, batch=batch),
    )
    system.create()
    system.open()
    server = Seen(tmp_path / "db" / "contacts.sqlite")
    for test in ("T2", "T4A", "T5A"):
        phases.TESTS[test](system, questions, server, lambda done: None)
    assert system.everything() == questions.expected["T2"][:0] + [
        tuple(row) for row in questions.contacts if row.state != "QA"
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
    runs, sql, phases = study("job"), study("sql_systems"), study("phases")

    class Forgetful(sql.SqliteTable):
        def update_all(self, column, value, target, new_value):
            super().update_all(column, value if column == "state" else "none", target, new_value)

        def store_all(self, contacts):
            super().store_all(contacts[1:])

    questions = phases.AskedRows(1, 20, 8, 4, 1, batch=True)
    with pytest.raises(runs.WrongAnswer, match=r"^T4B: \(\d+, .*, not "):
        runs.ContactRun(Forgetful(str(tmp_path / "one")), None, questions, before=0, now=[""]).all()
    system, server = sql.SqliteTable(str(tmp_path / "two")), Forgetful(str(tmp_path / "three"))
    with pytest.raises(runs.WrongAnswer, match=r"^T4A, on the server: "):
        runs.ContactRun(system, server, questions, before=0, now=[""]).all()


def test_a_server_of_the_users_is_reached_by_its_connection_and_keeps_no_table(server, tmp_path, study, job):
    given = connections(tmp_path, sqlserver=as_odbc(server), postgresql=as_odbc(server))
    options = ["--transactions", "batch", *SMALL, *given]
    for name in ("sqlserver", "postgresql"):
        status, wrong, said = job("sqlite", "--storage", str(tmp_path), "--sync", name, *options)
        assert status == 0, wrong
        assert f"carried to {release(server)}" in said and "Password" not in said + wrong
    connection = study("sql_systems").connect("postgresql", as_odbc(server))
    assert connection.cursor().tables(table="opjoule%").fetchall() == []
    connection.close()


# --- where it cannot work


def test_a_disk_too_small_is_one_line_before_anything_is_loaded(job, tmp_path):
    for words in ((), ("--check",)):
        status, said, _ = job("sqlite", "--storage", str(tmp_path), "--rows", "1000000000000", *words)
        assert status == 2 and "another medium" in said and said.count("\n") == 1
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
def test_a_module_that_is_missing_or_of_the_wrong_version_is_one_line(job, monkeypatch, module, says, tmp_path):
    monkeypatch.setitem(sys.modules, "pyodbc", module)
    status, said, _ = job("sqlite-odbc", "--storage", str(tmp_path), "--check")
    assert status == 2 and says in said and said.count("\n") == 1
