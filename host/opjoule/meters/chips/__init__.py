"""The sensor chips: a file holds all that the host knows of one."""

from typing import Final

from opjoule.errors import MeterFault
from opjoule.meters.chips.chip import Chip
from opjoule.meters.chips.ina219 import INA219
from opjoule.meters.chips.ina226 import INA226
from opjoule.meters.chips.ina228 import INA228
from opjoule.meters.chips.ina237 import INA237, INA238
from opjoule.meters.chips.ina260 import INA260
from opjoule.meters.chips.sq52201 import SQ52201
from opjoule.meters.messages import ChipKind

_CHIPS: Final = {
    ChipKind.INA219: INA219,
    ChipKind.INA226: INA226,
    ChipKind.INA228: INA228,
    ChipKind.SQ52201: SQ52201,
    ChipKind.INA237: INA237,
    ChipKind.INA238: INA238,
    ChipKind.INA260: INA260,
}


def chip_of(kind: ChipKind) -> Chip:
    """The chip that a meter's firmware says it has found. Raises: MeterFault: it has found none."""
    if kind not in _CHIPS:
        raise MeterFault("the meter found no sensor at this address: check its wiring (VCC, GND, SDA, SCL)")
    return _CHIPS[kind]
