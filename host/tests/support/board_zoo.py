"""Boards with their stock images: answers of their kernels and programs to the scripts that run on a board.

The scripts run for real. Only the files that they read of /sys, of the device tree and of /etc/os-release, and the
programs that differ between systems, are the board's. Sources: kernels and releases are from hardkernel's and Raspberry
Pi's image lists; coreutils before 9.0 print "?" for stat's %Hd (coreutils NEWS, 9.0).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from opjoule.boards.shell import LocalShell

_OLD_STAT = """for word; do case $word in *%H*|*%L*|*%r*) echo '?d:?d'; exit 0 ;; esac; done
exec /usr/bin/stat "$@"
"""


@dataclass(frozen=True)
class ZooBoard:
    """One board with one image."""

    name: str
    profile: str
    system: str
    machine: str
    kernel: str
    model: str = ""
    old_coreutils: bool = False
    per_cpu: bool = False
    """True if each processor has its own cpufreq folder, as before Linux 4.3."""
    throttled: str = ""
    """Folder of get_throttled below /sys/devices/platform."""
    rpi_volt: bool = False
    gpio: str = "usable"
    """GPIO chips for an ordinary user: usable, denied or none."""
    swap: tuple[tuple[str, str, str], ...] = ()
    units: tuple[str, ...] = ()
    hostname: str = "board"
    fan: str = ""
    """Policies of the thermal zone that switches a fan of four steps; empty for a board without one."""
    refused: str = ""
    """Part of the refusal's text; empty for a board that is accepted."""


_PI_UNITS = ("avahi-daemon.service", "triggerhappy.service", "systemd-timesyncd.service", "apt-daily.timer")
_SOC, _SOC_5 = "soc/soc:firmware", "soc@107c000000/soc@107c000000:firmware"
_PHYS = (("/var/swap", "file", "-2"),)
_ZRAM = (("/dev/zram0", "partition", "100"),)

ZOO = (
    ZooBoard("odroid-c2 Ubuntu 16.04", "odroid-c2", "Ubuntu 16.04.7 LTS", "aarch64", "3.14.79-116",
             old_coreutils=True, per_cpu=True, gpio="none", units=("ntp.service", "snapd.service")),
    ZooBoard("odroid-c2 Ubuntu 18.04", "odroid-c2", "Ubuntu 18.04.6 LTS", "aarch64", "3.16.85-65",
             "ODROID-C2", old_coreutils=True, per_cpu=True, gpio="none", units=("systemd-timesyncd.service",)),
    ZooBoard("odroid-c2 Armbian 12", "odroid-c2", "Armbian 24.2 bookworm", "aarch64", "6.6.16-current-meson64",
             "Hardkernel ODROID-C2", gpio="denied",
             swap=_ZRAM, units=("chrony.service", "armbian-hardware-monitor.service")),
    ZooBoard("odroid-c2 Ubuntu 22.04", "odroid-c2", "Armbian 22.11.1 Jammy", "aarch64", "5.19.17-meson64",
             "Hardkernel ODROID-C2", old_coreutils=True, gpio="denied", swap=_ZRAM,
             units=("chrony.service", "unattended-upgrades.service", "armbian-hardware-monitor.service")),
    ZooBoard("odroid-n2 Ubuntu 20.04", "odroid-n2", "Ubuntu 20.04.6 LTS", "aarch64", "4.9.337-13",
             "Hardkernel ODROID-N2", old_coreutils=True, gpio="denied",
             units=("systemd-timesyncd.service", "fwupd.service")),
    ZooBoard("odroid-n2 Ubuntu 22.04", "odroid-n2", "Ubuntu 22.04.4 LTS", "aarch64", "4.9.337-108",
             "Hardkernel ODROID-N2Plus", old_coreutils=True, gpio="denied", units=("packagekit.service",)),
    ZooBoard("odroid-xu4 Ubuntu 18.04", "generic-linux", "Ubuntu 18.04.5 LTS", "armv7l", "4.14.180-176",
             "Hardkernel Odroid XU4", old_coreutils=True, gpio="denied", units=("unattended-upgrades.service",)),
    ZooBoard("odroid-xu4 Ubuntu 22.04", "generic-linux", "Ubuntu 22.04.2 LTS", "armv7l", "5.4.228-401",
             "Hardkernel Odroid XU4", old_coreutils=True, gpio="denied"),
    ZooBoard("rpi1 Bookworm", "generic-linux", "Raspbian GNU/Linux 12 (bookworm)", "armv6l", "6.6.31+rpt-rpi-v6",
             "Raspberry Pi Model B Rev 2", throttled=_SOC, swap=_PHYS, refused="ARMv7"),
    ZooBoard("rpi-zero-w Bullseye", "generic-linux", "Raspbian GNU/Linux 11 (bullseye)", "armv6l", "6.1.21+",
             "Raspberry Pi Zero W Rev 1.1", old_coreutils=True, throttled=_SOC, refused="Zero 2 W"),
    ZooBoard("rpi2 Bullseye", "generic-linux", "Raspbian GNU/Linux 11 (bullseye)", "armv7l", "6.1.21-v7+",
             "Raspberry Pi 2 Model B Rev 1.1", old_coreutils=True, throttled=_SOC, rpi_volt=True,
             swap=_PHYS, units=_PI_UNITS),
    ZooBoard("rpi3 Buster", "rpi3", "Raspbian GNU/Linux 10 (buster)", "armv7l", "4.19.97-v7+",
             "Raspberry Pi 3 Model B Plus Rev 1.3", old_coreutils=True, throttled=_SOC, rpi_volt=True,
             swap=_PHYS, units=_PI_UNITS),
    ZooBoard("rpi3 Ubuntu 22.04", "rpi3", "Ubuntu 22.04.4 LTS", "aarch64", "5.15.0-1055-raspi",
             "Raspberry Pi 3 Model B Plus Rev 1.3", old_coreutils=True, rpi_volt=True, gpio="denied",
             units=("snapd.service",)),
    ZooBoard("rpi4 Bullseye 64", "rpi4", "Debian GNU/Linux 11 (bullseye)", "aarch64", "6.1.21-v8+",
             "Raspberry Pi 4 Model B Rev 1.4", old_coreutils=True, throttled=_SOC, rpi_volt=True, swap=_PHYS,
             units=_PI_UNITS, hostname="raspberrypi.local"),
    ZooBoard("rpi4 Debian 12 mainline", "rpi4", "Debian GNU/Linux 12 (bookworm)", "aarch64", "6.1.0-21-arm64",
             "Raspberry Pi 4 Model B Rev 1.1", gpio="denied"),
    ZooBoard("rpi5 Bookworm", "rpi5", "Debian GNU/Linux 12 (bookworm)", "aarch64", "6.12.25+rpt-rpi-2712",
             "Raspberry Pi 5 Model B Rev 1.0", throttled=_SOC_5, rpi_volt=True, swap=_PHYS, units=_PI_UNITS,
             fan="step_wise"),
    ZooBoard("rpi5 Trixie", "rpi5", "Debian GNU/Linux 13 (trixie)", "aarch64", "6.12.47+rpt-rpi-2712",
             "Raspberry Pi 5 Model B Rev 1.1", throttled=_SOC_5, rpi_volt=True, swap=_ZRAM,
             units=(*_PI_UNITS, "rpi-zram-writeback.timer"), fan="step_wise user_space"),
    ZooBoard("rpi-zero2w Bookworm", "rpi-zero2w", "Debian GNU/Linux 12 (bookworm)", "aarch64", "6.6.51+rpt-rpi-v8",
             "Raspberry Pi Zero 2 W Rev 1.0", throttled=_SOC, rpi_volt=True, swap=_PHYS, units=_PI_UNITS),
    ZooBoard("visionfive2", "generic-linux", "Debian GNU/Linux 13 (trixie)", "riscv64", "6.12.0", refused="riscv64"),
)  # fmt: skip


_PLACES = re.compile(r"(?<!/proc)/sys/|/etc/os-release|/proc/device-tree|/proc/swaps|/dev/gpiochip")


class ZooShell(LocalShell):
    """Runs the board's scripts on this computer, with the board's files and programs."""

    target = "pi@board"
    hostname = ""

    def __init__(self, board: ZooBoard, folder: Path) -> None:
        self.hostname = board.hostname
        self._denied = board.gpio == "denied"
        self._root = folder / "root"
        self._bin = folder / "bin"
        _build_tree(board, self._root)
        _build_programs(board, self._bin)

    def command(self, arguments: list[str]) -> list[str]:
        """The arguments, with the board's files in place of this computer's."""
        arguments = [_PLACES.sub(lambda match: f"{self._root}{match[0]}", word) for word in arguments]
        if self._denied:  # root may write anywhere, so the check is replaced
            arguments = [word.replace('[ -w "$chip" ]', "false") for word in arguments]
        return ["env", f"PATH={self._bin}:{os.environ['PATH']}", *super().command(arguments)]


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def _build_tree(board: ZooBoard, root: Path) -> None:
    _put(root / "etc/os-release", f'PRETTY_NAME="{board.system}"')
    if board.model:
        _put(root / "proc/device-tree/model", board.model)
    swaps = "".join(f"{name} {kind} 102396 0 {priority}\n" for name, kind, priority in board.swap)
    _put(root / "proc/swaps", ("Filename Type Size Used Priority\n" + swaps).strip())
    _put(root / "sys/class/thermal/thermal_zone0/temp", "47500")
    cpu = root / "sys/devices/system/cpu"
    policy = cpu / "cpu0/cpufreq" if board.per_cpu else cpu / "cpufreq/policy0"
    for name, value in {
        "scaling_governor": "ondemand",
        "scaling_min_freq": "100000",
        "scaling_max_freq": "1500000",
        "scaling_cur_freq": "1200000",
        "scaling_available_governors": "ondemand performance",
        "cpuinfo_min_freq": "100000",
        "cpuinfo_max_freq": "1500000",
    }.items():
        _put(policy / name, value)
    for number in range(1, 4):
        (cpu / f"cpu{number}").mkdir(parents=True, exist_ok=True)
        if board.per_cpu:
            (cpu / f"cpu{number}/cpufreq").symlink_to("../cpu0/cpufreq")
    if board.throttled:
        _put(root / "sys/devices/platform" / board.throttled / "get_throttled", "0")
    if board.rpi_volt:
        _put(root / "sys/class/hwmon/hwmon1/name", "rpi_volt")
        _put(root / "sys/class/hwmon/hwmon1/in0_lcrit_alarm", "0")
    if board.fan:
        thermal = root / "sys/class/thermal"
        for name, value in (("type", "pwm-fan"), ("max_state", "4"), ("cur_state", "1")):
            _put(thermal / "cooling_device0" / name, value)
        _put(thermal / "cooling_device1/type", "cpufreq-cpu0")
        (thermal / "thermal_zone0/cdev0").symlink_to("../cooling_device0")
        for name, value in (("policy", "step_wise"), ("available_policies", board.fan), ("mode", "enabled")):
            _put(thermal / "thermal_zone0" / name, value)
    if board.gpio != "none":
        _put(root / "dev/gpiochip0", "")


def _build_programs(board: ZooBoard, folder: Path) -> None:
    units = "".join(f"{unit} loaded active running x\n" for unit in board.units)
    programs = {
        "uname": f"case $1 in -m) echo {board.machine} ;; -r) echo {board.kernel} ;; *) echo Linux ;; esac",
        "id": "case $1 in -un) echo pi ;; *) echo 1000 ;; esac",
        "sudo": 'shift; exec "$@"',
        "systemctl": f"printf '%s' '{units}'",
    }
    if board.old_coreutils:
        programs["stat"] = _OLD_STAT
    for name, text in programs.items():
        _put(folder / name, f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)
