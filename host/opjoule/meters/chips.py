"""The sensor chips: the form of a chip's codes, times and errors, how a firmware reads it, and a value for each chip.

Each value has the chip's name in messages.toml. docs/reference/sensors.md lists the facts that were checked against the
data sheets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from opjoule.base.errors import BadInput, MeterFault
from opjoule.energy.error_bounds import (
    CHIP_PER_K,
    COPPER,
    CURRENT,
    HEAT,
    RESONATOR_ERROR_MAX,
    ROOM_K,
    SHUNT,
    SHUNT_K_PER_W,
    TEMPERATURE,
    VOLTAGE,
    ErrorBounds,
    Shunt,
)
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array
from opjoule.meters.messages import ChipKind, ControllerKind, Mode

COPY_BUS_GAIN_ERROR_MAX: Final = 0.055
"""Relative voltage error of a chip that may be a copy: users found modules up to 5.3 % high (Zanduino/INA#45)."""
SUPPLY_LEAST_V: Final = 4.75
"""Least voltage of a 5 V supply; an offset of the bus voltage is converted to a relative error at this voltage."""


@dataclass(frozen=True)
class SensorSettings:
    """Conversion settings of a sensor; the codes are the chip's own (see message configure)."""

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


@dataclass(frozen=True)
class ConversionTimes:
    """Nominal times of one sample [us]; the chip's own clock may be 10 % off."""

    shunt_us: float
    bus_us: float
    """0 if the sample has no bus conversion of its own"""
    unread_us: float = 0.0
    """time of conversions that are never read, because the firmware cannot ask the chip whether it is ready"""
    rounds: int = 1
    """number of times that the chip converts the shunt and then the bus for one sample"""

    @property
    def period_us(self) -> float:
        """Time from the end of one sample to the end of the next, with nothing between them."""
        return self.shunt_us + self.bus_us + self.unread_us

    @property
    def centre_share(self) -> float:
        """Part of the period from the centre of the shunt conversions to the end of the sample.

        The shunt is converted first, then the bus; a sample ends with its last conversion. An INA219 averages each of
        them apart (SBOS448G, 8.4.1), an INA226 repeats both until it has all averages (SBOS547B, 6.3.1).
        """
        return (self.shunt_us + self.bus_us + self.bus_us / self.rounds) / 2 / self.period_us

    @property
    def seen_fraction(self) -> float:
        """Part of a sample's period in which the current is converted, without bus readings between samples."""
        return self.shunt_us / self.period_us


@dataclass(frozen=True)
class CodeEnds:
    """Codes at and above which a conversion is at the end of its range; the true value may lie beyond."""

    shunt: int
    """greatest magnitude, either sign"""
    bus: int

    def reached(self, shunt_code: Int64Array, bus_code: Int64Array) -> BoolArray:
        """True where the shunt code or the bus code is at the end of its range, same shape."""
        return (np.abs(shunt_code) >= self.shunt) | self.voltage_reached(bus_code)

    def voltage_reached(self, bus_code: Int64Array) -> BoolArray:
        """True where a bus code is at the end of its range, same shape."""
        return bus_code >= self.bus


@dataclass(frozen=True)
class ChipScale:
    """Nominal scale of a chip with its shunt."""

    shunt_ohm: float
    shunt_lsb_v: float
    bus_lsb_v: float

    def current_a(self, shunt_code: Int64Array) -> Float64Array:
        """Currents [A] of shunt codes, same shape."""
        return shunt_code.astype(np.float64) * (self.shunt_lsb_v / self.shunt_ohm)

    def voltage_v(self, bus_code: Int64Array) -> Float64Array:
        """Bus voltages [V] of bus codes, same shape."""
        return bus_code.astype(np.float64) * self.bus_lsb_v


@dataclass(frozen=True)
class ShuntRange:
    """One range of the shunt voltage."""

    code: int
    max_v: float
    step_v: float
    offset_max_v: float
    end: int
    """shunt code at the end of the range, of either sign"""
    library_bus_end: int | None = None
    """bus code at the end of the bus range that the Arduino library sets with this one, if it is another"""


@dataclass(frozen=True)
class Chip:
    """A sensor chip as delivered, from its data sheet."""

    name: str
    ranges: tuple[ShuntRange, ...]
    """narrowest first"""
    bus_step_v: float
    bus_end: int
    """bus code at the end of the range"""
    gain_error_max: float
    """relative bound of the shunt voltage's gain error"""
    bus_gain_error_max: float
    bus_offset_max_v: float
    conversion_us: Mapping[int, float]
    """code of a conversion time -> nominal time [us]"""
    averages: tuple[int, ...] | None
    """averages by code; the code is above the three bits of the conversion time; None: in the table of times"""
    alone: SensorSettings
    """settings as the only sensor on its bus"""
    sharing: Mapping[int, SensorSettings]
    """number of sensors on the bus -> settings for each of them"""
    own_shunt: Shunt | None = None
    """the shunt inside the chip, if it has one; the gain error includes its tolerance"""
    copied: bool = False
    """copies that cannot be distinguished from it are on the market"""
    note: str = ""
    codes_in_words: str = "averaging << 3 | conversion time, 0 to 63"
    coarse: Mapping[int, int] = field(default_factory=dict)
    """code of a conversion time -> steps between its results, if more than 1: a conversion of fewer bits"""

    def range_of(self, code: int) -> ShuntRange:
        """The range with this code; the widest range if no range has it."""
        return next((shunt_range for shunt_range in self.ranges if shunt_range.code == code), self.ranges[-1])

    def range_code(self, wanted_mv: int) -> int:
        """Code of the narrowest range that covers `wanted_mv`. Raises: BadInput: there is none."""
        for shunt_range in self.ranges:
            if shunt_range.max_v >= wanted_mv * 1e-3:
                return shunt_range.code
        most_mv = self.ranges[-1].max_v * 1e3
        raise BadInput(f"meter option range={wanted_mv}: the {self.name} measures up to {most_mv:g} mV")

    def adc_codes(self, code: int) -> dict[str, int]:
        """The settings `shunt_adc` and `bus_adc` for this code of both conversions.

        An averaging chip has its averages in the shunt's code, and only a conversion time in the bus's.
        """
        return {"shunt_adc": code, "bus_adc": code & 7 if self.averages else code}

    def code_ends(self, range_code: int, *, by_library: bool = False) -> CodeEnds:
        """The ends of its ranges as set by the firmware (SensorPlan's full scales) or by the Arduino library."""
        chosen = self.range_of(range_code)
        return CodeEnds(chosen.end, (by_library and chosen.library_bus_end) or self.bus_end)

    def scale(self, shunt_ohm: float = Shunt.ohm, range_code: int = 0) -> ChipScale:
        """Nominal scale with the range of this code. Raises: BadInput: the resistance is not above 0."""
        if shunt_ohm <= 0:
            raise BadInput(f"shunt of {shunt_ohm} ohm: must be above 0 (the common breakout has 0.1)")
        return ChipScale(shunt_ohm, self.range_of(range_code).step_v, self.bus_step_v)

    def times(self, settings: SensorSettings) -> ConversionTimes:
        """Nominal conversion times with these settings.

        Raises: BadInput: the chip does not have this ADC code, or the voltage would never be read again.
        """
        if settings.mode is Mode.SHUNTS and settings.bus_every == 0:
            raise BadInput("bus_every=0: the supply's voltage would be read only once; give 1 to 255, usually 128")
        shunt_us = self._time_us(settings.shunt_adc)
        if settings.mode is not Mode.PAIRS:
            return ConversionTimes(shunt_us, 0.0)
        # The chip uses the same averaging for both: the shunt's code decides, unless it sets none.
        averages = self.averages[settings.shunt_adc >> 3] if self.averages else 1
        return ConversionTimes(shunt_us, self._time_us(settings.bus_adc, averages), rounds=averages)

    def _time_us(self, code: int, averages: int = 1) -> float:
        if self.averages is None:
            if code not in self.conversion_us:
                there = f"available are {', '.join(map(str, self.conversion_us))}"
                raise BadInput(f"{self.name}: no ADC setting {code}; {there} ({self.codes_in_words})")
            return float(self.conversion_us[code])
        if not 0 <= code < len(self.averages) << 3:
            raise BadInput(f"{self.name}: no ADC setting {code}; {self.codes_in_words}")
        return float(self.conversion_us[code & 7]) * (averages if averages > 1 else self.averages[code >> 3])

    def error_bounds(
        self,
        range_code: int,
        seen_fraction: float,
        shunt: Shunt,
        *,
        genuine: bool = True,
        shunt_adc: int = SensorSettings.shunt_adc,
        bus_adc: int = SensorSettings.bus_adc,
    ) -> ErrorBounds:
        """Bounds as delivered, on this shunt, in the range of this code; `genuine`: False if it may be a copy."""
        chosen = self.range_of(range_code)
        of_data_sheet = self.bus_gain_error_max + self.bus_offset_max_v / SUPPLY_LEAST_V
        copied = self.copied and not genuine
        gains = {
            SHUNT: shunt.tolerance,
            COPPER: shunt.copper,
            TEMPERATURE: (shunt.per_k + CHIP_PER_K) * ROOM_K,
            CURRENT: self.gain_error_max,
            VOLTAGE: max(of_data_sheet, COPY_BUS_GAIN_ERROR_MAX) if copied else of_data_sheet,
        }
        return ErrorBounds(
            gain_errors_max={
                name: bound for name, bound in gains.items() if bound or name not in (COPPER, TEMPERATURE)
            },
            heating_max_per_a2=shunt.heating_max_per_a2,
            origins=_origins(shunt, self.name, copied=copied),
            current_offset_max_a=chosen.offset_max_v / shunt.ohm,
            current_step_a=chosen.step_v * self.coarse.get(shunt_adc, 1) / shunt.ohm,
            voltage_step_v=self.bus_step_v * self.coarse.get(bus_adc, 1),
            current_max_a=chosen.max_v / shunt.ohm,
            seen_fraction=seen_fraction,
            clock_error_max=RESONATOR_ERROR_MAX,
            shunt=shunt,
            model=self.name,
        )


def _origins(shunt: Shunt, name: str, *, copied: bool) -> dict[str, str]:
    """Source of each error bound."""
    ppm, data_sheet = 1e6 * shunt.per_k, f"data sheet of the {name}"
    copper = f"assumed: 0.5 milliohm of copper in series with {shunt.ohm:g} ohm, as kelvin=yes is not stated"
    return {
        SHUNT: shunt.origin,
        **({COPPER: copper} if shunt.copper else {}),
        TEMPERATURE: f"{ppm:g} ppm/K of the shunt and {1e6 * CHIP_PER_K:g} of the chip, within {ROOM_K:g} K",
        HEAT: f"{ppm:g} ppm/K of the shunt, {SHUNT_K_PER_W:g} K/W at most",
        CURRENT: data_sheet,
        VOLTAGE: f"copies of the {name}, as genuine=yes is not stated" if copied else data_sheet,
    }


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


_INA219_STEP_V: Final = 10e-6  # 8.6.3
_LIBRARY_BUS_END: Final = 4000
"""16 V: the bus range that the Arduino library sets together with 40 mV."""
ADC_CODES: Final = {"9": 0, "10": 1, "11": 2, "12": 3} | {f"mean{1 << power}": 8 + power for power in range(1, 8)}
"""Bits of one conversion, or `mean` and the number of averaged 12-bit conversions -> code (table 5)."""

INA219: Final = Chip(
    name="INA219",
    ranges=(  # PGA codes; offsets of the A grade, 25 degrees C (7.5)
        ShuntRange(0, 0.04, _INA219_STEP_V, 100e-6, 4000, library_bus_end=_LIBRARY_BUS_END),
        ShuntRange(1, 0.08, _INA219_STEP_V, 125e-6, 8000),
        ShuntRange(2, 0.16, _INA219_STEP_V, 150e-6, 16_000),
        ShuntRange(3, 0.32, _INA219_STEP_V, 200e-6, 32_000),
    ),
    bus_step_v=4e-3,  # 8.6.3
    bus_end=8000,  # 32 V
    gain_error_max=0.005,  # 7.5, A grade
    bus_gain_error_max=0.005,
    bus_offset_max_v=0.0,
    copied=True,
    conversion_us={  # table 5: 9 to 12 bit, then the mean of 2 to 128 conversions of 12 bit
        **{0: 84, 1: 148, 2: 276, 3: 532, 8: 532},
        **{9: 1060, 10: 2130, 11: 4260, 12: 8510, 13: 17020, 14: 34050, 15: 68100},
    },
    averages=None,
    codes_in_words="9 bit is 0, 12 bit is 3",
    coarse={0: 8, 1: 4, 2: 2},
    alone=SensorSettings(),
    sharing={2: SensorSettings(mode=Mode.PAIRS, shunt_adc=9, bus_adc=9)},  # 2 averages
)
"""TI data sheet SBOS448G."""

INA226: Final = Chip(
    name="INA226",
    ranges=(ShuntRange(0, 81.92e-3, 2.5e-6, 10e-6, 32_767),),  # SBOS547A, 7.6.2; offset: SBOS547B, 5.5
    bus_step_v=1.25e-3,  # SBOS547A, 7.6.3
    bus_end=32_767,  # 40.96 V
    gain_error_max=0.001,  # SBOS547B, 5.5
    bus_gain_error_max=0.001,
    bus_offset_max_v=7.5e-3,
    copied=True,
    conversion_us=dict(enumerate((140, 204, 332, 588, 1100, 2116, 4156, 8244))),  # SBOS547A, tables 7 and 8
    note="an INA226 of a cheap module may be a copy that reads the voltage 1.4 to 5.3 % high: compare it with a "
    "multimeter, or calibrate (docs/how-to/calibrate.md)",
    averages=(1, 4, 16, 64, 128, 256, 512, 1024),  # SBOS547A, table 6
    alone=SensorSettings(shunt_range=0),  # 588 us
    sharing={
        2: SensorSettings(mode=Mode.PAIRS, shunt_adc=4, bus_adc=3, shunt_range=0),
        3: SensorSettings(mode=Mode.PAIRS, shunt_adc=5, bus_adc=5, shunt_range=0),
    },
)
"""TI data sheets SBOS547A and B."""

_INA228_END: Final = 524_287  # 20 bit with sign

INA228: Final = Chip(
    name="INA228",
    ranges=(  # ADCRANGE (7.6.1.1); offset: page 1
        ShuntRange(1, 40.96e-3, 312.5e-9 / 4, 1e-6, _INA228_END),
        ShuntRange(0, 163.84e-3, 312.5e-9, 1e-6, _INA228_END),
    ),
    bus_step_v=195.3125e-6,  # 7.6.1
    bus_end=_INA228_END,
    gain_error_max=0.0005,  # page 1
    bus_gain_error_max=0.001,  # bus voltage: figures of the INA238, a lower grade
    bus_offset_max_v=5e-3,
    conversion_us=dict(enumerate((50, 84, 150, 280, 540, 1052, 2074, 4120))),  # table 7-6
    averages=(1, 4, 16, 64, 128, 256, 512, 1024),  # table 7-6
    alone=SensorSettings(shunt_adc=4, bus_adc=4, shunt_range=0),  # 540 us, 163.84 mV
    sharing={
        2: SensorSettings(mode=Mode.PAIRS, shunt_adc=5, bus_adc=5, shunt_range=0),
        3: SensorSettings(mode=Mode.PAIRS, shunt_adc=6, bus_adc=6, shunt_range=0),
    },
)
"""TI data sheet SLYS021A."""

_INA234_END: Final = 2047  # 8.1.1: 12 bit with sign
_INA234_OFFSET_V: Final = 100e-6  # 6.5

INA234: Final = replace(  # the registers and times of an INA226; its own times may be 5 % off (6.5)
    INA226,
    name="INA234",
    ranges=(  # ADCRANGE (table 7-4); steps: 6.5
        ShuntRange(1, 20.48e-3, 10e-6, _INA234_OFFSET_V, _INA234_END),
        ShuntRange(0, 81.92e-3, 40e-6, _INA234_OFFSET_V, _INA234_END),
    ),
    bus_step_v=25.6e-3,  # 6.5
    bus_end=_INA234_END,
    gain_error_max=0.005,  # 7.3.1
    bus_gain_error_max=0.005,  # assumed equal to the shunt voltage's
    bus_offset_max_v=15e-3,  # 6.5
    note="",
)
"""TI data sheet SBOS844C."""

_INA238_END: Final = 32_767

INA238: Final = replace(  # the registers and times of an INA228 with codes of 16 bit
    INA228,
    name="INA238",
    ranges=(ShuntRange(1, 40.96e-3, 1.25e-6, 5e-6, _INA238_END), ShuntRange(0, 163.84e-3, 5e-6, 5e-6, _INA238_END)),
    bus_step_v=3.125e-3,
    bus_end=_INA238_END,
    gain_error_max=0.001,
    bus_gain_error_max=0.001,
    bus_offset_max_v=5e-3,
)
"""TI data sheet SLYS025A."""

INA237: Final = replace(  # an INA238 of a lower grade
    INA238,
    name="INA237",
    ranges=(ShuntRange(1, 40.96e-3, 1.25e-6, 50e-6, _INA238_END), ShuntRange(0, 163.84e-3, 5e-6, 50e-6, _INA238_END)),
    gain_error_max=0.003,
    bus_gain_error_max=0.003,
    bus_offset_max_v=20e-3,
)
"""TI data sheet SBOSA20A."""

_INA260_OHM: Final = 0.002
_INA260_STEP_A, _INA260_OFFSET_A = 1.25e-3, 5e-3  # 8.6.2, page 1
_INA260_MOST_A: Final = 15.0  # 7.3; the register reaches to 40.96 A

INA260: Final = replace(  # the registers and times of an INA226; register 1 holds the current
    INA226,
    name="INA260",
    ranges=(
        ShuntRange(
            0,
            _INA260_MOST_A * _INA260_OHM,
            _INA260_STEP_A * _INA260_OHM,
            _INA260_OFFSET_A * _INA260_OHM,
            int(_INA260_MOST_A / _INA260_STEP_A),
        ),
    ),
    gain_error_max=0.0015,  # page 1: whole path, including its shunt
    own_shunt=Shunt(_INA260_OHM, 0.0, origin="inside the INA260", per_k=0.0, kelvin=True),
    copied=False,
    note="",
)
"""TI data sheet SBOS656C."""

_SQ52201_BUS_GAIN_ERROR_MAX: Final = 0.055
"""Modules sold as INA226 read the voltage 1.4 to 5.3 % high, but not the current.

Source: github.com/RobTillaart/INA226, issue 30; github.com/Zanduino/INA, issue 45.
"""
_SQ52201_GAIN_ERROR_MAX: Final = 0.01
"""Assumed: ten times the INA226's; users report no error of the current."""

SQ52201: Final = replace(
    INA226,
    name="SQ52201",
    gain_error_max=_SQ52201_GAIN_ERROR_MAX,
    bus_gain_error_max=_SQ52201_BUS_GAIN_ERROR_MAX,
    note="the sensor is not an INA226 but Silergy's SQ52201: users found its voltage up to 5.3 % high; the uncertainty "
    "includes this until the sensor is calibrated (docs/how-to/calibrate.md)",
)
"""Silergy SQ52201, sold on modules as "INA226"; its maker's data sheet is not public."""


def ina219_breakout(seen_fraction: float = 0.5) -> ErrorBounds:
    """A genuine INA219 on a marked shunt of 0.1 ohm, 1 %, sensed at its pads; uncalibrated, range of 320 mV."""
    return INA219.error_bounds(INA219.ranges[-1].code, seen_fraction, Shunt(0.1, 0.01, "", kelvin=True))


def chip_of(kind: ChipKind) -> Chip:
    """The chip that a meter's firmware has found. Raises: MeterFault: it found none."""
    if kind is ChipKind.NONE:
        raise MeterFault("the meter found no sensor at this address: check its wiring (VCC, GND, SDA, SCL)")
    chip: Chip = globals()[kind.name]
    return chip
