"""The pin that carries the sync line: asked of the board's kernel by the probe itself."""

from __future__ import annotations

import json
from dataclasses import dataclass

from opjoule.devices.connection.shell import Shell
from opjoule.errors import BadInput

PULSE_S = 0.5


@dataclass(frozen=True)
class SyncPin:
    """A GPIO line that can be had."""

    chip: str
    line: int
    name: str
    """As the board's maker calls it; empty where the kernel knows none."""
    direction: str
    """in or out, before it was requested."""
    interface: str
    """Version of the GPIO character device: v2 or v1."""

    def about(self) -> str:
        """In words."""
        called = f" '{self.name}'" if self.name else ", which the kernel has no name for"
        now = f"free, now an {self.direction}put; character device {self.interface}"
        return f"{self.chip} line {self.line}{called}, {now}"


def check_sync(carrier: str) -> str:
    """The carrier as it is, if the probe can take it.

    Raises: BadInput: neither none nor gpio:NAME, gpio:CHIP:LINE, gpio:sysfs:NUMBER.
    """
    kind, _, line = carrier.partition(":")
    fits = bool(line)
    if line.startswith("/"):
        fits = line.rpartition(":")[2].isdigit()
    elif line.startswith("sysfs:"):
        fits = line.removeprefix("sysfs:").isdigit()
    if carrier == "none" or (kind == "virtual" and line) or (kind == "gpio" and fits):
        return carrier
    raise BadInput(
        f"{carrier!r} is not a sync line: write gpio:NAME as in gpio:GPIO17, gpio:CHIP:LINE as in "
        "gpio:/dev/gpiochip0:17, gpio:sysfs:NUMBER, or none"
    )


def look_at_pin(shell: Shell, probe: list[str], carrier: str, pulses: int = 0) -> SyncPin | None:
    """Requests the line from the board's kernel, and drives it only if asked to.

    Args:
        pulses: how many, of half a second each; 0 leaves the pin's level and direction alone.
    Returns: the line; None for one of sysfs, of which nothing more is known.
    Raises: BadInput: the probe's own line: no such line, taken, not to be opened. LinkFault: no connection.
    """
    drive = ["--pulses", str(pulses)] if pulses else []
    ran = shell.run([*probe, "gpio", "--sync", carrier, *drive], limit_s=60 + 2 * PULSE_S * pulses)
    if ran.status != 0:
        raise BadInput(ran.last_line().removeprefix("probe: "))
    for line in ran.text().splitlines():
        if pin := json.loads(line).get("gpio"):
            return SyncPin(**{key: pin[key] for key in SyncPin.__dataclass_fields__})
    return None
