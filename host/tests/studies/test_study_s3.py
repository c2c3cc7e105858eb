"""Study S3: its data, its phases on four databases with one answer, and what it says where it cannot work."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from moved_servers import server_on
from opjoule.cli.commands import main
from opjoule.comparison.study.rows import read_studies
from opjoule.devices.connection.shell import LocalShell
from opjoule.devices.programs.binaries import find_program
from opjoule.devices.programs.probe import Probe
from opjoule.devices.programs.runner import PROBE_FOLDER, Runner
from opjoule.devices.server.setup import DatabaseServer, ServerPrograms
from opjoule.plots import figures

ROOT = Path(__file__).resolve().parents[3]
STUDY = ROOT / "studies" / "s3"
PROBE = ROOT / "loader-cpp" / "probe"
SESSION = "opjoule-5353535353aa"
PORT = 27956
SYSTEMS = ("berkeleydb", "duckdb", "postgresql", "sqlite")
MODULES = (
    "answers",
    "berkeley_db",
    "job",
    "phases",
    "postgresql",
    "readings",
    "sql_systems",
    "study_run",
    "verified",
)
ROWWISE = ("LOAD_ROWS", "READ", "UPDATE_ROWS", "DELETE_ROWS")


@pytest.fixture
def study(monkeypatch):
    """Gives a module of the study's folder by its name; they are flat there, and forgotten afterwards."""
    monkeypatch.syspath_prepend(str(PROBE))
    monkeypatch.syspath_prepend(str(STUDY.parent))
    monkeypatch.syspath_prepend(str(STUDY))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


def environment(*first: Path, path: str = "") -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name != "OPJOULE_MARKS"}
    own["PYTHONPATH"] = os.pathsep.join(map(str, (*first, PROBE, ROOT / "studies")))
    return own | ({"PATH": f"{path}{os.pathsep}{own['PATH']}"} if path else {})


def job(*arguments: str, **places) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(STUDY / "job.py"), *arguments],
        env=environment(*places.get("first", ()), path=places.get("path", "")),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


# --- data


def test_drawn_readings_have_the_sensors_period_day_gaps_and_outliers_of_the_deployment(study):
    readings = study("readings")
    sensor = readings.Sensor(7, seed=3)
    own = sensor.readings(sensor.epochs())
    assert [each.at_us for each in own] == sorted({each.at_us for each in own})
    gaps_s = [(after.at_us - before.at_us) / 1e6 for before, after in itertools.pairwise(own)]
    assert statistics.median(gaps_s) == pytest.approx(31.0, abs=0.2)
    assert sum(gap > 3600 for gap in gaps_s) >= 2
    assert own[0].at_us >= readings.START_US and own[-1].at_us < readings.START_US + 38 * readings.DAY_US
    hour = {each: [] for each in range(24)}
    for each in own:
        hour[each.at_us % readings.DAY_US // readings.HOUR_US].append(each)
    mean = {at: statistics.fmean(each.temperature for each in of) for at, of in hour.items()}
    assert max(mean, key=mean.get) in (13, 14, 15, 16) and max(mean.values()) - min(mean.values()) > 4
    assert (
        statistics.fmean(each.light for each in hour[14])
        > 100 * statistics.fmean(each.light for each in hour[2]) / 10
    )
    values = [each.temperature for each in own]
    middle, spread = statistics.fmean(values), statistics.stdev(values)
    assert 0.002 < sum(abs(value - middle) > 2 * spread for value in values) / len(values) < 0.05
    assert all(0 <= each.humidity <= 100 and 2 < each.voltage < 3 for each in own)


@pytest.mark.slow
def test_a_sample_is_of_54_sensors_with_as_many_rows_each_and_follows_from_the_seed(study):
    readings = study("readings")
    drawn, about = readings.DrawnReadings().sample(5_000, 1), readings.DrawnReadings().about()
    counts = Counter(each.sensor for each in drawn)
    assert len(drawn) == 5_000 and set(counts) == set(range(1, 55))
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len({each[:2] for each in drawn}) == 5_000
    assert drawn == readings.drawn(5_000, 1) and drawn != readings.drawn(5_000, 2)
    assert about.startswith("SYNTHETIC")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1_000, 10_000])
def test_gaps_and_common_hours_mean_something_in_the_smallest_sample(study, rows):
    """A gap above an hour is an outage of the sensor and no product of sampling; two sensors share many hours."""
    answers, readings = study("answers"), study("readings")
    for seed in (1, 2, 3):
        drawn = sorted(readings.drawn(rows, seed))
        assert 0 < len(answers.outages(drawn)) < rows / 20
        pair = [[row for row in drawn if row.sensor == one] for one in (1, 2)]
        ((hours, correlation),) = answers.compare_two(*pair)
        assert hours >= 5 and correlation is not None


LINES = """\
2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397
2004-02-28 00:59:16.02785 3 1 19.9884 37.0933 45.08 2.69964
2004-02-28 00:59:16.02785 3 1 19.9884 37.0933 45.08 2.69964
2004-03-01 10:00:00 90 54 20.5 36.1 100.0 2.6
2004-03-01 10:00:00 90 6485 20.5 36.1 100.0 2.6
2004-03-01 10:00:00 90 0 20.5 36.1 100.0 2.6
2004-03-01 10:00:31 91 3
2004-03-01 10:00:31 91 3 20.5 36.1 100.0
2004-13-01 10:00:31 91 3 20.5 36.1 100.0 2.6
2031-03-01 10:00:31 91 3 20.5 36.1 100.0 2.6
2004-03-01 27:00:31 91 3 20.5 36.1 100.0 2.6
2004-03-01 10:00:31 91 3 x 36.1 100.0 2.6
2004-03-01 10:00:31 91 3 nan 36.1 100.0 2.6

2004-04-05 23:59:59.999999 92 3 20.5 36.1 100.0 2.6
2004-04-05 23:59:59.9"""


def test_lines_of_the_dataset_that_are_no_readings_are_left_out_and_counted(study, tmp_path):
    readings = study("readings")
    file = tmp_path / "data.txt"
    file.write_text(LINES)
    dataset = readings.SensorFile(str(file))
    assert dict(dataset.left_out) == {"twice": 1, "sensor": 2, "fields": 3, "date": 3, "number": 2}
    found = dataset.sample(100, 1)
    assert [each.sensor for each in found] == [1, 54, 1, 3]
    assert found[2] == (1, 1080704295757551, 2, 122.153, -3.91901, 11.04, 2.03397)
    assert readings.line_of(found[2]) == LINES.splitlines()[0]
    said = dataset.about()
    assert f"{file}: 4 readings" in said and "3 with a number of fields other than 8" in said


def test_a_file_without_a_reading_is_one_line(tmp_path):
    file = tmp_path / "data.txt"
    file.write_bytes(b"\xff\xfe nothing\n")
    ended = job("sqlite", "--storage", str(tmp_path), "--dataset", str(file))
    assert ended.returncode == 2 and "no line is a reading" in ended.stderr.splitlines()[-1]
    ended = job("sqlite", "--storage", str(tmp_path), "--dataset", str(tmp_path / "none"))
    assert ended.returncode == 2 and "No such file" in ended.stderr.splitlines()[-1]


def test_a_sample_of_a_file_has_as_many_rows_of_each_sensor_in_order(study, tmp_path):
    readings = study("readings")
    start = readings.START_US
    whole = [
        readings.SensorReading(sensor, start + 10**6 * number + sensor, number, 20.0 + number, 40.0, 1.0, 2.5)
        for sensor, count in ((1, 600), (2, 300), (3, 99))
        for number in range(count)
    ]
    file = tmp_path / "data.txt"
    file.write_text("\n".join(map(readings.line_of, whole)))
    dataset = readings.SensorFile(str(file))
    taken = dataset.sample(100, 5)
    counts = Counter(each.sensor for each in taken)
    assert sorted(counts.values()) == [33, 33, 34]
    assert set(taken) <= set(whole) and [each.at_us for each in taken] == sorted(each.at_us for each in taken)
    assert taken == dataset.sample(100, 6)
    assert dataset.sample(5_000, 5) == sorted(whole, key=lambda each: (each.at_us, each.sensor))


def test_a_sensor_with_too_few_readings_gives_all_of_them_and_others_the_rest(study):
    assert study("readings").equal_shares({1: 600, 2: 300, 3: 10}, 100) == {1: 45, 2: 45, 3: 10}
    assert study("readings").equal_shares({1: 6, 2: 3}, 100) == {1: 6, 2: 3}


def test_a_sample_written_by_the_command_is_a_dataset_itself(study, tmp_path):
    made = subprocess.run(
        [sys.executable, str(STUDY / "readings.py"), "--rows", "300", "--seed", "4"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    (tmp_path / "sample").write_text(made.stdout)
    dataset = study("readings").SensorFile(str(tmp_path / "sample"))
    assert dataset.sample(300, 1) == study("readings").drawn(300, 4) and not dataset.left_out
    assert "SYNTHETIC" in made.stderr
    options = [
        "--rows",
        "30",
        "--runs",
        "2",
        "--dataset",
        str(tmp_path / "sample"),
        "--storage",
        str(tmp_path),
    ]
    ended = job("sqlite", *options)
    assert ended.returncode == 0 and "30 rows: " in ended.stdout and "sample: 300 readings" in ended.stdout


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
    folder, shell = tmp_path_factory.mktemp("server"), LocalShell()
    program, session = str(find_program(ROOT / "build", platform.machine(), "probe")), str(folder / SESSION)
    probe = Probe(shell, program, f"{session}/{PROBE_FOLDER}", [])
    runner, database = Runner(shell, program, session), server_on("postgresql", PORT)
    data = str(folder / f"{SESSION}-postgresql")
    made = DatabaseServer(shell, runner, database, ServerPrograms(), data=data, tag="server-1", raw=folder)
    yield made.url
    made.stop()
    probe.close()


@pytest.fixture(scope="module")
def told(tmp_path_factory, server):
    """What each system told of the phases with 40 and with 80 rows."""
    found = {}
    for system in SYSTEMS:
        folder = tmp_path_factory.mktemp(system)
        options = ["--rows", "40,80", "--runs", "3", "--results", str(folder / "results"), "--server", server]
        ended = job(system, "--storage", str(folder), *options)
        assert ended.returncode == 0, ended.stderr
        found[system] = results_of(folder / "results")
    return found


@pytest.mark.slow
def test_every_system_does_every_phase_or_says_why_not(told, study):
    phases = list(study("phases").PHASES)
    assert len(phases) == 13 + 3, "the study's, and three variants row by row"
    names = [*(f"HARNESS_{name}" for name in ROWWISE), *phases]
    for lines in told.values():
        assert list(lines) == [(name, rows) for rows in ("40", "80") for name in names]
    missing = {
        (system, name) for system in told for (name, _), line in told[system].items() if line["not_supported"]
    }
    assert missing == {("berkeleydb", "LOAD_ROWS")}


@pytest.mark.slow
def test_all_systems_give_the_same_answer_to_every_phase(told, study):
    for name in study("phases").PHASES:
        for rows in ("40", "80"):
            said = {told[system][name, rows]["answer"] for system in SYSTEMS}
            assert said - {None} and len(said - {None}) == 1
            assert (None in said) == (name in ("FULL_PROFILE", "LOAD_ROWS")), "Berkeley DB's is another one"


@pytest.mark.slow
def test_durations_and_calls_are_of_the_runs_that_count_and_the_harness_is_apart(told):
    for lines in told.values():
        load = lines["LOAD", "80"]
        assert load["operations"] == 2 * 80 and load["mark"] == "LOAD.80"
        assert lines["UPDATE", "80"]["operations"] == lines["DELETE", "80"]["operations"] == 2 * 54
        read, harness = lines["READ", "80"], lines["HARNESS_READ", "80"]
        assert read["operations"] % 80 == harness["operations"] % 80 == 0
        assert harness["operations"] > 2 * 80, "done until it is long enough"
        assert (
            lines["AVG_SENSOR", "80"]["operations"] >= 2
            and lines["AVG_SENSOR", "80"]["figures"]["calls"] == 1
        )
        assert lines["UPDATE_ROWS", "80"]["operations"] == 2 * lines["UPDATE_ROWS", "80"]["figures"]["calls"]
        figures = read["figures"]
        assert 0 < figures["least_s"] <= figures["mean_s"] <= figures["greatest_s"]
        assert figures["harness_s"] == harness["figures"]["mean_s"] < figures["mean_s"]


@pytest.fixture
def one_study(study, tmp_path):
    """Gives a run of all phases on a sample, and notes what was asked of the system."""

    def made(rows, runs=3, system=None):
        asked = study("phases").Parameters(study("readings").drawn(rows, 1), 1, runs)
        own = (system or study("sql_systems").Sqlite)(str(tmp_path / "db"))
        return study("study_run").PhaseRuns(own, asked, str(tmp_path), before=100, now=[""])

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

    monkeypatch.setattr(study("study_run"), "phase", phase)
    monkeypatch.setattr(study("study_run"), "LEAST_S", 0.0)
    one_study(60, 6, Noted).all()
    assert done[:9] == ["create"] * 9, "a database for each of 3 and 6 loads, and none after them"
    assert done[9:15] == ["last_readings"] * 6 and done[15:21] == ["avg_sensor"] * 6
    assert marked.count("AVG_SENSOR.60") == marked.count("LOAD.60") == marked.count("DELETE.60") == 5
    assert marked.count("LOAD_ROWS.60") == marked.count("UPDATE_ROWS.60") == 2


def test_progress_counts_the_rows_of_load_and_read_up_to_what_the_check_has_said(one_study, capsys):
    one = one_study(50)
    one.progress.told_s = -1e9  # the next word is due
    one.all()
    one.progress.told_s = -1e9
    one.progress.tell()
    told = [json.loads(line)["progress"]["operations"] for line in capsys.readouterr().out.splitlines()]
    assert told[0] == 100 and told[-1] == 100 + 3 * 3 * 50
    ended = job("sqlite", "--storage", "/nowhere", "--rows", "10,40", "--runs", "3", "--check")
    assert json.loads(ended.stdout)["operations"] == 3 * 3 * 50


def test_a_wrong_answer_ends_the_run_with_the_names_of_the_phases(one_study, study):
    class Forgetful(study("sql_systems").Sqlite):
        def outages(self):
            return super().outages()[1:]

        def delete(self, sensor, start, end):
            return super().delete(sensor, start, end) if sensor != 3 else 0

        def daily_summary(self):
            return [(*row[:4], row[4] * (1 + 1e-8)) for row in super().daily_summary()]

    found = list(one_study(2_000, 3, Forgetful).steps())
    wrong = {name for name, why in found if why}
    assert {"DELETE", "OUTAGES", "DAILY_SUMMARY", "FULL_PROFILE", "rows after all phases"} <= wrong
    assert not wrong & {"LOAD", "LOAD_ROWS", "READ", "LAST_READINGS", "UPDATE"}
    with pytest.raises(study("study_run").WrongAnswer, match="DELETE: row 3"):
        one_study(2_000, 3, Forgetful).all()


def test_what_only_reads_is_done_until_its_mark_is_long_enough_and_every_answer_is_checked(one_study, study):
    class Forgetful(study("sql_systems").Sqlite):
        asked = 0

        def avg_sensor(self):
            self.asked += 1
            return super().avg_sensor()[: None if self.asked <= 2 else -1]

    one = one_study(300, 2, Forgetful)
    wrong = [name for name, why in one.steps() if why]
    assert one.operations["AVG_SENSOR"] > 1
    assert wrong.count("AVG_SENSOR") == 1, "the last answer, not the first"
    assert one.operations["LOAD"] == 300 and one.operations["UPDATE"] == 54


def test_the_answers_are_held_against_another_computation_before_anything_is_measured(study, monkeypatch):
    """Berkeley DB answers by the same functions that its answers are held against."""
    sample = study("readings").drawn(2_000, 1)
    study("verified").verify(sample, 1)
    whole = study("answers").anomalies
    monkeypatch.setattr(study("answers"), "anomalies", lambda rows: whole(rows)[1:])
    with pytest.raises(study("study_run").WrongAnswer, match="ANOMALIES by SQL and by plain Python"):
        study("verified").verify(sample, 1)


# --- where it cannot work


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_disk_too_small_is_one_line_before_anything_is_loaded(system, tmp_path):
    ended = job(system, "--storage", str(tmp_path), "--rows", "1000,1000000000000")
    assert ended.returncode == 2 and "take fewer rows or another medium" in ended.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


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


# --- on the rig


@pytest.mark.rig
@pytest.mark.end_to_end
@pytest.mark.parametrize("systems", [("duckdb", "sqlite"), SYSTEMS], ids=["two systems", "every system"])
def test_every_system_gives_joules_and_the_same_answers_on_the_simulated_rig(
    tmp_path, capsys, monkeypatch, study, request, systems
):
    if "postgresql" in systems:
        request.getfixturevalue("studies_postgresql")
    asked = ["--study", "s3", "--device", "rpi4", "--simulate", "--idle", "0.3", "--scale", "0.05"]
    asked += ["--settle-limit", "1", "--storage", "ssd-usb3", "--only", f"system={','.join(systems)}"]
    assert main([*asked, "--repeats", "1", "--only", "rows=1000", "--out", str(tmp_path)]) in (0, 6)
    assert f"answers    the same in all of {', '.join(sorted(systems))}" in capsys.readouterr().out
    (found,) = read_studies([path.parent for path in tmp_path.glob("*/run.json")])
    assert not found.faults
    for name in study("phases").PHASES:
        assert {row.system for row in found.rows if row.phase == name} == set(systems)
    refused = {(row.system, row.phase) for row in found.rows if row.not_supported}
    assert refused == {("berkeleydb", "LOAD_ROWS")} & {(system, "LOAD_ROWS") for system in systems}
    joules = {(row.system, row.phase): row.measures.get("energy_per_operation_j", 0) for row in found.rows}
    assert joules["duckdb", "LOAD_ROWS"] > 0 and joules["duckdb", "READ"] > 0
    log = next(path for path in tmp_path.glob("*duckdb*/raw/run-1.log")).read_text()
    assert "50 rows: SYNTHETIC" in log
    monkeypatch.setattr(figures, "FIGURES", {})
    assert main(["runs", "figures", str(tmp_path), "--out", str(tmp_path / "drawn")]) == 0
    assert (tmp_path / "drawn" / "s3-rows-50-phases.pdf").exists()
    methods = (tmp_path / "drawn" / "methods.txt").read_text()
    assert "Workloads: S3, databases on sensor data (50 rows)." in methods
    assert all(system in methods.split("Databases: ")[1].splitlines()[0] for system in systems)
