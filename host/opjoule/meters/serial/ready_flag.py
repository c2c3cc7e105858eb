"""Checks by a short trial on the sensor whether its conversion-ready flag works as the firmware requires.

The firmware reads a conversion when the flag is set, and reading the power register clears it (INA219: SBOS448G,
8.6.3.2; INA226 and INA228: reading the flag does). If the flag is not cleared, the firmware finds it set at every poll.
It then reads at the fastest rate that it accepts from a chip, an eighth faster than the data sheet's typical time. No
real chip is that fast. If the flag is never set, there are no samples.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.meters.chips import BY_LIBRARY, chip_of, default_settings
from opjoule.meters.interface import InputEnded, Samples
from opjoule.meters.messages import ChipKind, ControllerKind
from opjoule.meters.serial.meter import SerialMeter

TRIAL_S: Final = 3.0
TRIAL_SAMPLES: Final = 3000
"""1.6 s at 532 us: several bus readings, and time for the firmware's clock to follow the chip."""
SETTLING: Final = 500
"""Samples at the start that do not count."""
FASTEST, SLOWEST = 0.885, 1.115
"""Limits as parts of the typical time: 586 of 532 us at most (SBOS448G, 7.5), the same below, and the meter's clock."""
MISSED_MOST: Final = 5
OTHER_WAY: Final = "use another sensor, or the firmware uno-arduino, which reads by time instead of by the flag"


@dataclass(frozen=True)
class FlagTrial:
    """Result of a trial."""

    samples: int
    period_us: float
    """median distance of conversions by the flag; nan if there are no samples"""
    typical_us: float
    """by the data sheet"""
    missed: int
    """conversions that the meter counted as missed"""
    held: bool
    """True if SDA was held low after the meter's start and had to be clocked free"""

    @property
    def words(self) -> str:
        """The observation, and the fault with its consequence if there is one."""
        seen = f"{self.samples} conversions in a trial"
        if self.samples:
            seen += f", one each {self.period_us:.0f} us (typical {self.typical_us:.0f} us)"
        held = "; SDA was held low and clocked free" if self.held else ""
        return seen + (f": {self.trouble}" if self.trouble else "") + held

    @property
    def trouble(self) -> str:
        """The fault and its consequence; empty if there is none."""
        if not self.samples:
            return "the ready flag is never set, so nothing can be recorded"
        share = self.period_us / self.typical_us
        if share < FASTEST:
            return (
                "the ready flag is set before a conversion can have ended, so it is not cleared: results "
                "are read twice, and a sample's time may be wrong by a whole conversion"
            )
        if share > SLOWEST:
            return "the ready flag comes later than any conversion ends: results are overwritten unread"
        if self.missed > MISSED_MOST:
            return f"the ready flag comes irregularly: {self.missed} conversions were missed"
        return ""


def try_ready_flag(path: str, sensor: int, clock: HostClock = MONOTONIC) -> FlagTrial | None:
    """Samples one sensor of the meter at a port for a moment: shunt conversions with an occasional bus reading.

    Returns: None if the firmware does not use the flag. Raises: MeterFault.
    """
    meter = SerialMeter(path, sensors=(sensor,), clock=clock)
    try:
        identity = meter.open()
        controller = ControllerKind.__members__.get(identity.board.upper(), ControllerKind.OTHER)
        if controller in BY_LIBRARY:
            return None
        meter.configure()
        chip = chip_of(ChipKind[identity.sensors[sensor].model.upper()])
        typical_us = chip.times(default_settings(controller, chip)).period_us
        meter.start()
        distances_us, samples = _follow(meter, clock)
        faults = meter.losses.faults
    finally:
        meter.close()
    settled_us = distances_us[min(SETTLING, distances_us.size // 2) :]
    period_us = float(np.median(settled_us)) if settled_us.size else float("nan")
    return FlagTrial(samples, period_us, typical_us, faults.get("conversion_missed", 0), "i2c_held" in faults)


def _follow(meter: SerialMeter, clock: HostClock) -> tuple[Float64Array, int]:
    """(distances of neighbouring samples [us], number of samples); ends with the trial or the meter's input."""
    distances_us = [np.zeros(0)]
    samples = 0
    until_s = clock.now_s() + TRIAL_S
    try:
        while samples < TRIAL_SAMPLES and clock.now_s() < until_s:
            for event in meter.read(0.1):
                if isinstance(event, Samples):
                    samples += event.meter_ns.size
                    distances_us.append(np.diff(event.meter_ns) * 1e-3)
        meter.stop()
    except InputEnded:
        pass
    return np.concatenate(distances_us), samples
