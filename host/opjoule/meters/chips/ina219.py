"""INA219: TI data sheet SBOS448G; docs/reference/sensors.md lists the checked facts."""

from typing import Final

from opjoule.energy.error_bounds import ErrorBounds, Shunt
from opjoule.meters.chips.chip import Chip, SensorSettings, ShuntRange
from opjoule.meters.messages import Mode

_STEP_V: Final = 10e-6  # 8.6.3
_LIBRARY_BUS_END: Final = 4000
"""16 V: the bus range that the Arduino library sets together with 40 mV."""
ADC_CODES: Final = {"9": 0, "10": 1, "11": 2, "12": 3} | {f"mean{1 << power}": 8 + power for power in range(1, 8)}
"""Bits of one conversion, or `mean` and the number of averaged 12-bit conversions -> code (table 5)."""

INA219: Final = Chip(
    name="INA219",
    ranges=(  # PGA codes; offsets of the A grade, 25 degrees C (7.5)
        ShuntRange(0, 0.04, _STEP_V, 100e-6, 4000, library_bus_end=_LIBRARY_BUS_END),
        ShuntRange(1, 0.08, _STEP_V, 125e-6, 8000),
        ShuntRange(2, 0.16, _STEP_V, 150e-6, 16_000),
        ShuntRange(3, 0.32, _STEP_V, 200e-6, 32_000),
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
    alone=SensorSettings(),
    sharing={2: SensorSettings(mode=Mode.PAIRS, shunt_adc=9, bus_adc=9)},  # 2 averages
)


def ina219_breakout(seen_fraction: float = 0.5) -> ErrorBounds:
    """A genuine INA219 on a marked shunt of 0.1 ohm, 1 %, sensed at its pads; uncalibrated, range of 320 mV."""
    return INA219.error_bounds(INA219.ranges[-1].code, seen_fraction, Shunt(0.1, 0.01, "", kelvin=True))
