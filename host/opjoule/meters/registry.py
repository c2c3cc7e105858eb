"""The kinds of meter, and the lookup of a name like serial:/dev/ttyACM0."""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.meters.interface import Address, Meter, MeterIdentity, MeterKind, Wishes
from opjoule.meters.medium_meter import WithMediumMeter
from opjoule.meters.serial import meter as serial

_NO_WISHES: Final = Wishes()


def _kinds() -> Mapping[str, MeterKind]:
    """Name -> kind, in alphabetical order after the serial meter: the KIND of each file here that defines one.

    The files' text tells which do, so that no other module is loaded when a command starts.
    """
    folder = Path(__file__).parent
    files = [
        path for path in (*folder.glob("*.py"), *folder.glob("*/*.py")) if "\nKIND: Final" in path.read_text("utf-8")
    ]
    modules = (".".join(path.relative_to(folder).with_suffix("").parts) for path in files)
    found: list[MeterKind] = [import_module(f"opjoule.meters.{module}").KIND for module in modules]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: (kind.name != "serial", kind.name))}


KINDS: Final = _kinds()


def known_kinds() -> str:
    """Syntax of every meter's name, for an error message that lists them."""
    return "; ".join(kind.written for kind in KINDS.values())


def address_of(name: str) -> Address:
    """The parts of a meter's name, KIND[:PLACE][,KEY=VALUE...]. Raises: BadInput: unknown kind or option."""
    word, _, rest = name.partition(":")
    kind = KINDS.get(word)
    if kind is None:
        raise BadInput(f"meter '{name}': unknown kind '{word}'; known are {known_kinds()}")
    return kind.address(rest)


def open_meter(name: str, wishes: Wishes = _NO_WISHES) -> Meter:
    """The meter with this name, KIND[:PLACE][,KEY=VALUE...], not yet connected.

    Raises: BadInput: the kind is unknown, a required place is missing, or an option is unknown or impossible.
    """
    address = address_of(name)
    return address.kind.make(address, wishes)


def open_meters(name: str, medium: str | None, wishes: Wishes = _NO_WISHES) -> Meter:
    """The board's meter, with a second one in the medium's supply if `medium` names one; else as open_meter().

    Raises: BadInput: as open_meter(), or both names are the same.
    """
    board = open_meter(name, wishes)
    if medium is None:
        return board
    if medium == name:
        raise BadInput(f"--storage-meter {medium} is also the board's meter: name another one")
    return WithMediumMeter(board, open_meter(medium), address_of(medium).kind.stamp_width_ns)


def sensor_ids(name: str, identity: MeterIdentity) -> tuple[str, ...]:
    """Names of the sensors that a meter records, in order: the meter's label, else its own serial number.

    The name of a serial meter's chip is the label and the chip's address. The serial number is not used there: it
    belongs to the controller, to which other breakouts may be connected, and the number of an ATmega328P is documented
    only for its successor (DS40001906C, 32.5).

    Returns: empty strings if neither is known.
    Raises: BadInput: as open_meter().
    """
    address = address_of(name)
    label = address.options.label
    if address.kind is serial.KIND:
        places = address.options.sensors
        return tuple(label and f"{label}@0x{identity.sensors[place].address:02x}" for place in places)
    number = re.sub(r"[^A-Za-z0-9_.-]", "-", identity.serial_number)
    return (label or (f"{address.kind.name}-{number}" if number else ""),)


def import_sensors() -> dict[str, Callable[[], ErrorBounds]]:
    """--sensor NAME of `measure.py import` -> error bounds."""
    return {name: bounds for kind in KINDS.values() for name, bounds in kind.imports.items()}


def usual_sensors() -> dict[str, str]:
    """Format of an imported file -> its default sensor."""
    return {form: name for kind in KINDS.values() for form, name in kind.import_formats.items()}
