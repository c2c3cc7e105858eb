"""A server database on the board: started, awaited, watched, stopped and cleaned.

The server is mongo-java-server, which speaks MongoDB's wire protocol and keeps everything in memory: no mongod is
needed, and nothing here says anything about MongoDB's own speed or energy.
"""

from __future__ import annotations

import csv
import platform
import subprocess
import time
from pathlib import Path

import mongo_server
import pytest
from loopback_sshd import Sshd
from opjoule.devices.probe import Probe
from opjoule.devices.programs import find_program
from opjoule.devices.runner import PROBE_FOLDER, Runner
from opjoule.devices.server import MongoServer, ServerProgram
from opjoule.devices.server_samples import server_usage
from opjoule.devices.shell import LocalShell
from opjoule.devices.ssh import SshConnection
from opjoule.errors import DeviceFault

ROOT = Path(__file__).resolve().parents[2]
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


SESSION = "opjoule-0123456789ab"
DATA = f"{SESSION}-data $(x)"


@pytest.fixture
def probe(shell, tmp_path):
    """Of the session, running."""
    program = str(find_program(ROOT / "build", platform.machine(), "probe"))
    made = Probe(shell, program, str(tmp_path / SESSION / PROBE_FOLDER), [])
    yield made
    made.close()


def start(shell, mongod: Path, tmp_path: Path) -> MongoServer:
    return MongoServer(
        shell,
        Runner(
            shell, str(find_program(ROOT / "build", platform.machine(), "probe")), str(tmp_path / SESSION)
        ),
        ServerProgram(str(mongod), ("--setParameter", "a b;c")),
        data=str(tmp_path / DATA),
        tag="server-1",
        raw=tmp_path,
        port=PORT,
    )


@pytest.fixture(scope="module")
def board_loader() -> Path:
    """This computer's board build, which alone has the MongoDB client."""
    subprocess.run([ROOT / "loader-cpp/board-builds", "amd64"], check=True, timeout=3600)
    return find_program(ROOT / "build", platform.machine(), "loader", "mongodb")


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
    rows = list(csv.DictReader((tmp_path / "server-1.csv").open()))
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
