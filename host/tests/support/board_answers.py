"""A board with the answers that a test gives, and the changes that would be made on it."""

from __future__ import annotations

import subprocess

from opjoule.boards.board_state import BlockDevices, BoardFacts, BoardState, StateSettings
from opjoule.boards.changes import plan_preparation
from opjoule.boards.medium import Medium


def active(*units: str) -> list[list[str]]:
    """Answers of state.sh on active units."""
    return [[unit, "active"] for unit in units]


ANSWERS = {
    "policy": [["/c/policy0", "ondemand", "600000", "1500000", "performance ondemand userspace", "600000", "1500000"]],
    "cpu": [["/s/cpu0", "always"], ["/s/cpu1", "1"], ["/s/cpu2", "1"], ["/s/cpu3", "1"]],
    "radio": [["/r/rfkill0", "bluetooth", "0", "hci0"], ["/r/rfkill1", "wlan", "0", "phy0"]],
    "interface": [["lo", "virtual"], ["eth0", "wired"], ["wlan0", "wifi"]],
    "hdmi": [["/d/card1-HDMI-A-1", "connected"]],
    "led": [["/l/ACT", "mmc0", "0"]],
    "swap": [["/var/swap", "file", "-2"], ["/dev/zram0", "partition", "100"]],
    "unit": active("ssh.service", "apt-daily.timer", "systemd-journald.service"),
    "memory_kb": [["2097152"]],
    "root": [["179:2"]],
    "mount": [["179:2", "/"], ["8:33", "/mnt/user"]],
    "block": [
        ["mmcblk0", "179:0", "mmcblk0", "", "", "1000", "", "0x1"],
        ["mmcblk0p1", "179:1", "mmcblk0", "", "", "100", "", ""],
        ["mmcblk0p2", "179:2", "mmcblk0", "", "", "900", "", ""],
        ["sda", "8:0", "sda", "", "", "2000", "Samsung SSD", "S1"],
        ["sdb", "8:16", "sdb", "", "", "2000", "", ""],
        ["sdb1", "8:17", "sdb", "", "", "1000", "", ""],
        ["sdc", "8:32", "sdc", "", "", "2000", "", ""],
        ["sdc1", "8:33", "sdc", "", "", "1000", "", ""],
        ["sdd", "8:48", "sdd", "", "", "2000", "", ""],
        ["dm-0", "253:0", "dm-0", "sdd ", "", "1900", "", ""],
        ["loop0", "7:0", "loop0", "", "8:33", "50", "", ""],
    ],
    "path": [["/mnt/ssd", ""]],
}
MARK = "6e1ed2fa-0b45-4c34-9d2f-5c31f3ad8a01"
"""UUID of a file system."""


def state(**changed) -> BoardState:
    answers = {**ANSWERS, **changed}
    return BoardState(answers, BlockDevices.from_answers(answers))


def plan(
    board: BoardState,
    *,
    medium: Medium | None = None,
    rights="root",
    interface="eth0",
    remote=True,
    gpio_denied=False,
    found_by_mdns=False,
    **wanted,
):
    settings = StateSettings().changed(wanted, "test")
    return plan_preparation(
        board,
        settings,
        medium or Medium("/mnt/ssd"),
        BoardFacts({"user": "pi", "gpio": "denied"}, "aarch64", "", rights, "", "", "", False, interface),
        remote=remote,
        sync=gpio_denied,
        found_by_mdns=found_by_mdns,
    )


def abouts(made) -> list[str]:
    return [step.about for step in made.steps]


def run(script: bytes) -> list[list[str]]:
    ran = subprocess.run(["sh", "-s"], input=script, capture_output=True, check=True)
    return [line.split("\t") for line in ran.stdout.decode().splitlines()]
