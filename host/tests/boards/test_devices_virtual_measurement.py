"""Whole measurements of a virtual board: over ssh with the sync line of a real kernel, and by the board itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from opjoule.bench.simulation.rig import RigSetup
from opjoule.bench.simulation.virtual_rig import virtual_rig
from opjoule.boards.virtual.machine import Machine
from opjoule.campaign.measurement import measure
from opjoule.cli import commands
from opjoule.cli.measure.planning import make_plan, supply_of_rig
from opjoule.runs.measuring.progress import PhaseProgress
from rig_session import rig_sim
from virtual_board import LIMIT_S, ROOT, STAND_IN, as_root, connect, listing

pytestmark = [pytest.mark.end_to_end, pytest.mark.thorough]


def measured(tmp_path: Path, *options: str, user: str = "rig", **wanted: str) -> Path:
    parsed = commands.parse(
        ["--db", "leveldb", "--device", "virtual", "--records", "200", "--operations", "300", "--idle", "2",
         "--no-harness", "--rate", "full", "--reset", "load", "--repeats", "1", *options]
    )  # fmt: skip
    plan = make_plan(parsed.options)
    out = tmp_path / "record"
    setup = RigSetup(root=ROOT, truth=tmp_path / "truth.json", seed=1)
    virtual = virtual_rig(plan.board, setup, wanted=wanted, say=print, user=user)
    with virtual as rig, PhaseProgress(quiet=True) as progress:
        supply = supply_of_rig(plan, None, parsed.options)
        measure(plan, rig.board, rig.meter, out, progress, rig.facts, supply)
    return out


@pytest.mark.parametrize("user", ["rig", "plain"])
def test_a_measurement_over_ssh_with_the_sync_line_of_a_real_kernel(image, tmp_path, user):
    wanted = {"journal": "off"} if user == "rig" else {"file_system": "keep"}
    out = measured(tmp_path, user=user, **wanted)
    run, result = (json.loads((out / name).read_text()) for name in ("run.json", "result.json"))
    assert (run["status"], run["simulated"]) == ("complete", True), run["notices"]
    assert run["found"]["device"]["machine"] == "aarch64"
    assert run["found"]["device"]["rights"] == ("sudo" if user == "rig" else "none")
    assert result["operations"]["value"] == 300
    assert result["energy_j"]["value"] > 0
    assert result["alignment"]["method"] == "sync-edges"
    assert all(check["passed"] for check in result["alignment"]["checks"])
    assert run["state"]["before"]["medium_speed"]
    prepared = "\n".join(run["found"]["prepared"])
    assert ("new ext4 on /dev/vd" in prepared) == (user == "rig")


# --- the board measures itself ------------------------------------------------------------------------------------

OWN_RIG = """
[meter]
port = "serial:/dev/ttyS0,adc=mean16"  # an emulated processor takes in no more
[device.generic-linux]
connection = "local"
sync = "none"
cpufreq = "/run/cpu"
[device.generic-linux.storage]
disk = "/home/rig/disk"
"""
OWN_RUN = """
set -e
cd /home/rig/opjoule
PYTHONPATH=host python3 -m opjoule.cli.start --db leveldb --device generic-linux --storage disk \\
  --rig /home/rig/rig.toml --out /home/rig/record --records 200 --operations 300 --idle 2 --no-harness \\
  --rate full --reset load --repeats 1 \\
  --no-signature --json
"""


def test_a_board_measures_itself_with_the_meter_on_its_own_port(image, tmp_path):
    (tmp_path / "profile.csv").write_text("time_s,current_a,voltage_v\n0,0.6,5.0\n3600,0.6,5.0\n")
    with rig_sim(tmp_path, "--profile", str(tmp_path / "profile.csv"), pace="1"):
        itself = Machine(image, tmp_path / "machine", serial=(tmp_path / "meter").resolve())
        shell = connect(itself)
        try:
            as_root(itself, STAND_IN + "chmod 666 /dev/ttyS0; chmod -R a+rX /run/cpu")
            code = ("host", "ycsb-workloads", "build/board/aarch64/loader", "build/board/aarch64/probe")
            packed = subprocess.run(["tar", "-C", ROOT, "-cz", *code], capture_output=True, check=True).stdout
            unpack = "mkdir opjoule && tar -xz -C opjoule"
            assert shell.run(["sh", "-c", unpack], feed=packed, limit_s=LIMIT_S).status == 0
            shell.run(["sh", "-c", "cat > rig.toml"], feed=OWN_RIG.encode())
            before = listing(itself)
            ran = shell.run(["sh", "-c", OWN_RUN], limit_s=LIMIT_S)
            assert ran.status == 0, ran.err
            result = json.loads(ran.text())
            assert listing(itself) == before
        finally:
            shell.close()
            itself.close()
    assert result["operations"]["value"] == 300
    assert result["power_w"]["value"] == pytest.approx(3.0, rel=0.02)
    assert result["lost_samples"]["value"] == 0
