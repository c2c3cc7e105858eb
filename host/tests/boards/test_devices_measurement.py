"""Whole measurements of a board behind ssh (this computer, by loopback) with a simulated meter; and cut off."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import mongo_server
import pytest
from loopback_rig import ROOT, RUN_THROUGH, LoopbackRig
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import recover
from opjoule.boards.ssh import SshConnection

pytestmark = pytest.mark.end_to_end

ENDLESS = ["--operations", "500000000", "-p", "target=5000", "-p", "maxexecutiontime=100"]


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
        assert all(summary["errors"] == 0 for name, summary in record["loader"].items() if "run" in name)
        [kept] = (rig.storage / "opjoule-kept").iterdir()
        assert record["found"]["kept_database"] == kept.name
        assert list(rig.storage.iterdir()) == [kept.parent]
    shell = SshConnection(rig.sshd.target, rig.sshd.options())
    where = [Medium(str(rig.storage))], rig.folder / "recovered", str(rig.folder / "journal")
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
    assert any("link" in notice["line"] and "fetched" in notice["line"] for notice in record["notices"])
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
        done, left = recover(shell, [Medium(str(rig.storage))], rig.folder / "recovered", str(rig.folder / "journal"))
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
    assert record["status"] == "complete", record["notices"]
    assert result["operations"]["value"] == 500
    assert result["server"]["peak_memory_bytes"]["value"] > 20_000_000
    assert '"mongodb.server": "not mongod: ' in json.dumps(record["loader"])
    assert "not mongod: " in (rig.out / "report.html").read_text()
    assert list(rig.storage.iterdir()) == []


def test_records_that_have_no_room_are_refused_before_anything_is_done(any_rig):
    ended = any_rig.measure("--records", "1000000000000", "--operations", "10")
    _, said = ended.communicate(timeout=300)
    assert ended.returncode == 2
    assert "the values of 1,000,000,000,000 records need 1,000,000.0 GB, but " in said
    assert f" {any_rig.storage}: " in said and "--records" in said
    assert not any_rig.out.exists() and not any_rig.storage.exists()
