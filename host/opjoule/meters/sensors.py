"""What the sensor chips' codes mean: steps, ranges and conversion times, each from its data sheet."""

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from opjoule.errors import BadInput, MeterFault
from opjoule.meters.messages import Board, Mode, SensorModel


class Scale(Protocol):
    """What turns codes into volts and amperes; the sensor model of the energy estimate is one."""

    @property
    def shunt_ohm(self) -> float:
        """Resistance of the shunt [ohm]."""

    @property
    def shunt_lsb_v(self) -> float:
        """Step of the shunt voltage [V]."""

    @property
    def bus_lsb_v(self) -> float:
        """Step of the bus voltage [V]."""


@dataclass(frozen=True)
class ChipScale:
    """Scale of a chip with its shunt, as far as the data sheet goes."""

    shunt_ohm: float
    shunt_lsb_v: float
    bus_lsb_v: float


@dataclass(frozen=True)
class Shunt:
    """The resistor that the current flows through: the user's, whatever chip sits on it."""

    ohm: float = 0.1
    """R100 of the common INA219 breakout; INA226 boards carry 0.002, 0.01 or 0.02 as well"""
    tolerance: float = 0.01
    """relative bound of its value"""
    origin: str = field(default="taken, the common breakout's: no shunt= is given", compare=False)
    """who says so"""


STEPS_V: dict[SensorModel, tuple[float, float]] = {
    SensorModel.INA219: (10e-6, 4e-3),  # SBOS448G, 8.6.3 (shunt, bus voltage register)
    SensorModel.INA226: (2.5e-6, 1.25e-3),  # SBOS547A, 7.6.2 and 7.6.3
    SensorModel.INA228: (312.5e-9, 195.3125e-6),  # SLYS021A, 7.6.1 (ADCRANGE = 0)
}
"""Chip -> step of shunt and bus voltage [V]."""

_INA219_CONVERSION_US = {
    # SBOS448G, table 5 (ADC settings): 9 to 12 bit, then the mean of 2 to 128 conversions of 12 bit.
    **{0: 84, 1: 148, 2: 276, 3: 532, 8: 532},
    **{9: 1060, 10: 2130, 11: 4260, 12: 8510, 13: 17020, 14: 34050, 15: 68100},
}
_INA226_CONVERSION_US = (140, 204, 332, 588, 1100, 2116, 4156, 8244)  # SBOS547A, tables 7 and 8
_INA228_CONVERSION_US = (50, 84, 150, 280, 540, 1052, 2074, 4120)  # SLYS021A, table 7-6
_AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)  # INA226 table 6; INA228 table 7-6


@dataclass(frozen=True)
class SensorSettings:
    """How a sensor converts; the codes are the chip's own (see message configure)."""

    mode: Mode = Mode.SHUNTS
    shunt_adc: int = 3
    """INA219: 3 = 12 bit"""
    bus_adc: int = 3
    shunt_range: int = 3
    """INA219: PGA, 3 = +-320 mV = 3.2 A at 0.1 ohm"""
    samples_per_frame: int = 16
    """upper limit; the meter's own limit may be lower"""
    bus_every: int = 128
    """shunt modes: conversions between two bus readings"""


_DEFAULTS = {
    SensorModel.INA226: SensorSettings(shunt_range=0),  # 588 us; it has one range
    SensorModel.INA228: SensorSettings(shunt_adc=4, bus_adc=4, shunt_range=0),  # 540 us, 163.84 mV
}
"""Chip -> settings that differ from the INA219's."""
_SHARED = {
    (SensorModel.INA219, 2): SensorSettings(mode=Mode.PAIRS, shunt_adc=9, bus_adc=9),  # 2 averages
    (SensorModel.INA226, 2): SensorSettings(mode=Mode.PAIRS, shunt_adc=4, bus_adc=3, shunt_range=0),
    (SensorModel.INA226, 3): SensorSettings(mode=Mode.PAIRS, shunt_adc=5, bus_adc=5, shunt_range=0),
    (SensorModel.INA228, 2): SensorSettings(mode=Mode.PAIRS, shunt_adc=5, bus_adc=5, shunt_range=0),
    (SensorModel.INA228, 3): SensorSettings(mode=Mode.PAIRS, shunt_adc=6, bus_adc=6, shunt_range=0),
}
"""(chip, sensors on the bus) -> settings; else 4 averages of an INA219."""
ARDUINO_BOARDS = frozenset({Board.AVR, Board.ESP32, Board.RP2040, Board.SAMD})
"""Boards whose firmware reads the chip through the Arduino framework's library: shunt+bus in 12 bit only."""
ARDUINO_PERIOD_US = 1400.0
"""Between two of its samples: the slowest chip's pair of conversions and one read of the shunt (1.3 to 1.42 ms)."""


@dataclass(frozen=True)
class CodeEnds:
    """Codes from which on a conversion stands at the end of its range: the true value may lie beyond."""

    shunt: int
    """of either sign"""
    bus: int

    def reached(
        self, shunt_code: npt.NDArray[np.int64], bus_code: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """True where a shunt or its bus code is at an end, same shape."""
        return (np.abs(shunt_code) >= self.shunt) | (bus_code >= self.bus)


def code_ends(board: int, model: SensorModel, settings: SensorSettings) -> CodeEnds:
    """The ends of a chip's ranges with these settings, the same as the firmware's (SensorPlan's full scales)."""
    if model is SensorModel.INA228:
        return CodeEnds(524_287, 524_287)  # 20 bit with sign
    if model is SensorModel.INA226:
        return CodeEnds(32_767, 32_767)  # 81.92 mV; 40.96 V
    # INA219 (SBOS448G, 8.6.3): 40 mV << PGA; 32 V, but 16 V as the Arduino library sets it with 40 mV.
    narrow = board in ARDUINO_BOARDS and settings.shunt_range == 0
    return CodeEnds(4000 << settings.shunt_range, 4000 if narrow else 8000)


@dataclass(frozen=True)
class ConversionTimes:
    """Nominal times of one sample [us]; the chip's own clock may be 10 % off."""

    shunt_us: float
    bus_us: float
    """0 where the sample has no bus conversion of its own"""
    unread_us: float = 0.0
    """converting what is never read, where the firmware cannot ask the chip whether it is ready"""

    @property
    def period_us(self) -> float:
        """From the end of one sample to the end of the next, nothing between them."""
        return self.shunt_us + self.bus_us + self.unread_us

    @property
    def centre_share(self) -> float:
        """Part of the period from the centre of the shunt conversion to the end of the sample.

        The shunt is converted first, then the bus (SBOS448G, 8.4.1); a sample ends with its last conversion.
        """
        return (self.bus_us + self.shunt_us / 2) / self.period_us

    @property
    def seen_fraction(self) -> float:
        """Part of a sample's period in which the current is converted; bus readings between samples are not in it."""
        return self.shunt_us / self.period_us


def default_settings(board: int, model: SensorModel, sensors: int = 1) -> SensorSettings:
    """What a board's firmware does best with so many sensors.

    One: shunt only with interleaved bus. More: shunt+bus, as fast as the bus has time for all. On an Arduino board:
    what the library can do.
    """
    if board in ARDUINO_BOARDS:
        return SensorSettings(mode=Mode.PAIRS)
    if sensors > 1:
        return _SHARED.get((model, sensors), SensorSettings(mode=Mode.PAIRS, shunt_adc=10, bus_adc=10))
    return _DEFAULTS.get(model, SensorSettings())


def read_times(board: int, model: SensorModel, settings: SensorSettings) -> ConversionTimes:
    """Times of the samples as this board's firmware reads them. Raises: as conversion_times."""
    times = conversion_times(model, settings)
    if board not in ARDUINO_BOARDS:
        return times
    return replace(times, unread_us=ARDUINO_PERIOD_US - times.period_us)


def conversion_times(model: SensorModel, settings: SensorSettings) -> ConversionTimes:
    """Nominal conversion times of a chip with these settings.

    Raises: BadInput: an ADC code the chip does not have, or a voltage that would never be read again.
        MeterFault: a chip without conversions.
    """
    if settings.mode is Mode.SHUNTS and settings.bus_every == 0:
        raise BadInput(
            "bus_every=0: the supply's voltage would be read once and never again; 1 to 255, 128 is usual"
        )
    if model is SensorModel.NONE:
        raise MeterFault("the meter found no sensor at this address: check its wiring (VCC, GND, SDA, SCL)")
    shunt_us = _conversion_us(model, settings.shunt_adc, averages=1)
    averages = 1 if model is SensorModel.INA219 else _AVERAGES[settings.shunt_adc >> 3 & 7]
    bus_us = _conversion_us(model, settings.bus_adc, averages) if settings.mode is Mode.PAIRS else 0.0
    return ConversionTimes(shunt_us, bus_us)


def _conversion_us(model: SensorModel, code: int, averages: int) -> float:
    if model is SensorModel.INA219:
        if code not in _INA219_CONVERSION_US:
            known = ", ".join(str(known) for known in _INA219_CONVERSION_US)
            raise BadInput(f"INA219: no ADC setting {code}; there are {known} (9 bit is 0, 12 bit is 3)")
        return float(_INA219_CONVERSION_US[code])
    if not 0 <= code < 64:
        raise BadInput(f"{model.name}: no ADC setting {code}; averaging << 3 | conversion time, 0 to 63")
    table = _INA226_CONVERSION_US if model is SensorModel.INA226 else _INA228_CONVERSION_US
    return float(table[code & 7]) * (averages if averages > 1 else _AVERAGES[code >> 3])


def chip_scale(model: SensorModel, shunt_ohm: float = Shunt.ohm, shunt_range: int = 0) -> ChipScale:
    """Nominal scale of a chip with the range set by its own code.

    Raises: BadInput: a shunt that is none. MeterFault: a chip not known here.
    """
    if shunt_ohm <= 0:
        raise BadInput(f"shunt of {shunt_ohm} ohm: must be above 0 (the common breakout has 0.1)")
    if model not in STEPS_V:
        raise MeterFault(f"no scale for a sensor of model {model.name}")
    shunt_lsb_v, bus_lsb_v = STEPS_V[model]
    if model is SensorModel.INA228 and shunt_range == 1:
        shunt_lsb_v /= 4  # 78.125 nV at +-40.96 mV (SLYS021A, 7.6.1.1 ADCRANGE)
    return ChipScale(shunt_ohm, shunt_lsb_v, bus_lsb_v)


def range_max_v(model: SensorModel, shunt_range: int) -> float:
    """Greatest shunt voltage [V] of a chip's range, by its code."""
    if model is SensorModel.INA219:
        return 0.04 * (1 << shunt_range)
    if model is SensorModel.INA226:
        return 81.92e-3
    return 40.96e-3 if shunt_range == 1 else 163.84e-3


def range_code(model: SensorModel, wanted_mv: int) -> int:
    """The chip's code of its narrowest range that holds so much. Raises: BadInput: it has none."""
    codes = {SensorModel.INA219: (0, 1, 2, 3), SensorModel.INA226: (0,)}.get(model, (1, 0))
    for code in codes:
        if range_max_v(model, code) >= wanted_mv * 1e-3:
            return code
    most_mv = range_max_v(model, codes[-1]) * 1e3
    raise BadInput(f"meter option range={wanted_mv}: the {model.name} measures up to {most_mv:g} mV")


def current_a(shunt_code: npt.NDArray[np.int64], scale: Scale) -> npt.NDArray[np.float64]:
    """Currents [A] of shunt codes, same shape."""
    return shunt_code.astype(np.float64) * (scale.shunt_lsb_v / scale.shunt_ohm)


def voltage_v(bus_code: npt.NDArray[np.int64], scale: Scale) -> npt.NDArray[np.float64]:
    """Bus voltages [V] of bus codes, same shape."""
    return bus_code.astype(np.float64) * scale.bus_lsb_v
