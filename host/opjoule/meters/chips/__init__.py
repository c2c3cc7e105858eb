"""The sensor chips. Each file contains all data of one chip and has the chip's name from messages.toml."""

from importlib import import_module

from opjoule.base.errors import MeterFault
from opjoule.meters.chips.chip import Chip
from opjoule.meters.messages import ChipKind


def chip_of(kind: ChipKind) -> Chip:
    """The chip that a meter's firmware has found. Raises: MeterFault: it found none."""
    if kind is ChipKind.NONE:
        raise MeterFault("the meter found no sensor at this address: check its wiring (VCC, GND, SDA, SCL)")
    chip: Chip = getattr(import_module(f"opjoule.meters.chips.{kind.name.lower()}"), kind.name)
    return chip
