"""Clock that gives the seconds of an energy, and its uncertainty.

Samples are placed on the meter's clock, and a microcontroller's resonator can be thousands of ppm off. So the
length of a window comes from a better clock if there is one: the board's, on which the window was defined, or the
host's, which round trips relate to the meter's. The mean power of a window needs no seconds at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, SQRT3, ErrorBounds


@dataclass(frozen=True)
class Timebase:
    """The seconds of one window."""

    clock: str
    """Clock that gives the seconds: "board", "host" or "meter"."""
    rate: float
    """Seconds of that clock per second of the meter's, over the window."""
    error_max: float
    """Relative bound of that clock's oscillator, rectangular."""
    u_rate: float = 0.0
    """Standard uncertainty of `rate`; 0 if the window was defined on that clock itself."""

    @property
    def relative_u(self) -> float:
        """Relative standard uncertainty of the window's seconds."""
        return math.hypot(self.error_max / SQRT3, self.u_rate)

    @classmethod
    def defined_on(cls, clock: str, length_ns: int, meter_length_ns: int) -> Timebase:
        """Timebase of a window defined on a computer's clock: its length there is exact, whatever the map."""
        return cls(clock, length_ns / meter_length_ns if meter_length_ns > 0 else 1.0, CRYSTAL_ERROR_MAX)

    @classmethod
    def through(cls, meter_to_other: ClockMap, start_meter_ns: int, end_meter_ns: int) -> Timebase:
        """Timebase of a window defined on the meter's clock, its length converted to a computer's clock."""
        length_ns = meter_to_other.to_target(end_meter_ns) - meter_to_other.to_target(start_meter_ns)
        meter_length_ns = max(end_meter_ns - start_meter_ns, 1)
        u_rate = meter_to_other.u_duration_ns(start_meter_ns, end_meter_ns) / meter_length_ns
        return cls(meter_to_other.target, length_ns / meter_length_ns, CRYSTAL_ERROR_MAX, u_rate)

    @classmethod
    def of_meter(cls, sensor: ErrorBounds) -> Timebase:
        """Seconds of the meter's own clock, without a better one."""
        return cls("meter", 1.0, sensor.clock_error_max)

    def stated(self) -> dict[str, Any]:
        """`timebase` of result.json."""
        return {
            "clock": self.clock,
            "seconds_per_meter_second": self.rate,
            "error_max": self.error_max,
            "relative_u": 2.0 * self.relative_u,
        }
