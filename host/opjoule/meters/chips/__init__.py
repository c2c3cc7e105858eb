"""The sensor chips: a file holds all that the host knows of one."""

from typing import Final

from opjoule.errors import MeterFault
from opjoule.meters.chips.chip import Chip
from opjoule.meters.chips.ina219 import INA219
from opjoule.meters.chips.ina226 import INA226
from opjoule.meters.chips.ina228 import INA228
from opjoule.meters.messages import ChipKind

_CHIPS: Final = {ChipKind.INA219: INA219, ChipKind.INA226: INA226, ChipKind.INA228: INA228}


def chip_of(kind: ChipKind) -> Chip:
    """The chip that a meter's firmware says it has found. Raises: MeterFault: it has found none."""
    if kind not in _CHIPS:
        raise MeterFault("the meter found no sensor at this address: check its wiring (VCC, GND, SDA, SCL)")
    return _CHIPS[kind]
