"""Whole measurements of a board behind ssh (this computer, by loopback) with a simulated meter; and cut off."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import mongo_server
import pytest
from loopback_sshd import Link, Sshd
from opjoule.devices.connection.ssh import SshConnection
from opjoule.devices.preparation.recovery import recover
from rig_session import rig_sim

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).resolve().parents[3]
KEEP = ("page_cache", "governor", "wifi", "bluetooth", "hdmi", "leds", "swap", "services")
RUN_THROUGH = (0, 6)
"""6: this computer, as the board, was busy with something else, which the record names."""
ENDLESS = ["--operations", "500000000", "-p", "maxexecutiontime=100"]


@pytest.fixture
def rig(tmp_path):
    made = LoopbackRig(tmp_path)
    yield made
    made.close()


class LoopbackRig:
    """A real sshd behind a link that can be cut, a simulated meter, and the rig.toml of both."""

    def __init__(self, folder: Path, connection: str = "ssh", *more: str) -> None:
        self.folder = folder
        self.out = folder / "out"
        (folder / "sshd").mkdir()
        self.sshd = Sshd(folder / "sshd")
        self.link = Link(self.sshd.port)
        self.storage = folder / 'sd card; $(touch injected) "x"'
        (folder / "profile.csv").write_text("time_s,current_a,voltage_v\n0,0.6,5.0\n3600,0.6,5.0\n")
        self._simulator = contextlib.ExitStack()
        running = rig_sim(folder, "--profile", str(folder / "profile.csv"), pace="1")
        meter = self._simulator.enter_context(running).port
        lines = [
            f'[meter]\nport = "serial:{meter}"',
            f'[device.rpi4]\nconnection = "{"local" if connection == "local" else f"ssh:{self.sshd.target}"}"',
            f"ssh_options = {json.dumps([] if connection == 'local' else self.sshd.options(self.link.port))}",
            *('sync = "none"', *more),
            f"[device.rpi4.storage]\nsd = {json.dumps(str(self.storage))}",
            "[device.rpi4.state]",
            *(f'{key} = "keep"' for key in KEEP),
        ]
        (folder / "rig.toml").write_text("\n".join(lines) + "\n")

    def measure(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "opjoule.cli.start", "--device", "rpi4"]
        if "--db" not in options:
            command += ["--db", "leveldb"]
        command += [
            "--rig",
            str(self.folder / "rig.toml"),
            "--out",
            str(self.out),
            "--records",
            "2000",
            "--idle",
            "0.5",
        ]
        command += [
            "--repeats",
            "1",
            "--settle-limit",
            "60",
            "--no-harness",
            "--no-blocks",
            "--no-signature",
            *options,
        ]
        return subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )

    def record(self) -> dict:
        return json.loads((self.out / "run.json").read_text())

    def phases(self) -> list[str]:
        if not (self.out / "run.json").exists():
            return []
        return [phase["name"] for phase in self.record().get("phases", [])]

    def windows(self) -> list[tuple[str, int, int]]:
        return [
            (phase["name"], phase["start_board_ns"], phase["end_board_ns"])
            for phase in self.record()["phases"]
        ]

    def await_phase(self, name: str) -> None:
        deadline_s = time.monotonic() + 300
        while True:
            if name in self.phases():
                return
            assert time.monotonic() < deadline_s, f"no phase {name}"
            time.sleep(0.05)

    def await_operations(self) -> None:
        """Until the run has logged some operations on the board, and the meter's samples of it are on disk."""
        deadline_s = time.monotonic() + 300
        while self._sizes(self.folder / "sshd/work", "*/*/run-1/run-1.oplog") < 10_000 or (
            self._sizes(self.out, "raw/power.arrows") < 20_000
        ):
            assert time.monotonic() < deadline_s, "the run does not begin"
            time.sleep(0.05)

    @staticmethod
    def _sizes(folder: Path, pattern: str) -> int:
        return sum(path.stat().st_size for path in folder.glob(pattern))

    def close(self) -> None:
        self._simulator.close()
        self.link.close()
        self.sshd.close()


@pytest.fixture(params=["ssh", "local"])
def any_rig(tmp_path, request):
    made = LoopbackRig(tmp_path, request.param)
    yield made
    made.close()


def test_a_measurement_is_complete(any_rig):
    rig = any_rig
    host = rig.measure("--operations", "2000")
    _, said = host.communicate(timeout=600)
    assert host.returncode in RUN_THROUGH, said
    record, result = rig.record(), json.loads((rig.out / "result.json").read_text())
    assert record["status"] == "complete"
    assert record["found"]["device"]["storage_path"] == str(rig.storage)
    assert record["state"]["before"]["medium_speed"]["read_bytes_per_s"] > 0
    assert result["operations"]["value"] == 2000
    assert result["power_w"]["value"] == pytest.approx(3.0, rel=0.02)
    assert not (rig.folder / "injected").exists()
    assert list(rig.storage.iterdir()) == []


def test_a_database_is_loaded_once_and_every_repeat_begins_with_a_copy(rig):
    for out, first in (("first", ["load", "load-settle"]), ("second", [])):
        rig.out = rig.folder / out
        host = rig.measure("--operations", "500", "--reset", "copy", "--repeats", "2", "--idle", "0")
        _, said = host.communicate(timeout=600)
        assert host.returncode in RUN_THROUGH, said
        names = [name for name, _, _ in rig.windows()]
        assert names == [*first, *["copy", "copy-settle", "run", "settle"] * 2]
        record = rig.record()
        assert record["status"] == "complete"
        assert record["plan"]["study"]["reset"] == "copy"
        assert all(each["errors"] == 0 for name, each in record["loader"].items() if "run" in name)
        [kept] = (rig.storage / "opjoule-kept").iterdir()
        assert record["found"]["kept_database"] == kept.name
        assert list(rig.storage.iterdir()) == [kept.parent]
    shell = SshConnection(rig.sshd.target, rig.sshd.options())
    where = [str(rig.storage)], rig.folder / "recovered", str(rig.folder / "journal")
    try:
        assert recover(shell, *where) == ([f"kept for --reset copy, restore --kept removes it: {kept}"], [])
        assert recover(shell, *where, kept=True) == ([f"removed {kept}"], [])
    finally:
        shell.close()
    assert list(rig.storage.iterdir()) == []


SLOW_TAR = """#!/bin/sh
read -r began _ < /proc/uptime
sleep 3
/bin/tar "$@"
status=$?
read -r ended _ < /proc/uptime
echo "$began $ended" >> "{log}"
exit $status
"""


def test_a_file_transfer_of_3_s_falls_into_no_window(rig):
    """Work that the rig itself gives to the board is nobody's operation, and no idle power."""
    stub, log = rig.folder / "sshd/bin/tar", rig.folder / "transfers"
    stub.parent.mkdir()
    stub.write_text(SLOW_TAR.format(log=log))
    stub.chmod(0o755)
    host = rig.measure("--operations", "2000")
    _, said = host.communicate(timeout=600)
    assert host.returncode in RUN_THROUGH, said
    ends_s = {name: 1e-9 * end_ns for name, _, end_ns in rig.windows()}
    starts_s = {name: 1e-9 * start_ns for name, start_ns, _ in rig.windows()}
    transfers = [tuple(map(float, line.split())) for line in log.read_text().splitlines()]
    assert len(transfers) >= 4
    for began_s, ended_s in transfers:
        assert ended_s - began_s > 2.9
        assert ended_s < starts_s["idle-before"] or began_s > ends_s["idle-after"] - 0.02


def test_a_link_cut_in_mid_run_leaves_a_true_partial_record_with_the_boards_own_log(rig):
    host = rig.measure(*ENDLESS)
    rig.await_phase("idle-before")
    rig.await_operations()
    rig.link.cut()
    time.sleep(15)  # longer than the host takes to notice; one that is late notices at the healing
    rig.link.heal()
    _, said = host.communicate(timeout=600)
    assert host.returncode == 3, said
    record = rig.record()
    assert record["status"] == "partial"
    assert any("the link to" in fault and "its files were fetched" in fault for fault in record["faults"])
    assert (rig.out / "raw/run-1.oplog").stat().st_size > 1000
    assert (rig.out / "power.parquet").exists()


def test_a_killed_host_leaves_a_true_partial_record_and_restore_fetches_the_rest(rig):
    host = rig.measure(*ENDLESS)
    rig.await_phase("idle-before")
    rig.await_operations()
    host.send_signal(signal.SIGKILL)
    host.communicate(timeout=60)
    record = rig.record()
    assert record["status"] == "partial"
    assert "result.json" not in [path.name for path in rig.out.iterdir()]
    assert (rig.out / "raw/power.arrows").stat().st_size > 10_000
    shell = SshConnection(rig.sshd.target, rig.sshd.options())
    try:
        done, left = recover(shell, [str(rig.storage)], rig.folder / "recovered", str(rig.folder / "journal"))
    finally:
        shell.close()
    assert left == []
    assert any(line.startswith("removed ") for line in done)
    [log] = (rig.folder / "recovered").glob("*-run-1/run-1.oplog")
    assert log.stat().st_size > 1000
    assert list(rig.storage.iterdir()) == []


def test_a_server_database_is_measured_and_named_for_what_it_is(tmp_path):
    subprocess.run([ROOT / "loader-cpp/board-builds", "amd64"], check=True, timeout=3600)
    with mongo_server.stand_in_alone(tmp_path) as mongod:
        rig = LoopbackRig(tmp_path, "ssh", f"mongod = {json.dumps(str(mongod))}")
        try:
            host = rig.measure("--db", "mongodb", "--operations", "500")
            _, said = host.communicate(timeout=600)
        finally:
            rig.close()
    assert host.returncode in RUN_THROUGH, said
    record, result = rig.record(), json.loads((rig.out / "result.json").read_text())
    assert record["status"] == "complete", record["faults"]
    assert result["operations"]["value"] == 500
    assert result["server"]["peak_memory_bytes"]["value"] > 20_000_000
    assert '"mongodb.server": "not mongod: a stand-in' in json.dumps(record["loader"])
    assert "not mongod: a stand-in" in (rig.out / "report.html").read_text()
    assert list(rig.storage.iterdir()) == []


def test_records_that_have_no_room_are_refused_before_anything_is_done(any_rig):
    ended = any_rig.measure("--records", "1000000000000", "--operations", "10")
    _, said = ended.communicate(timeout=300)
    assert ended.returncode == 2
    assert "the values of 1,000,000,000,000 records are 1,000,000.0 GB, and " in said
    assert f"GB are free on {any_rig.storage}: ask for fewer with --records" in said
    assert not any_rig.out.exists() and not any_rig.storage.exists()
