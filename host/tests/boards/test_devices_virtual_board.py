"""The whole remote path on a virtual board: prepared, measured, restored; after kills, cuts, a reboot, a power cut.

OPJOULE_CUTS sets at how many random moments the host is killed and the link is cut (default 1 each; the moments are
drawn from a seed, OPJOULE_SEED).
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loopback_sshd import Link
from opjoule.base.errors import BadInput, LinkFault
from opjoule.boards.board import Board, ProbeOptions
from opjoule.boards.board_state import StateSettings, read_facts
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import plan_for, recover
from opjoule.boards.profiles import find_profile
from opjoule.boards.rig import RigDevice, install_script
from opjoule.boards.rig_board import board_on
from opjoule.boards.ssh import SshConnection
from opjoule.boards.steps import HELPER
from opjoule.boards.virtual.machine import Machine
from virtual_board import EMMC, LIMIT_S, ROOT, SSD, STAND_IN, as_root, connect, listing

pytestmark = [pytest.mark.end_to_end, pytest.mark.thorough]

CUTS = int(os.environ.get("OPJOULE_CUTS", "1"))
CHANCE = random.Random(int(os.environ.get("OPJOULE_SEED", "1")))


MEDIUM = Medium("/mnt/emmc", EMMC, expendable=True)
WANTED = {"journal": "off", "frequency_khz": "1200000", "cpus": "1", "memory_mb": "800"}


SLEEPING = ["sh", "-c", 'echo "{\\"phase\\":\\"start\\"}"; exec sleep 600']
"""A workload that says it has begun."""


def board(shell: SshConnection, medium: Medium | None = None, **wanted: str) -> Board:
    return board_on(
        shell,
        find_profile("virtual"),
        medium or MEDIUM,
        builds=ROOT / "build",
        probe=ProbeOptions("gpio:/dev/gpiochip0:0"),
        wanted=StateSettings().changed({**WANTED, **wanted}, "test"),
        cpufreq="/run/cpu",
    )


def test_what_prepare_changes_restore_puts_back(machine):
    before = listing(machine)
    device = board(connect(machine))
    done = device.prepare()
    during = listing(machine)
    left = device.restore()
    device.close()
    assert not [line for line in done if line.startswith("FAILED")]
    changed = set(before) ^ set(during)
    for part in (
        "/mnt/emmc",
        "has_journal",
        "apt-daily.timer",
        "/swap",
        "scaling_governor:performance",
        "opjoule-memory",
    ):
        assert any(part in line for line in changed), part
    assert "0" in during
    assert left == []
    assert listing(machine) == before


def test_a_user_who_may_run_opjoule_root_alone_prepares_and_restores(machine):
    described = RigDevice(cpufreq="/run/cpu", media={"emmc": MEDIUM})
    as_root(machine, install_script(described, "plain"))
    try:
        shell = connect(machine, "plain")
        for refused in (["id"], ["sh", "-c", "id"], [HELPER, "put", "/etc/x", "y"]):
            assert shell.run(["sudo", "-n", *refused]).status != 0
        before = listing(machine)
        device = board(shell)
        done = device.prepare()
        assert read_facts(shell).rights == "helper"
        during = listing(machine)
        left = device.restore()
        device.close()
        assert not [line for line in done if line.startswith("FAILED")]
        assert any("scaling_governor:performance" in line for line in set(before) ^ set(during))
        assert any("/mnt/emmc" in line for line in set(before) ^ set(during))
        assert left == [] and listing(machine) == before
        as_root(machine, f"echo '# changed' >> {HELPER}")  # its hash is in the sudoers file
        assert connect(machine, "plain").run(["sudo", "-n", HELPER, "version"]).status != 0
    finally:
        as_root(machine, f"rm -f {HELPER} /etc/sudoers.d/opjoule")


REFUSED = {
    "/dev/disk/by-label/board-root": "root file system",
    "/dev/disk/by-id/virtio-ROOT": "root file system",
    "/dev/loop7": "is in use",
    "/dev/disk/by-id/virtio-SD-part1": "partition of",
    "/dev/disk/by-id/virtio-nothing": "not a block device",
}


def test_a_device_that_must_not_be_lost_is_refused(machine):
    as_root(
        machine,
        r"""
        set -e
        echo ',64M' | sfdisk -q /dev/disk/by-id/virtio-SD
        udevadm settle
        truncate -s 8M /loop
        mkfs.ext4 -q /loop
        losetup /dev/loop7 /loop
        mount /dev/loop7 /media
        """,
    )
    shell = connect(machine)
    facts = read_facts(shell)
    new = StateSettings(file_system="new")
    try:
        for name, message in REFUSED.items():
            with pytest.raises(BadInput, match=message):
                plan_for(shell, facts, Medium("/mnt/x", name, expendable=True), new, "/run/cpu")
        with pytest.raises(BadInput, match="expendable"):
            plan_for(shell, facts, Medium("/mnt/x", SSD), new, "/run/cpu")
    finally:
        shell.close()
        as_root(
            machine,
            "umount /media; losetup -d /dev/loop7; rm -f /loop; wipefs -q -a /dev/disk/by-id/virtio-SD",
        )


HOST = """
import json, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
from test_devices_virtual_board import board
from opjoule.boards.ssh import SshConnection
raw, target, *options = sys.argv[2:]
device = board(SshConnection(target, options))
try:
    device.prepare()
    device.preparation.before_run()
    device.probe.begin_files("idle")
    run = device.runner.start(["sleep", "3"], "idle-1", Path(raw))
    for line in run.lines():
        pass
    status = run.wait()
    run.fetch()
    device.end_probe(Path(raw))
    print("status", status, flush=True)
finally:
    print("left", device.restore(), flush=True)
    device.close()
"""


def start_host(machine: Machine, raw: Path, port: int | None = None) -> subprocess.Popen[str]:
    port = port or machine.port
    options = machine.image.ssh_options(port, machine.folder / f"known_hosts_{port}")
    paths = f"{ROOT / 'host'}:{ROOT / 'host/tests/support'}"
    return subprocess.Popen(
        [sys.executable, "-c", HOST, str(ROOT / "host/tests/boards"), str(raw), "rig@127.0.0.1", *options],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@pytest.fixture(scope="module")
def whole_run_s(machine, tmp_path_factory):
    """How long an undisturbed host takes here, so that the random moments fall all over it."""
    started_s = time.monotonic()
    host = start_host(machine, tmp_path_factory.mktemp("raw"))
    said, _ = host.communicate(timeout=LIMIT_S)
    assert said.splitlines() == ["status 0", "left []"]
    return time.monotonic() - started_s


def put_back(machine: Machine, before: list[str], fetched: Path) -> list[str]:
    """What measure.py restore does; the listing must then be as before."""
    shell = connect(machine)
    try:
        done, left = recover(shell, [MEDIUM], fetched)
    finally:
        shell.close()
    assert left == []
    assert listing(machine) == before
    return done


@pytest.mark.parametrize("moment", [CHANCE.random() for _ in range(CUTS)])
def test_a_host_killed_at_any_moment_leaves_a_board_that_restore_puts_back(machine, whole_run_s, tmp_path, moment):
    before = listing(machine)
    host = start_host(machine, tmp_path)
    try:
        host.wait(moment * whole_run_s)
    except subprocess.TimeoutExpired:
        host.kill()
        host.wait()
    put_back(machine, before, tmp_path)


@pytest.mark.parametrize("moment", [CHANCE.random() for _ in range(CUTS)])
def test_a_link_cut_at_any_moment_leaves_a_board_that_is_put_back(machine, whole_run_s, tmp_path, moment):
    before = listing(machine)
    link = Link(machine.port)
    host = start_host(machine, tmp_path, link.port)
    try:
        time.sleep(moment * whole_run_s)
        link.cut()
        time.sleep(15)  # longer than the host takes to notice; one that is late notices at the healing
        link.heal()
        host.communicate(timeout=LIMIT_S)
    finally:
        link.close()
    put_back(machine, before, tmp_path)


def test_after_a_reboot_in_mid_run_the_board_is_put_back(machine, tmp_path, monkeypatch):
    monkeypatch.setattr("opjoule.boards.runner.RECONNECT_S", 600.0)  # emulated, on a busy computer
    monkeypatch.setattr("opjoule.boards.preparation.RECONNECT_S", 600.0)
    before = listing(machine)
    device = board(connect(machine))
    device.prepare()
    run = device.runner.start(SLEEPING, "idle-1", tmp_path)
    lines = run.lines()
    assert next(lines) == {"phase": "start"}
    with contextlib.suppress(LinkFault):  # the board may go before it has answered
        device.shell.run(["sudo", "systemctl", "reboot"])
    list(lines)
    with pytest.raises(LinkFault, match="restarted"):
        run.wait()
    assert device.restore() == []
    device.close()
    as_root(machine, STAND_IN)
    assert without_boot(listing(machine)) == without_boot(before)


def test_after_a_power_cut_in_mid_run_the_board_is_put_back(machine, tmp_path):
    before = listing(machine)
    device = board(connect(machine))
    device.prepare()
    run = device.runner.start(SLEEPING, "idle-1", tmp_path)
    lines = run.lines()
    assert next(lines) == {"phase": "start"}
    machine.power_off()
    list(lines)
    device.shell.close()
    machine.power_on()
    shell = connect(machine)
    _, left = recover(shell, [MEDIUM], tmp_path)
    shell.close()
    assert left == []
    as_root(machine, STAND_IN)
    assert without_boot(listing(machine)) == without_boot(before)


def without_boot(lines: list[str]) -> list[str]:
    """A listing without what a reboot itself changes: services that run now and then, and what a boot works out."""
    suffixes = (".service", ".timer")
    return [line for line in lines if not line.endswith(suffixes) and "reserve_kbytes" not in line]
