"""The two Monsoon models: ranges, limits, and the layout of their memory.

Source: PyMonsoon 0.1.88 (Operations, HVPM, LVPM) for codes and formulas; the vendor's manuals for accuracy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, CURRENT, VOLTAGE, ErrorBounds

SAMPLE_PERIOD_NS: Final = 200_000
"""One observation every 200 us, including calibration."""
ADC_STEP_V: Final = 62.5e-6
GAIN_ERROR_MAX: Final = 0.01
"""The vendor states +-1 % of the reading or +-1 mA, whichever is greater, in the coarse range. Here the two add."""
OFFSET_MAX_A: Final = 1e-3
"""See GAIN_ERROR_MAX."""
VOLTAGE_ERROR_MAX: Final = 0.01
"""Assumed: the vendor states no accuracy of the voltage reading."""
_NOMINAL_SHUNT_OHM: Final = 0.05


class Opcode(IntEnum):
    """Addresses in the device's memory, for reading and writing."""

    MAIN_FINE_RESISTOR = 0x02
    MAIN_COARSE_RESISTOR = 0x11
    USB_FINE_RESISTOR = 0x0D
    USB_COARSE_RESISTOR = 0x12
    USB_PASSTHROUGH = 0x10
    MAIN_FINE_SCALE = 0x1A
    MAIN_COARSE_SCALE = 0x1B
    USB_FINE_SCALE = 0x1C
    USB_COARSE_SCALE = 0x1D
    VOLTAGE_CHANNEL = 0x23
    MAIN_FINE_ZERO = 0x25
    MAIN_COARSE_ZERO = 0x26
    USB_FINE_ZERO = 0x27
    USB_COARSE_ZERO = 0x28
    MAIN_VOLTAGE = 0x41
    SERIAL_NUMBER = 0x42
    POWER_UP_LIMIT = 0x43
    RUN_LIMIT = 0x44
    HARDWARE_MODEL = 0x45
    DAC_LOW = 0x88
    DAC_HIGH = 0x89
    FIRMWARE = 0xC0
    PROTOCOL = 0xC1


PASSTHROUGH: Final = {"off": 0, "on": 1, "auto": 2}
DAC_RANGES: Final = {Opcode.DAC_LOW: (0xD000, 0xF000), Opcode.DAC_HIGH: (0xC000, 0xD000)}
"""Ranges outside which a HVPM's output voltage is not the voltage that was set (known of some units)."""

GetValue = Callable[[int, int, bool], int]
"""(opcode, bytes, signed) -> value from the device's memory."""


@dataclass(frozen=True)
class ChannelScale:
    """Current of one channel at its reference, and the offsets of the raw values."""

    fine_a: float
    coarse_a: float
    fine_zero: float
    coarse_zero: float


@dataclass(frozen=True)
class Model:
    """One Monsoon model."""

    name: str
    code: int
    """argument of the library's Connect"""
    voltage_v: tuple[float, float]
    """Minimum and maximum voltage of the main channel."""
    limit_a: float
    """Upper end of the current limit's setting."""
    current_max_a: float
    """Continuous current of the main channel; the bound of a lost sample."""
    fine_limit: int
    """Raw values of the fine range count below this."""
    signed: bool
    main_voltage_scale: float
    usb_voltage_scale: float = 2.0

    def check_voltage(self, voltage_v: float, supply_v: tuple[float, float] | None) -> None:
        """Checks that the main channel may be set to a voltage.

        `supply_v`: the board's minimum and maximum supply voltage, if known.
        Raises: BadInput: the voltage is outside the device's range or the board's; power is not applied.
        """
        low_v, high_v = self.voltage_v
        if supply_v and (high_v < supply_v[0] or low_v > supply_v[1]):
            raise BadInput(
                f"monsoon: {self.name} gives {low_v:g} to {high_v:g} V on its main channel, the board needs "
                f"{supply_v[0]:g} to {supply_v[1]:g} V: supply it through the USB channel (channel=usb)"
            )
        if not low_v <= voltage_v <= high_v:
            raise BadInput(
                f"monsoon: {voltage_v:g} V is outside the {low_v:g} to {high_v:g} V of {self.name}: power stays off"
            )
        if supply_v and not supply_v[0] <= voltage_v <= supply_v[1]:
            raise BadInput(
                f"monsoon: {voltage_v:g} V is outside the board's {supply_v[0]:g} to {supply_v[1]:g} V: power stays off"
            )

    def limit_code(self, limit_a: float) -> int:
        """The device's code of a current limit. Raises: BadInput: the limit is outside the range of the setting."""
        if not 0 < limit_a <= self.limit_a:
            raise BadInput(f"monsoon: current limit {limit_a:g} A is outside the {self.limit_a:g} A of {self.name}")
        if self is HVPM:
            return round(0x0F00 + (0xFFFF - 0x0F00) * limit_a / 15.625)
        return round(1023 * (1 - limit_a / 8.0))

    def channel_scale(self, channel: str, get: GetValue) -> ChannelScale:
        """Scale of channel 'main' or 'usb' from the device's memory."""

        def read(what: str, length: int, signed: bool) -> tuple[int, int]:
            """The codes of the fine and of the coarse range."""
            names = (f"{channel.upper()}_{fineness}_{what}" for fineness in ("FINE", "COARSE"))
            fine, coarse = (get(Opcode[name], length, signed) for name in names)
            return fine, coarse

        if self is HVPM:
            fine, coarse = read("SCALE", 2, False)
            zeros = read("ZERO", 2, True)
            return ChannelScale(fine * 1e-6, coarse * 1e-3, *map(float, zeros))
        # Steps of 0.1 mohm around 50 mohm, signed (the library reads them as unsigned).
        ohms = [_NOMINAL_SHUNT_OHM + 1e-4 * steps for steps in read("RESISTOR", 1, True)]
        fine_a, coarse_a = 35_946e-6 * _NOMINAL_SHUNT_OHM / ohms[0], 3_103.4e-3 * _NOMINAL_SHUNT_OHM / ohms[1]
        return ChannelScale(fine_a, coarse_a, 0.0, 0.0)

    def voltage_step_v(self, channel: str) -> float:
        """Step of a channel's voltage [V]."""
        return ADC_STEP_V * (self.main_voltage_scale if channel == "main" else self.usb_voltage_scale)

    def error_bounds(self, channel: str) -> ErrorBounds:
        """Error bounds of the device as delivered, uncalibrated."""
        return ErrorBounds(
            gain_errors_max={CURRENT: GAIN_ERROR_MAX, VOLTAGE: VOLTAGE_ERROR_MAX},
            current_offset_max_a=OFFSET_MAX_A,
            current_step_a=6.4 / 0x10000 if self is HVPM else 3.1034 / 0x8000,  # coarse range, nominal scale
            voltage_step_v=self.voltage_step_v(channel),
            current_max_a=self.current_max_a,
            seen_fraction=1.0,
            clock_error_max=CRYSTAL_ERROR_MAX,
        )


HVPM: Final = Model("HVPM", 2, (0.8, 13.5), 15.625, 6.0, 64_000, False, 4.0)
LVPM: Final = Model("LVPM", 1, (2.01, 4.55), 8.0, 3.0, 30_000, True, 2.0)
MODELS: Final = {"hvpm": HVPM, "lvpm": LVPM}
