"""Whether the board's clock is being steered: the kernel's adjtimex(2), before and after a measurement."""

from __future__ import annotations

from typing import Any

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
FAULT_PPM = 100.0
"""A tenth of what the energies are to be true to; no oscillator moves as much in a run."""
STEERED_PPM = 0.05
"""A change of the kernel's rate below this is less than a crystal's own over minutes."""


def rate_change_ppm(before: dict[str, Any], after: dict[str, Any]) -> float:
    """By how much the kernel's rate was changed between two readings; 0 where one of them is not known."""
    if not {"frequency_ppm", "tick_us"} <= before.keys() & after.keys():
        return 0.0
    of_tick_ppm = 100.0 * (after["tick_us"] - before["tick_us"])  # of USER_HZ = 100: 1 us in 10 ms
    return float(after["frequency_ppm"] - before["frequency_ppm"] + of_tick_ppm)


def broken_by_steering(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The limit that a change of the rate breaks: the measurement's seconds are the board's."""
    change_ppm = rate_change_ppm(before, after)
    if abs(change_ppm) < FAULT_PPM:
        return []
    return [
        f"its clock was steered: its rate changed by {change_ppm:+.2f} ppm, and all seconds, energies and "
        "powers with it. Stop what sets it (chrony, ntpd, systemd-timesyncd)"
    ]


def steered(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What was done to the clock between two readings, one line each."""
    lines = []
    change_ppm = rate_change_ppm(before, after)
    if abs(change_ppm) > STEERED_PPM:
        lines.append(
            f"the board's clock was steered during the measurement: its rate changed by {change_ppm:+.2f} ppm"
        )
    if abs(before.get("offset_s", 0.0)) > 1e-6:
        lines.append(
            "at the start the kernel was still slewing the board's clock by "
            f"{before['offset_s'] * 1e6:.0f} us"
        )
    return lines
