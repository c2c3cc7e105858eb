"""The serial meter's row in the table of meters."""

from typing import Final

from opjoule.meters.chips.ina219 import ina219_breakout
from opjoule.meters.kinds import Address, MeterKind, ShuntOf, Wishes
from opjoule.meters.serial.meter import SerialMeter
from opjoule.meters.serial.options import (
    GENUINE,
    sensor_numbers,
    setting_changes,
    shunts,
    split_options,
    yes_or_no,
)


def _serial(address: Address, wishes: Wishes) -> SerialMeter:
    sensors = sensor_numbers(address.options)
    resistors = shunts(address.options, wishes.stated_in)
    genuine = yes_or_no(GENUINE, address.options)
    changes = setting_changes(address.options)
    return SerialMeter(
        address.needed_place(),
        settings=wishes.settings,
        changes=changes,
        sensors=sensors,
        shunts=resistors,
        genuine=genuine,
        clock=wishes.clock,
    )


KIND: Final = MeterKind(
    name="serial",
    written="serial:PORT, for example serial:/dev/ttyACM0 or serial:/dev/ttyACM0,shunt=0.02,shunt_tolerance=0.5%",
    make=_serial,
    samples="see the firmware",
    sync_input="yes, 0.5 µs",
    runs_on="a microcontroller",
    # 46.5 mA at 5 V, an Arduino Uno R3 without load (gadgetmakersblog.com, "Arduino power consumption").
    draw="about 0.25 W for an Arduino Uno, unknown for other boards",
    on_serial_port=True,
    shunt_of=ShuntOf.USER,
    split=split_options,
    imports={"ina219": ina219_breakout},
)
