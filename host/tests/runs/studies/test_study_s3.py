"""Study S3: its answers, its phases on four databases with one answer, and what it says where it cannot work."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from moved_servers import postgresql_for_jobs
from study_s3 import SYSTEMS, job

SESSION = "opjoule-5353535353aa"
PORT = 27956
ROWWISE = ("LOAD_ROWS", "READ", "UPDATE_ROWS", "DELETE_ROWS")


# --- answers, by hand


def test_each_question_is_answered_as_its_definition_says(study):
    answers, readings = study("answers"), study("readings")
    hour, day = readings.HOUR_US, readings.DAY_US

    def row(sensor, at_us, temperature):
        return readings.SensorReading(sensor, at_us, 0, temperature, 0.0, 0.0, 0.0)

    rows = [row(1, 10 * index, 20.0) for index in range(9)] + [row(1, 2 * hour, 30.0), row(1, day + 1, 20.0)]
    rows += [row(2, 5, 10.0), row(2, 2 * hour + 5, 40.0), row(2, 3 * hour + 5, 10.0)]
    assert answers.last_readings(rows) == [tuple(rows[10]), tuple(rows[13])]
    assert answers.avg_sensor(rows) == [(1, 230 / 11), (2, 20.0)]
    assert answers.hot_sensors(rows, above=20.5, at_least=3, k=10) == [(1, 230 / 11)]
    assert answers.hot_sensors(rows, above=10.0, at_least=4, k=10) == [(1, 230 / 11)]
    assert answers.topk_sensors(rows, 1) == [(1, 230 / 11)]
    assert answers.anomalies(rows) == [(1, 2 * hour, 30.0)]
    assert answers.daily_summary(rows) == [
        (1, 0, 20.0, 30.0, 21.0),
        (1, day, 20.0, 20.0, 20.0),
        (2, 0, 10.0, 40.0, 20.0),
    ]
    assert answers.outages(rows) == [(1, 80, 2 * hour), (1, 2 * hour, day + 1), (2, 5, 2 * hour + 5)]
    assert answers.compare_two(rows[:11], rows[11:]) == [(2, pytest.approx(1.0))]
    assert answers.compare_two(rows[:1], rows[11:12]) == [(1, None)]
    assert answers.compare_two(rows[:1], rows[13:]) == [(0, None)]
    assert answers.newest_values(answers.last_readings(rows)) == [(2, 10.0, 20.0, 15.0)]


# --- systems


def results_of(file: Path) -> dict[tuple[str, str], dict]:
    first, *lines = (json.loads(line) for line in file.read_text().splitlines())
    assert first["software"].split()[0] in SYSTEMS, "what is measured is named before its phases"
    return {(line["phase"], line["cell"]["rows"]): line for line in lines}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Address of a PostgreSQL, as the rig starts it for the job."""
    with postgresql_for_jobs(tmp_path_factory.mktemp("server"), SESSION, PORT) as address:
        yield address


@pytest.fixture(scope="module")
def results(tmp_path_factory, server):
    """What each system reported of the phases with 40 and with 80 rows."""
    by_system = {}
    for system in SYSTEMS:
        folder = tmp_path_factory.mktemp(system)
        options = ["--rows", "40,80", "--runs", "3", "--results", str(folder / "results"), "--server", server]
        ended = job(system, "--storage", str(folder), *options)
        assert ended.returncode == 0, ended.stderr
        by_system[system] = results_of(folder / "results")
    return by_system


@pytest.mark.slow
def test_every_system_does_every_phase_or_says_why_not(results, study):
    phases = list(study("phases").PHASES)
    assert len(phases) == 13 + 3, "the study's, and three variants row by row"
    names = [*(f"HARNESS_{name}" for name in ROWWISE), *phases]
    for lines in results.values():
        assert list(lines) == [(name, rows) for rows in ("40", "80") for name in names]
    missing = {
        (system, name) for system in results for (name, _), line in results[system].items() if line["not_supported"]
    }
    assert missing == {("berkeleydb", "LOAD_ROWS")}


@pytest.mark.slow
def test_all_systems_give_the_same_answer_to_every_phase(results, study):
    for name in study("phases").PHASES:
        for rows in ("40", "80"):
            said = {results[system][name, rows]["answer"] for system in SYSTEMS}
            assert said - {None} and len(said - {None}) == 1
            assert (None in said) == (name in ("FULL_PROFILE", "LOAD_ROWS")), "Berkeley DB's is another one"


@pytest.mark.slow
def test_durations_and_calls_are_of_the_runs_that_count_and_the_harness_is_apart(results):
    for lines in results.values():
        load = lines["LOAD", "80"]
        assert load["operations"] == 2 * 80 and load["mark"] == "LOAD.80"
        assert lines["UPDATE", "80"]["operations"] == lines["DELETE", "80"]["operations"] == 2 * 54
        read, harness = lines["READ", "80"], lines["HARNESS_READ", "80"]
        assert read["operations"] % 80 == harness["operations"] % 80 == 0
        assert harness["operations"] > 2 * 80, "done until it is long enough"
        assert lines["AVG_SENSOR", "80"]["operations"] >= 2 and lines["AVG_SENSOR", "80"]["figures"]["calls"] == 1
        assert lines["UPDATE_ROWS", "80"]["operations"] == 2 * lines["UPDATE_ROWS", "80"]["figures"]["calls"]
        figures = read["figures"]
        assert 0 < figures["least_s"] <= figures["mean_s"] <= figures["greatest_s"]
        assert figures["harness_s"] == harness["figures"]["mean_s"] < figures["mean_s"]


@pytest.fixture
def one_study(study, tmp_path):
    """Gives a run of all phases on a sample, and notes what was asked of the system."""

    def made(rows, runs=3, system=None):
        parameters = study("phases").Parameters(study("readings").drawn(rows, 1), 1, runs)
        instance = (system or study("sql_systems").Sqlite)(str(tmp_path / "db"))
        return study("job").PhaseRuns(instance, parameters, str(tmp_path), before=100, now=[""])

    return made


def test_each_phase_is_run_several_times_in_a_row_on_one_database_and_the_first_run_is_not_marked(
    one_study, study, monkeypatch
):
    marked, done = [], []

    class Noted(study("sql_systems").Sqlite):
        def create(self):
            done.append("create")
            super().create()

        def avg_sensor(self):
            done.append("avg_sensor")
            return super().avg_sensor()

        def last_readings(self):
            done.append("last_readings")
            return super().last_readings()

    def phase(name):
        marked.append(name)
        return contextlib.nullcontext()

    monkeypatch.setattr(study("job"), "phase", phase)
    monkeypatch.setattr(study("job"), "LEAST_S", 0.0)
    one_study(60, 6, Noted).all()
    assert done[:9] == ["create"] * 9, "a database for each of 3 and 6 loads, and none after them"
    assert done[9:15] == ["last_readings"] * 6 and done[15:21] == ["avg_sensor"] * 6
    assert marked.count("AVG_SENSOR.60") == marked.count("LOAD.60") == marked.count("DELETE.60") == 5
    assert marked.count("LOAD_ROWS.60") == marked.count("UPDATE_ROWS.60") == 2


@pytest.mark.slow
def test_progress_counts_the_rows_of_load_and_read_up_to_what_the_check_has_said(one_study, capsys):
    one = one_study(50)
    one.progress.told_s = -1e9  # the next word is due
    one.all()
    one.progress.told_s = -1e9
    one.progress.tell()
    counts = [json.loads(line)["progress"]["operations"] for line in capsys.readouterr().out.splitlines()]
    assert counts[0] == 100 and counts[-1] == 100 + 3 * 3 * 50
    ended = job("sqlite", "--storage", "/nowhere", "--rows", "10,40", "--runs", "3", "--check")
    assert json.loads(ended.stdout)["operations"] == 3 * 3 * 50


@pytest.mark.slow
def test_a_wrong_answer_ends_the_run_with_the_names_of_the_phases(one_study, study):
    class Forgetful(study("sql_systems").Sqlite):
        def outages(self):
            return super().outages()[1:]

        def delete(self, sensor, start, end):
            return super().delete(sensor, start, end) if sensor != 3 else 0

        def daily_summary(self):
            return [(*row[:4], row[4] * (1 + 1e-8)) for row in super().daily_summary()]

    steps = list(one_study(2_000, 3, Forgetful).steps())
    wrong = {name for name, why in steps if why}
    assert {"DELETE", "OUTAGES", "DAILY_SUMMARY", "FULL_PROFILE", "rows after all phases"} <= wrong
    assert not wrong & {"LOAD", "LOAD_ROWS", "READ", "LAST_READINGS", "UPDATE"}
    with pytest.raises(study("job").WrongAnswer, match="DELETE: row 3"):
        one_study(2_000, 3, Forgetful).all()


def test_what_only_reads_is_done_until_its_mark_is_long_enough_and_every_answer_is_checked(one_study, study):
    class Forgetful(study("sql_systems").Sqlite):
        calls = 0

        def avg_sensor(self):
            self.calls += 1
            return super().avg_sensor()[: None if self.calls <= 2 else -1]

    one = one_study(300, 2, Forgetful)
    wrong = [name for name, why in one.steps() if why]
    assert one.operations["AVG_SENSOR"] > 1
    assert wrong.count("AVG_SENSOR") == 1, "the last answer, not the first"
    assert one.operations["LOAD"] == 300 and one.operations["UPDATE"] == 54


def test_the_answers_are_held_against_another_computation_before_anything_is_measured(study, monkeypatch):
    """Berkeley DB answers by the same functions that its answers are held against."""
    sample = study("readings").drawn(2_000, 1)
    study("job").verify(sample, 1)
    whole = study("answers").anomalies
    monkeypatch.setattr(study("answers"), "anomalies", lambda rows: whole(rows)[1:])
    with pytest.raises(study("job").WrongAnswer, match="ANOMALIES by SQL"):
        study("job").verify(sample, 1)


# --- where it cannot work


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_disk_too_small_is_one_line_before_anything_is_loaded(system, tmp_path):
    ended = job(system, "--storage", str(tmp_path), "--rows", "1000,1000000000000")
    assert ended.returncode == 2 and "another medium" in ended.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_ten_rows_are_enough_although_a_phase_then_changes_none(tmp_path):
    ended = job("sqlite", "--storage", str(tmp_path), "--rows", "10")
    assert ended.returncode == 0, ended.stderr
    assert "DELETE_ROWS: " in ended.stdout and "FULL_PROFILE: " in ended.stdout


@pytest.mark.parametrize(
    ("system", "module", "says"),
    [
        ("duckdb", "raise ImportError('none here')", "pip install duckdb"),
        ("postgresql", "raise ImportError('none here')", "pip install 'psycopg[binary]'"),
        ("postgresql", "__version__ = '3.0.18'", "psycopg 3.0.18 is too old"),
    ],
)
def test_a_client_that_is_missing_or_of_the_wrong_version_is_one_line(system, module, says, tmp_path):
    client = {"duckdb": "duckdb.py", "postgresql": "psycopg.py"}[system]
    (tmp_path / client).write_text(module)
    ended = job(system, "--storage", str(tmp_path), "--check", first=[tmp_path])
    assert ended.returncode == 2 and says in ended.stderr.splitlines()[-1]


def test_a_server_that_is_not_there_or_lets_nobody_in_is_one_line(server, tmp_path):
    for address, says in (
        ("", "--server is missing"),
        ("postgresql://opjoule@127.0.0.1:1/postgres", "refused"),
        (server.partition("?")[0], "no password"),
        (server.replace("opjoule@", "opjoule:wrong@"), "password authentication failed"),
    ):
        ended = job("postgresql", "--storage", str(tmp_path), "--server", address)
        assert ended.returncode == 2 and says in ended.stderr.splitlines()[-1]
        assert ended.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_database_that_fails_in_a_phase_is_named_with_it(study, tmp_path):
    (tmp_path / "s3").write_text("no folder")
    ended = job("sqlite", "--storage", str(tmp_path))
    assert (
        ended.returncode == 3
        and "sqlite, LOAD_ROWS, run 1, of 1000 rows: NotADirectoryError" in ended.stderr.splitlines()[-1]
    )
