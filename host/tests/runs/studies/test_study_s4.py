"""Study S4: its points, its queries on three servers with one answer, and what it says where it cannot work."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import mongo_server
import pytest
from influx_2_server import Influx2
from made_mongod import BUILD, COPIES, made_mongod
from opjoule.cli.commands import main, parse
from opjoule.results.comparison.study_rows import read_studies
from opjoule.runs.studies.folder import find_study

ROOT = Path(__file__).resolve().parents[4]
STUDIES = ROOT / "studies"
PROBE = ROOT / "loader-cpp" / "probe"
DAY_MS = 86_400_000


def job(*arguments: str, first: Path = PROBE) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "OPJOULE_MARKS"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (first, PROBE, STUDIES)))
    command = [sys.executable, str(STUDIES / "s4" / "job.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_drawn_points_span_13_days_of_both_fields_with_a_daily_cycle_and_follow_from_the_seed(study, tmp_path):
    points = study("points")
    points.draw(tmp_path / "one", 20_001, 1)
    left_out = {}
    drawn = list(points.read(tmp_path / "one", 10**9, left_out))
    assert len(drawn) == 20_001 and not left_out
    assert drawn[0][0] == points.START_MS
    assert 0 < points.START_MS + 13 * DAY_MS - drawn[-1][0] < 13 * DAY_MS / 9_000
    assert sum(field == "temperature" for _, _, field, _ in drawn) == 10_001
    by_hour = {hour: [] for hour in range(24)}
    for at_ms, value, field, _ in drawn:
        if field == "temperature":
            by_hour[at_ms % DAY_MS // 3_600_000].append(value)
    mean = {hour: sum(values) / len(values) for hour, values in by_hour.items()}
    assert max(mean, key=mean.get) in range(11, 17) and max(mean.values()) - min(mean.values()) > 6
    points.draw(tmp_path / "two", 20_001, 1)
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    points.draw(tmp_path / "two", 20_001, 2)
    assert (tmp_path / "two").read_bytes() != (tmp_path / "one").read_bytes()


def test_many_points_are_of_many_sensors(study, tmp_path):
    points = study("points")
    points.draw(tmp_path / "file", 500_000, 1)
    sensors = {sensor for _, _, _, sensor in points.read(tmp_path / "file", 1_000, {})}
    assert sensors == {"s1", "s2"}


def test_lines_that_are_no_points_are_left_out_and_counted(study, tmp_path):
    points = study("points")
    file = tmp_path / "file"
    file.write_text(
        "sensor,Timestamp,field,value\n"
        "a,2024-03-01T00:00:00Z,temperature,20.5\n"
        "a,1709251200000,temperature,21\n"  # the same time
        "a,2024-03-01 01:00:00+01:00,humidity,50\n"
        "b,1709251201000,temperature,nan\n"
        "b,yesterday,temperature,1\n"
        "b,1709251201000,pressure,1\n"
        "b c,1709251201000,humidity,1\n"
        "b,1709251201000\n"
        "b,1709251201000,humidity,44"
    )
    left_out = {}
    assert list(points.read(file, 10, left_out)) == [
        (1709251200000, 20.5, "temperature", "a"),
        (1709251200000, 50.0, "humidity", "a"),
        (1709251201000, 44.0, "humidity", "b"),
    ]
    assert left_out == {"malformed": 5, "repeated": 1}
    assert len(list(points.read(file, 2, {}))) == 2


def test_a_file_of_another_form_or_a_server_that_ends_is_one_line(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("time,value\n1,2\n")
    ended = job("influxdb", "--storage", str(tmp_path), "--dataset", str(file), "--check")
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"job.py: {file}: ") and "timestamp, value, field, sensor" in ended.stderr
    starts = ["sh", "-c", "echo no licence; exit 1"]
    commands = {
        "title": "TestDB",
        "start": starts,
        "ready": [],
        "data": str(tmp_path),
        "port": 1,
        "address": "",
    }
    ended = job("influxdb", "--storage", str(tmp_path), "--points", "10", "--server", json.dumps(commands))
    assert ended.returncode == 2 and ended.stderr == "job.py: TestDB ended: no licence\n"


POINTS = [
    (1709251200000, 21.5, "temperature", "s1"),
    (1709251200000, 40.0, "humidity", "s1"),
    (1709251260000, 19.5, "temperature", "s1"),
]


@pytest.fixture
def influx_2():
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Influx2,), {}))
    server.setup, server.databases, server.lines = {}, set(), []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_influxdb_2_is_set_up_and_driven_through_the_interface_of_1_with_a_token(study, influx_2):
    address = f"http://127.0.0.1:{influx_2.server_port}"
    client = study("systems").InfluxDb(address)
    client.create()
    assert client.version() == "2.7.11"
    assert len(influx_2.setup["password"]) >= 8 and influx_2.setup["bucket"] == "study"
    client.insert(POINTS)
    assert influx_2.lines[0] == "readings,field=temperature,sensor=s1 value=21.5 1709251200000"
    again = study("systems").InfluxDb(address)  # as after the server's restart
    assert again.count() == 3
    assert (again.q1(), again.q2(), again.q3()) == ([3, 81.0], [1, 21.5], [20.5, 40.0])


def test_an_influxdb_of_another_generation_is_named(study, influx_2):
    influx_2.RequestHandlerClass.version = "v3.0.1"
    client = study("systems").InfluxDb(f"http://127.0.0.1:{influx_2.server_port}")
    with pytest.raises(OSError, match=r"InfluxDB 3.0.1 is not supported; 1.x and 2.x are"):
        client.create()


LISTENS = """
import socket, sys, time
with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (
            "raise ImportError('none here')",
            r"\(none here\): pip install pymongo",
        ),
        (
            "class MongoClient(dict):\n"
            "    def __init__(self, *_, **__): pass\n"
            "    def __getitem__(self, _): return self\n"
            "    def server_info(self): raise ValueError('wire version 6,\\n but this version needs 7')\n"
            "    def close(self): pass",
            "MongoDB .*: wire version 6, but this version needs 7",
        ),
    ],
)
def test_a_client_that_is_missing_or_of_the_wrong_version_is_one_line_before_points_are_made(module, says, tmp_path):
    (tmp_path / "pymongo.py").write_text(module)
    (tmp_path / "medium").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = [sys.executable, "-c", LISTENS, str(port)]
    commands = {
        "title": "MongoDB",
        "start": start,
        "ready": [],
        "data": str(tmp_path),
        "port": port,
        "address": "",
    }
    options = ["--check"] if "ImportError" in module else ["--server", json.dumps(commands)]
    ended = job("mongodb", "--storage", str(tmp_path / "medium"), *options, first=tmp_path)
    assert ended.returncode == 2 and re.fullmatch(f"job.py: .*{says}\n", ended.stderr)
    assert [path.name for path in (tmp_path / "medium").iterdir()] in ([], ["server.log"])


def test_the_check_says_what_the_points_take_with_the_file_of_drawn_ones(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("timestamp,value,field,sensor\n")
    dataset = ["--dataset", str(file)]
    needed = {
        (system, kind): json.loads(
            job(system, "--storage", "/nowhere", "--points", "1000000", *more, "--check").stdout
        )["bytes"]
        for system in ("influxdb", "questdb", "mongodb")
        for kind, more in (("drawn", []), ("own", dataset))
    }
    assert needed["influxdb", "own"] == 45e6 and needed["influxdb", "drawn"] == 95e6
    assert needed["influxdb", "own"] < needed["questdb", "own"] < needed["mongodb", "own"]


def test_a_server_that_refuses_is_reported_in_its_own_words(study, influx_2):
    client = study("systems").InfluxDb(f"http://127.0.0.1:{influx_2.server_port}")
    with pytest.raises(OSError, match=r"HTTP 401: .*unauthorized access"):
        client.insert(POINTS)


def test_answers_are_those_of_the_definitions(study):
    queries = study("points")
    points = [(1, 21.0, "temperature", "a"), (1, 40.0, "humidity", "a"), (2, 20.0, "temperature", "a")]
    assert queries.expected(points) == {"Q1": [3, 81.0], "Q2": [1, 21.0], "Q3": [20.5, 40.0]}
    assert queries.agrees([3, 81.0 * (1 + 1e-12)], [3, 81.0])
    for wrong in ([3, 81.0001], [2, 81.0], [3, None], [3]):
        assert not queries.agrees(wrong, [3, 81.0])


def test_rows_are_compared_and_not_their_number_and_sum_alone(study, tmp_path):
    """Two values that have changed places leave both as they were."""
    queries, job = study("points"), study("job")
    rows = [(1, 21.0, "temperature", "a"), (1, 40.0, "humidity", "a"), (2, 20.5, "temperature", "b")]
    assert list(queries.rows_of("Q2", rows)) == [rows[0], rows[2]]
    assert queries.digest(rows) == queries.digest(reversed(rows)) != queries.digest(rows[:2])
    swapped = [(1, 20.5, "temperature", "a"), rows[1], (2, 21.0, "temperature", "b")]
    assert queries.agrees(queries.expected(swapped)["Q1"], queries.expected(rows)["Q1"])
    path = tmp_path / "points.csv"
    path.write_text("timestamp,value,field,sensor\n" + "".join(f"{at},{v},{f},{s}\n" for at, v, f, s in rows))
    options = argparse.Namespace(dataset=str(path), points=9, folder="")
    measurement = job.Measurement(options, None)
    for answer, fits in ((rows[::-1], True), (swapped, False), (rows[:2], False)):
        measurement._client = argparse.Namespace(q1_rows=lambda answer=answer: iter(answer))
        with contextlib.nullcontext() if fits else pytest.raises(job.WrongAnswer, match=r"Q1: [23] rows of"):
            measurement._check_rows("Q1")


def test_nothing_reads_the_points_between_a_start_and_a_cold_query(study, monkeypatch):
    job, done = study("job"), []

    class Recorder:
        """A server or a client that notes what it is asked."""

        address = ""

        def __init__(self, *_):
            pass

        def __getattr__(self, name):
            answer = [1, 2.0] if name.startswith("q") else 1
            return lambda *_: (done.append(name), answer)[1]

    monkeypatch.setattr(job, "SYSTEMS", {"influxdb": Recorder})
    monkeypatch.setattr(job, "phase", lambda _: contextlib.nullcontext())
    options = argparse.Namespace(system="influxdb", folder="/nowhere", dataset="", cold=2, repeats=1)
    monkeypatch.setattr(job.Measurement, "_check_rows", lambda *_: None)  # after all repeats
    measurement = job.Measurement(options, Recorder())
    measurement._client = Recorder()
    measurement._see_what_is_kept(1)
    measurement._query("Q1", [1, 2.0], 1)
    starts = [at for at, name in enumerate(done) if name == "start"]
    assert [done[at + 1 : at + 3] for at in starts] == [
        ["version", "count"],
        ["version", "q1"],
        ["version", "q1"],
    ]


@pytest.mark.parametrize(
    ("copied", "lacks"),
    [
        (0, "build information"),
        (1, "statistics of WiredTiger"),
        (2, "tables of WiredTiger"),
        (3, "count its inserts"),
    ],
)
def test_a_server_that_copies_single_answers_of_mongod_is_a_stand_in(study, copied, lacks):
    with (
        made_mongod(COPIES[:copied]) as server,
        contextlib.closing(study("systems").MongoDb(server.address)) as client,
    ):
        assert client.version() == BUILD["version"]
        said = client.other_server()
        assert said.startswith("a stand-in: not mongod, ") and lacks in said


def test_a_server_with_all_of_mongods_answers_is_mongod(study):
    with made_mongod(COPIES) as server, contextlib.closing(study("systems").MongoDb(server.address)) as client:
        assert client.other_server() == ""


@pytest.mark.parametrize(("field", "name"), [("ferretdbVersion", "FerretDB"), ("secantusVersion", "SecantusDB")])
def test_a_stand_in_that_names_itself_is_named(study, field, name):
    """SecantusDB's commit is forty zeros."""
    build = {**BUILD, "gitVersion": "0" * 40, field: "1.0"}
    with made_mongod(COPIES, build) as server, contextlib.closing(study("systems").MongoDb(server.address)) as client:
        assert client.other_server() == f"{name}, a stand-in: not mongod"


@pytest.mark.parametrize(
    ("asked", "kind", "plain"),
    [("timeseries", "timeseries", False), ("timeseries", "collection", True), ("plain", "collection", False)],
)
def test_a_server_that_makes_a_plain_collection_of_one_of_time_series_is_a_stand_in_for_it(study, asked, kind, plain):
    """As SecantusDB does, which takes the option and then points without a time."""
    build = {**BUILD, "gitVersion": "0" * 40, "secantusVersion": "1.0"}
    with made_mongod(COPIES, build, kind) as server:
        job = study("job")
        measurement = job.Measurement.__new__(job.Measurement)
        measurement._options = argparse.Namespace(system="mongodb", collection=asked)
        measurement._server = argparse.Namespace(
            address=server.address, title="MongoDB", start=lambda: None, stop=lambda: None
        )
        named, stands_for = measurement._named()
    assert named.endswith(
        "SecantusDB, a stand-in: not mongod" + ", a plain collection: it has none of time series" * plain
    )
    assert stands_for == ("MongoDB's collection of time series" if plain else "MongoDB")


def test_the_kind_of_collection_is_an_axis_that_is_measured_where_it_is_named():
    plain, both = (
        parse(["--study", "s4", "--device", "rpi4", "--dry-run", "--only", "system=mongodb", *more]).options.file.cells
        for more in ([], ["--only", "collection=plain,timeseries"])
    )
    assert [cell.condition["collection"] for cell in plain] == ["plain"]
    assert [cell.condition["collection"] for cell in both] == ["plain", "timeseries"]
    assert "{collection}" in find_study("s4").command


@pytest.mark.parametrize(("code", "raises"), [(238, False), (13, True)])
def test_a_query_that_a_server_of_mongodbs_protocol_lacks_is_not_asked(study, monkeypatch, code, raises):
    """FerretDB on SQLite has no $avg: its other queries are measured."""
    from pymongo.errors import OperationFailure  # of the tests, not of the study

    documents = study("systems")

    def refused(self):
        raise OperationFailure("no", code, {"errmsg": "$avg is not implemented yet"})

    monkeypatch.setattr(documents.MongoDb, "q3", refused)
    client = documents.MongoDb.__new__(documents.MongoDb)
    client._collection = documents.PLAIN
    client._client, client.cannot = argparse.Namespace(drop_database=lambda name: None), {}
    with pytest.raises(OperationFailure) if raises else contextlib.nullcontext():
        client.create()
    assert client.cannot == ({} if raises else {"Q3": "$avg is not implemented yet"})


@pytest.mark.rig
@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "systems",
    [("influxdb", "mongodb"), ("influxdb", "mongodb", "questdb")],
    ids=["two servers", "every server"],
)
def test_servers_on_the_simulated_rig_give_one_answer_and_joules(tmp_path, monkeypatch, capsys, systems):
    """MongoDB is a stand-in that keeps nothing, so it has no cold query.

    Each query is cold once, not three times: most of the study's time is that of QuestDB's starts.
    """
    short = shutil.copytree(STUDIES / "s4", tmp_path / "s4")
    text = (short / "study.toml").read_text()
    assert '"--cold", "3", "--repeats", "5"' in text
    (short / "study.toml").write_text(
        text.replace('"--cold", "3", "--repeats", "5"', '"--cold", "1", "--repeats", "2"')
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    argv = ["--study", str(short), "--device", "rpi4", "--simulate", "--idle", "0.3", "--scale", "0.0002"]
    argv += ["--settle-limit", "30", "--storage", "ssd-usb3", "--repeats", "1"]
    argv += ["--only", f"system={','.join(systems)}"]
    with mongo_server.stand_in_alone(tmp_path) as mongod:
        (tmp_path / "mongod").symlink_to(mongod)
        status = main([*argv, "--out", str(tmp_path / "records")])
    said = capsys.readouterr()
    assert status in (0, 6), said.err + said.out
    assert f"answers    the same in all of {', '.join(systems)}" in said.out
    assert "measured   InfluxDB 1." in said.out
    assert ("measured   QuestDB " in said.out) == ("questdb" in systems)
    assert "a stand-in: not mongod, its build information is incomplete (in place of MongoDB)" in said.out
    assert "not MongoDB: " in said.out and "stands in for MongoDB: these are not MongoDB's figures" in said.out
    (table,) = read_studies([path.parent for path in (tmp_path / "records").glob("*/run.json")])
    assert not table.faults
    rows = {(row.system, row.phase): row for row in table.rows}
    phases = {"INGEST", "START", "HARNESS_INGEST", "HARNESS_Q1"}
    phases |= {f"Q{number}{end}" for number in (1, 2, 3) for end in ("", "_COLD")}
    assert set(rows) == {(system, phase) for system in systems for phase in phases}
    refused = {key for key, row in rows.items() if row.not_supported}
    assert refused == {("mongodb", f"Q{number}_COLD") for number in (1, 2, 3)}
    for system in systems:
        measures = rows[system, "INGEST"].means
        assert min(float(measures[name]) for name in ("energy_per_operation_j", "points_per_s")) > 0
