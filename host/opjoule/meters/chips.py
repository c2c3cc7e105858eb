"""The sensor chips: a value for each, under the chip's name in messages.toml, with all data of it.

docs/reference/sensors.md lists the facts that were checked against the data sheets.
"""

from dataclasses import replace
from typing import Final

from opjoule.base.errors import MeterFault
from opjoule.energy.error_bounds import ErrorBounds, Shunt
from opjoule.meters.chip import Chip, SensorSettings, ShuntRange
from opjoule.meters.messages import ChipKind, Mode

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
