"""A server database on the board: started, awaited, watched, stopped and cleaned.

The server is mongo-java-server, which speaks MongoDB's wire protocol and keeps everything in memory: no mongod is
needed, and nothing here says anything about MongoDB's own speed or energy.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import mongo_server
import pytest
from loopback_sshd import Sshd
from moved_servers import server_on
from opjoule.base.errors import BadInput, DeviceFault
from opjoule.boards.binaries import find_program
from opjoule.boards.databases import (
    Database,
    ServerCommands,
    database_called,
    find_database,
    known_databases,
)
from opjoule.boards.probe import Probe
from opjoule.boards.runner import PROBE_FOLDER, Runner
from opjoule.boards.server import (
    DatabaseServer,
    ServerPrograms,
    check_server,
    find_programs,
    program_version,
)
from opjoule.boards.shell import LocalShell, script
from opjoule.boards.ssh import SshConnection
from opjoule.cli.commands import main
from opjoule.runs.evaluation.summary import server_usage

ROOT = Path(__file__).resolve().parents[3]
PORT = 27955


@pytest.fixture(scope="module")
def mongod(tmp_path_factory):
    return mongo_server.stand_in_mongod(tmp_path_factory.mktemp("mongod"))


@pytest.fixture(params=["local", "ssh"])
def shell(request, tmp_path_factory):
    if request.param == "local":
        yield LocalShell()
        return
    sshd = Sshd(tmp_path_factory.mktemp("sshd"))
    made = SshConnection(sshd.target, sshd.options())
    yield made
    made.close()
    sshd.close()


STAND_IN = """#!/usr/bin/python3
import os, socket, sys, time
port, data, secret = sys.argv[1:]
with socket.create_server(("127.0.0.1", int(port))):
    with open(data + "/made", "w") as made:
        made.write(f"{os.getuid()} {open(secret).read()}")
    os.rename(data + "/made", data + "/ready")
    time.sleep(600)
"""
SESSION = "opjoule-0123456789ab"
DATA = f"{SESSION}-data $(x)"


@pytest.fixture
def probe(shell, tmp_path):
    """The session's server, running."""
    program = str(find_program(ROOT / "build", platform.machine(), "probe"))
    made = Probe(shell, program, str(tmp_path / SESSION / PROBE_FOLDER), [])
    yield made
    made.close()


def start(shell, mongod: Path, tmp_path: Path) -> DatabaseServer:
    return DatabaseServer(
        shell,
        Runner(shell, str(find_program(ROOT / "build", platform.machine(), "probe")), str(tmp_path / SESSION)),
        server_on("mongodb", PORT),
        ServerPrograms({"mongod": str(mongod)}, {"mongodb": ("--setParameter", "a b;c")}),
        data=str(tmp_path / DATA),
        tag="server-1",
        raw=tmp_path,
    )


@pytest.fixture(scope="module")
def board_loader() -> Path:
    """This computer's board build, which alone has the MongoDB client."""
    subprocess.run([ROOT / "loader-cpp/board-builds", "amd64"], check=True, timeout=3600)
    return find_program(ROOT / "build", platform.machine(), "loader", "mongodb")


@pytest.mark.board_builds
def test_a_server_takes_the_loaders_work_and_leaves_nothing(shell, mongod, probe, board_loader, tmp_path):
    server = start(shell, mongod, tmp_path)
    workload = tmp_path / "workload"
    workload.write_text("recordcount=50\noperationcount=100\nreadproportion=0.5\nupdateproportion=0.5\n")
    loader = [board_loader]
    common = ["--db", "mongodb", "--path", server.url, "--workload", workload]
    try:
        for command in ("load", "run"):
            subprocess.run([*loader, command, *common], check=True, capture_output=True)
        deadline_s = time.monotonic() + 120
        samples = tmp_path / "server-1.csv"
        while not samples.exists() or len(samples.read_text().splitlines()) < 3:
            assert time.monotonic() < deadline_s, "no samples of the server"
            time.sleep(0.1)
    finally:
        server.stop()
    rows = list(csv.DictReader((tmp_path / "server-1.csv").read_text().splitlines(keepends=True)))
    assert int(rows[-1]["rss_bytes"]) > 10_000_000
    usage = server_usage([tmp_path / "server-1.csv"])
    assert usage["peak_memory_bytes"].value == max(int(row["rss_bytes"]) for row in rows)
    assert usage["cpu_s"].value == float(rows[-1]["cpu_s"])
    assert float(rows[-1]["cpu_s"]) > 0
    assert not (tmp_path / DATA).exists()
    assert not (tmp_path / SESSION / "server-1").exists()
    seen = (mongod.parent / "arguments").read_text().splitlines()
    assert seen == [
        *("--dbpath", str(tmp_path / DATA), "--port", str(PORT), "--bind_ip", "127.0.0.1"),
        *("--setParameter", "a b;c"),
    ]


def test_a_missing_server_is_named_with_the_remedy(shell, probe, tmp_path):
    with pytest.raises(DeviceFault, match=r"no-such-mongod.*ended.*mongod in rig.toml"):
        start(shell, Path("/no-such-mongod"), tmp_path)


def test_data_that_are_there_already_are_not_touched(shell, mongod, probe, tmp_path):
    (tmp_path / DATA).mkdir()
    (tmp_path / DATA / "precious").touch()
    with pytest.raises(DeviceFault, match="File exists"):
        start(shell, mongod, tmp_path)
    assert (tmp_path / DATA / "precious").exists()


def test_a_port_that_is_taken_is_named_before_anything_is_made(shell, probe, tmp_path):
    with socket.create_server(("127.0.0.1", PORT)), pytest.raises(DeviceFault, match=f"port {PORT} .* taken"):
        start(shell, Path("/bin/true"), tmp_path)
    assert not (tmp_path / DATA).exists()


POSTMASTER = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "taken = bytearray(64 << 20); print('up', flush=True); input()"])
"""


@pytest.mark.parametrize("listed", [True, False], ids=["PROC_CHILDREN", "no PROC_CHILDREN"])
def test_the_processes_that_a_server_has_started_are_counted_on_every_kernel(tmp_path, listed):
    """Raspberry Pi OS and others have kernels without /proc/PID/task/TID/children."""
    watch = script("server_watch.sh") if listed else script("server_watch.sh").replace("/children", "/missing")
    command = [sys.executable, "-c", POSTMASTER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout and server.stdout.readline() == b"up\n"
        (tmp_path / "pid").write_text(f"{server.pid} boot\n")
        ran = subprocess.run(
            ["sh", "-c", watch, "sh", str(tmp_path)], input="\n\n", capture_output=True, text=True, check=True
        )
        server.communicate(b"\n")
    answers = [[int(word) for word in line.split()] for line in ran.stdout.splitlines()]
    assert [len(answer) for answer in answers] == [5, 5]
    assert all(kib > 64 << 10 for _, _, kib, _, _ in answers)


def test_a_program_that_the_board_lacks_is_named_with_how_to_get_it(shell):
    lacking = replace(database_called("mongodb"), programs={"no-such-program": ("/no/such/*/place",)})
    with pytest.raises(DeviceFault, match=r"'no-such-program' of MongoDB .*rig.toml"):
        find_programs(shell, lacking)


@pytest.fixture
def program(tmp_path):
    """Makes a program that says something on stderr, as java does, and gives its path."""

    def made(says: str, name: str = "program") -> str:
        (tmp_path / name).write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
        (tmp_path / name).chmod(0o755)
        return str(tmp_path / name)

    return made


@pytest.mark.parametrize(
    ("database", "name", "says", "complaint"),
    [
        (
            "questdb",
            "java",
            'openjdk version "11.0.2" 2019-01-15',
            "11.0.2, and QuestDB needs java 17",
        ),
        ("questdb", "java", 'java version "1.8.0_402"', "1.8.0, and QuestDB needs java 17"),
        ("questdb", "java", "cannot run", "unknown, and QuestDB needs java 17"),
        ("questdb", "java", 'openjdk version "17" 2021-09-14', ""),
        ("questdb", "java", 'openjdk version "21.0.2"', ""),
        ("influxdb", "influxd", "InfluxDB v3.0.1", "3.0.1, and InfluxDB needs influxd 1 to 2"),
        ("influxdb", "influxd", "InfluxDB v2.7.11 (git: fbf5d4ab5e)", ""),
        ("influxdb", "influxd", "InfluxDB v1.6.7~rc0 (git: unknown unknown)", ""),
    ],
)
def test_a_program_of_a_version_that_is_not_driven_is_named_before_anything_is_made(
    program, database, name, says, complaint
):
    described = server_on(database, PORT)
    given = ServerPrograms({name: program(says), **dict.fromkeys(described.jars, "/some/where.jar")})
    if not complaint:
        check_server(LocalShell(), described, given)
        return
    with pytest.raises(DeviceFault) as fault:
        check_server(LocalShell(), described, given)
    assert complaint in str(fault.value) and str(fault.value).count("\n") == 0
    assert str(fault.value).endswith(described.get)


def test_a_path_of_the_user_that_is_no_program_and_a_port_that_is_taken_are_named(program):
    mongodb = database_called("mongodb")
    with pytest.raises(DeviceFault, match=r"does not have /no/such/mongod, .*rig.toml"):
        check_server(LocalShell(), mongodb, ServerPrograms({"mongod": "/no/such/mongod"}))
    here = server_on("mongodb", PORT)
    with socket.create_server(("127.0.0.1", PORT)), pytest.raises(DeviceFault, match=f"port {PORT} .* taken"):
        check_server(LocalShell(), here, ServerPrograms({"mongod": program("")}))


def test_the_newest_of_several_versions_is_found(shell, tmp_path):
    for version in ("14", "15"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "engine").write_text("#!/bin/sh\necho engine 15.18 >&2\n")
        (tmp_path / version / "engine").chmod(0o755)
    made = replace(
        database_called("mongodb"),
        programs={"engine-x": (f"{tmp_path}/*/engine",)},
        version=("{engine-x}", "--version"),
    )
    programs = find_programs(shell, made)
    assert programs == {"engine-x": f"{tmp_path}/15/engine"}
    assert program_version(shell, made, programs) == "15.18"


def test_a_server_has_an_account_and_a_password_of_its_own():
    """A stand-in that says who it is and what it was given: PostgreSQL's way, without PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)  # where another account gets to, as it does not get to its data
        (place / "closed").mkdir(mode=0o700)
        (place / "serve").write_text(STAND_IN)
        (place / "serve").chmod(0o755)
        commands = ServerCommands(
            port=PORT,
            address="stand-in://127.0.0.1:{port}?passfile={passfile}",
            start=("{serve}", "{port}", "{data}", "{secret}"),
            prepare=(("sh", "-c", 'echo prepared > "$1/prepared"', "sh", "{data}"),),
            ready=("test", "-e", "{data}/ready"),
            own_account=True,
            password=True,
        )
        made = Database("stand-in", "Stand-in", "server", programs={"serve": ()}, server=commands)
        shell, session = LocalShell(), place / SESSION
        program = str(find_program(ROOT / "build", platform.machine(), "probe"))
        data = place / "closed" / f"{SESSION}-stand-in"
        probe = Probe(shell, program, str(session / PROBE_FOLDER), [])
        server = DatabaseServer(
            shell,
            Runner(shell, program, str(session)),
            made,
            ServerPrograms({"serve": str(place / "serve")}),
            data=str(data),
            tag="server-1",
            raw=place,
        )
        try:
            server_data = data / "server"
            assert (server_data / "prepared").exists()
            user_id, password = (server_data / "ready").read_text().split()
            assert user_id == str(server_data.stat().st_uid)
            if os.getuid() == 0:
                assert user_id != "0"
            passfile = Path(server.url.partition("passfile=")[2])
            assert passfile.read_text() == f"*:*:*:*:{password}\n" and len(password) == 32
            assert passfile.stat().st_mode & 0o077 == 0 and server_data.stat().st_mode & 0o077 == 0
        finally:
            server.stop()
            probe.close()
        assert not data.exists() and not passfile.exists()


def test_every_database_has_a_title_and_says_how_it_is_asynchronous(capsys):
    for database in known_databases():
        assert database.title and database.asynchronous and database.settled
        assert database.get or database.kind == "loader"
        if database.server:
            assert f"{{{next(iter(database.programs))}}}" in database.server.start
    assert main(["databases"]) == 0
    said = capsys.readouterr().out
    assert all(f"{database.title}: " in said for database in known_databases())
    assert main(["databases", "--json"]) == 0
    assert {entry["name"] for entry in json.loads(capsys.readouterr().out)} == {
        database.name for database in known_databases()
    }


def test_a_database_that_the_loader_has_no_client_of_is_named_so():
    with pytest.raises(BadInput, match="PostgreSQL"):
        find_database("postgresql")
    with pytest.raises(BadInput, match="did you mean 'sqlite'"):
        find_database("sqlit")
