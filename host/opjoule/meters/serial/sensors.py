"""How a meter's firmware reads its sensors: the default settings of a controller, and its limits."""

from dataclasses import replace

from opjoule.meters.chips.chip import Chip, CodeEnds, ConversionTimes, SensorSettings
from opjoule.meters.messages import ControllerKind, Mode

BY_LIBRARY = frozenset({ControllerKind.AVR, ControllerKind.ESP32, ControllerKind.RP2040, ControllerKind.SAMD})
"""Controllers whose firmware reads the chip through the Arduino framework's library: shunt+bus in 12 bit only."""
ARDUINO_PERIOD_US = 1400.0
"""Time between two samples: the slowest chip's pair of conversions and one read of the shunt (1.3 to 1.42 ms)."""
_MANY = SensorSettings(mode=Mode.PAIRS, shunt_adc=10, bus_adc=10)
"""More sensors than the chip's table has: 4 averages of an INA219."""


def default_settings(controller: int, chip: Chip, sensors: int = 1) -> SensorSettings:
    """Best settings of a controller's firmware for this number of sensors.

    One sensor: shunt only, with interleaved bus readings. Several sensors: shunt+bus, as fast as the bus allows for all
    of them. With the Arduino framework: the only settings that its library has.
    """
    if controller in BY_LIBRARY:
        return SensorSettings(mode=Mode.PAIRS)
    return chip.sharing.get(sensors, _MANY) if sensors > 1 else chip.alone


def read_times(controller: int, chip: Chip, settings: SensorSettings) -> ConversionTimes:
    """Times of the samples with this controller's firmware. Raises: as Chip.times."""
    times = chip.times(settings)
    if controller not in BY_LIBRARY:
        return times
    return replace(times, unread_us=ARDUINO_PERIOD_US - times.period_us)


def code_ends(controller: int, chip: Chip, settings: SensorSettings) -> CodeEnds:
    """The ends of the chip's ranges as set by this controller's firmware."""
    return chip.code_ends(settings.shunt_range, by_library=controller in BY_LIBRARY)
