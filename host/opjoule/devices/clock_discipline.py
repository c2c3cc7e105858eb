"""Whether the board's clock is being steered: the kernel's adjtimex(2), before and after a measurement."""

from __future__ import annotations

import json
from typing import Any

from opjoule.devices.shell import Shell
from opjoule.errors import OpJouleError

TIME_UNITS = (
    "systemd-timesyncd.service",
    "chrony.service",
    "chronyd.service",
    "ntp.service",
    "ntpd.service",
    "ntpsec.service",
    "openntpd.service",
    "ntpsec-rotate-stats.timer",
)
"""Daemons that slew CLOCK_MONOTONIC, on which the board stamps (adjtimex(2); packages systemd-timesyncd, chrony, ntp,
ntpsec, openntpd of Debian and Ubuntu, and their names elsewhere)."""
STEERED_PPM = 0.05
"""A change of the kernel's rate below this is less than a crystal's own over minutes."""


def read_discipline(shell: Shell, loader: str) -> dict[str, Any]:
    """adjtimex of the board: status, frequency_ppm, offset_s, tick_us; a reason where it cannot be read."""
    try:
        ran = shell.run([loader, "clock", "--steering"])
        found: dict[str, Any] = (
            json.loads(ran.text())["adjtimex"] if ran.status == 0 else {"reason": ran.last_line()}
        )
        return found
    except (OpJouleError, ValueError, KeyError) as error:
        return {"reason": str(error)}


def steered(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What was done to the clock between two readings, one line each."""
    lines = []
    if {"frequency_ppm", "tick_us"} <= before.keys() & after.keys():
        change_ppm = after["frequency_ppm"] - before["frequency_ppm"]
        change_ppm += 100.0 * (after["tick_us"] - before["tick_us"])  # of USER_HZ = 100: 1 us in 10 ms
        if abs(change_ppm) > STEERED_PPM:
            lines.append(
                f"the board's clock was steered during the measurement: its rate changed by {change_ppm:+.2f} ppm"
            )
    if abs(before.get("offset_s", 0.0)) > 1e-6:
        lines.append(
            f"the kernel was still slewing the board's clock by {before['offset_s'] * 1e6:.0f} us at the start"
        )
    return lines
