"""The kinds of meter, and which one a name like serial:/dev/ttyACM0 means."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import BadInput
from opjoule.meters import fnirsi, joulescope, ppk2
from opjoule.meters.interface import Meter, MeterIdentity
from opjoule.meters.kinds import Address, MeterKind, Wishes
from opjoule.meters.monsoon import meter as monsoon
from opjoule.meters.polled import hwmon, km003c, pmic, rapl
from opjoule.meters.serial import meter as serial
from opjoule.meters.serial.options import sensor_numbers
from opjoule.meters.storage_meter import WithStorageMeter

_ROWS: Final = (
    serial.KIND,
    monsoon.KIND,
    ppk2.KIND,
    joulescope.KIND,
    km003c.KIND,
    fnirsi.KIND,
    rapl.KIND,
    hwmon.KIND,
    pmic.KIND,
)
"""One row a kind; each stands in the file of its meter."""
_NO_WISHES: Final = Wishes()
KINDS: Final[Mapping[str, MeterKind]] = {kind.name: kind for kind in _ROWS}


def known_kinds() -> str:
    """Syntax of every meter's name, for an error that lists them."""
    return "; ".join(kind.written for kind in KINDS.values())


def address_of(name: str) -> Address:
    """A meter's name, KIND[:PLACE][,KEY=VALUE...], taken apart. Raises: BadInput: unknown kind; option without '='."""
    word, _, rest = name.partition(":")
    kind = KINDS.get(word)
    if kind is None:
        raise BadInput(f"meter '{name}': unknown kind '{word}'; there is {known_kinds()}")
    return Address(name, kind, *kind.split(rest))


def open_meter(name: str, wishes: Wishes = _NO_WISHES) -> Meter:
    """The meter of this name, KIND[:PLACE][,KEY=VALUE...], not yet connected.

    Raises: BadInput: an unknown kind, no place where one is needed, or an option that is unknown or impossible.
    """
    address = address_of(name)
    address.take_label()
    meter = address.kind.make(address, wishes)
    if address.options:
        unused, written = next(iter(address.options)), address.kind.written
        raise BadInput(f"meter '{name}': unknown option '{unused}'; write {written}")
    return meter


def open_meters(name: str, storage: str | None, wishes: Wishes = _NO_WISHES) -> Meter:
    """The board's meter, together with one in its medium's supply where `storage` names one; else as open_meter().

    Raises: BadInput: as open_meter(); both names are the same, or that of the medium's meter supplies it.
    """
    board = open_meter(name, wishes)
    if storage is None:
        return board
    if storage == name:
        raise BadInput(f"--storage-meter {storage} is the board's meter, too: name another one")
    return WithStorageMeter(board, open_meter(storage), address_of(storage).kind.stamp_width_ns)


def sensor_ids(name: str, identity: MeterIdentity) -> tuple[str, ...]:
    """Names of the sensors that a meter records, in their order: its label, else its own serial number.

    The chips of a serial meter have their addresses behind its label. Its own number is the controller's: other
    breakouts may be plugged to it, and an ATmega328P's is documented for its successor alone (DS40001906C, 32.5).

    Returns: empty strings where neither is known.
    Raises: BadInput: as open_meter().
    """
    address = address_of(name)
    label = address.take_label()
    if address.kind is serial.KIND:
        places = sensor_numbers(address.options)
        return tuple(label and f"{label}@0x{identity.sensors[place].address:02x}" for place in places)
    number = re.sub(r"[^A-Za-z0-9_.-]", "-", identity.serial_number)
    return (label or (f"{address.kind.name}-{number}" if number else ""),)


def import_sensors() -> dict[str, Callable[[], ErrorBounds]]:
    """--sensor NAME of `measure.py import` -> error bounds."""
    return {name: bounds for kind in KINDS.values() for name, bounds in kind.imports.items()}


def usual_sensors() -> dict[str, str]:
    """Format of an imported file -> the sensor that is taken for it."""
    return {form: name for kind in KINDS.values() for form, name in kind.import_formats.items()}
