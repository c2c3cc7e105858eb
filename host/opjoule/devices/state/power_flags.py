"""What a Raspberry Pi's firmware says of its supply: flags that the kernel reads, and clears, every 2 seconds.

Sources: raspberrypi/documentation, get_throttled (bits 0 to 3 are now, 16 to 19 since they were last cleared);
drivers/hwmon/raspberrypi-hwmon.c asks the firmware every 2 s and has it clear the sticky bits, and shows the
under-voltage that it found as in0_lcrit_alarm. A reading less often than that loses what lies between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

HWMON = "/sys/class/hwmon"
PERIOD_S = 1.0
"""Half of the kernel's own period: every state of its flags is seen."""
_FLAGS = {0: "under-voltage", 1: "frequency capped", 2: "throttled", 3: "soft temperature limit"}
_UNDER_VOLTAGE = 1 << 0


@dataclass
class PowerFlags:
    """All readings of one measurement, joined."""

    seen: int = 0
    """Bits 0 to 3: whatever was true during the measurement."""
    readable: list[str] = field(default_factory=list)
    """What could be read at all: throttled, alarm."""
    _last: int | None = None

    def add(self, throttled: int | None, alarm: bool | None) -> None:
        """One reading: the firmware's flags and the kernel's alarm, each None where it cannot be read.

        A sticky bit counts when it rises: one that stood before the first reading is from before the measurement.
        """
        if throttled is not None:
            self._note("throttled")
            before = throttled if self._last is None else self._last
            self.seen |= throttled & 0xF | (throttled & ~before) >> 16 & 0xF
            self._last = throttled
        if alarm is not None:
            self._note("alarm")
            self.seen |= _UNDER_VOLTAGE if alarm else 0

    def _note(self, what: str) -> None:
        if what not in self.readable:
            self.readable.append(what)

    def broken(self) -> list[str]:
        """One line for each flag that was seen."""
        return [f"firmware reports {name}" for bit, name in _FLAGS.items() if self.seen >> bit & 1]

    def unknown(self) -> list[str]:
        """What nobody can say, if there was nothing to read."""
        if self.readable:
            return []
        return [
            "under-voltage and throttling: this kernel shows neither get_throttled nor rpi_volt; only the "
            "voltage in the trace shows them"
        ]
