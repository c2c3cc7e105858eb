"""INA228: TI data sheet SLYS021A; docs/reference/sensors.md lists the checked facts."""

from typing import Final

from opjoule.meters.chips.chip import Chip, SensorSettings, ShuntRange
from opjoule.meters.messages import Mode

_END: Final = 524_287  # 20 bit with sign

INA228: Final = Chip(
    name="INA228",
    ranges=(  # ADCRANGE (7.6.1.1); offset: page 1
        ShuntRange(1, 40.96e-3, 312.5e-9 / 4, 1e-6, _END),
        ShuntRange(0, 163.84e-3, 312.5e-9, 1e-6, _END),
    ),
    bus_step_v=195.3125e-6,  # 7.6.1
    bus_end=_END,
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
