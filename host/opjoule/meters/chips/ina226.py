"""INA226: TI data sheets SBOS547A and B; docs/reference/sensors.md lists the checked facts."""

from typing import Final

from opjoule.meters.chips.chip import Chip, SensorSettings, ShuntRange
from opjoule.meters.messages import Mode

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
