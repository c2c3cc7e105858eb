"""A virtual board for tests: its image, built once, and a connection to a machine that runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from opjoule.boards.ssh import SshConnection
from opjoule.boards.virtual.image import get_image
from opjoule.boards.virtual.machine import Machine

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 1800
"""Guards against waiting without end: the board is emulated, and the computer may be busy."""
SD, EMMC, SSD = (f"/dev/disk/by-id/virtio-{name}" for name in ("SD", "EMMC", "SSD"))
# Everything a measurement may change, as text that must be the same before and after.
LISTING = r"""
cut -d' ' -f1-4 /proc/mounts | sort
for disk in SD EMMC SSD; do
  echo "$disk"
  dumpe2fs -h "/dev/disk/by-id/virtio-$disk" 2>/dev/null | grep -i features
done
systemctl list-units --state=active --plain --no-legend --type=service,timer,socket | awk '{print $1}' |
  grep -v -e 'user' -e 'session' -e systemd-tmpfiles-clean.service -e systemd-hostnamed | sort
tail -n +2 /proc/swaps | awk '{print $1, $2, $3, $5}'
grep -r . /run/cpu
cat /sys/devices/system/cpu/online
grep -r . /proc/sys/vm --exclude=stat_refresh --exclude=compact_memory 2>/dev/null | sort
ls -d /mnt/* /var/lib/opjoule 2>/dev/null
pgrep -f '/opjoule/[l]oader-' || :
"""
# Like a kernel's own tree, it is gone after a reboot and is made again with its defaults.
STAND_IN = r"""
set -e
policy=/run/cpu/cpufreq/policy0
mkdir -p "$policy"
for pair in scaling_governor=ondemand scaling_min_freq=600000 scaling_max_freq=1500000 cpuinfo_min_freq=600000 \
  cpuinfo_max_freq=1500000 'scaling_available_governors=ondemand performance'; do
  echo "${pair#*=}" > "$policy/${pair%%=*}"
done
"""
FIRST_TIME = r"""
set -e
mkfs.ext4 -q -F /dev/disk/by-id/virtio-EMMC
fallocate -l 8M /swap && chmod 600 /swap && mkswap -q /swap
echo '/swap none swap sw 0 0' >> /etc/fstab
swapon /swap
"""


@pytest.fixture(scope="module")
def image():
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if release < (6, 7):
        pytest.skip(f"the virtual board is built with Linux 6.7 or later; this is {os.uname().release}")
    made = get_image(ROOT / "build/virtual-board", print)  # while other tests build the loaders
    subprocess.run([str(ROOT / "loader-cpp/board-builds"), "aarch64"], check=True, timeout=3600)
    return made


@pytest.fixture(scope="module")
def machine(image, tmp_path_factory):
    made = Machine(image, tmp_path_factory.mktemp("board") / "machine")
    as_root(made, FIRST_TIME + STAND_IN)
    yield made
    made.close()


def connect(machine: Machine, user: str = "rig", port: int | None = None) -> SshConnection:
    port = port or machine.port
    options = machine.image.ssh_options(port, machine.folder / f"known_hosts_{port}")
    return SshConnection(f"{user}@127.0.0.1", options)


def as_root(machine: Machine, script: str) -> None:
    shell = connect(machine)
    ran = shell.run(["sudo", "sh", "-c", script], limit_s=LIMIT_S)
    shell.close()
    assert ran.status == 0, ran.err


def listing(machine: Machine) -> list[str]:
    shell = connect(machine)
    try:
        ran = shell.run(["sudo", "sh", "-c", LISTING], limit_s=LIMIT_S)
        assert ran.status == 0, ran.err
        return ran.text().splitlines()
    finally:
        shell.close()
