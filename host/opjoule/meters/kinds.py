"""A kind of meter: one row of the registry's table, defined in the meter's own file."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from opjoule.base.errors import BadInput, suggestion
from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.meters.chips.chip import SensorSettings
from opjoule.meters.interface import Meter

LABEL: Final = "label"
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,47}")


class ShuntOf(Enum):
    """The source of the shunt: built into the meter, or chosen by the user."""

    USER = "the user, by shunt= after the meter's name"
    DRIVER = "the kernel's driver, read when the meter is opened"
    METER = "the meter's maker"


@dataclass(frozen=True)
class Wishes:
    """The context in which a meter is opened, beyond its name."""

    settings: SensorSettings | None = None
    """serial: how its sensor converts; None: the settings that suit controller and chip"""
    supply_v: tuple[float, float] | None = None
    """minimum and maximum supply voltage of the board [V], for meters that supply it"""
    stated_in: str = "the meter's name"
    """where the user wrote the name"""
    clock: HostClock = MONOTONIC
    """serial: the clock used for timing"""


@dataclass(frozen=True)
class MeterKind:
    """One row of the table of meters (registry.KINDS)."""

    name: str
    """the word before ':' in --meter"""
    written: str
    """syntax of the meter's name, for errors and --help"""
    make: Callable[["Address", Wishes], Meter]
    """Makes the meter, not yet connected, and takes the options that it knows out of the address. Raises: BadInput."""
    samples: str
    """samples a second, and their kind"""
    runs_on: str
    needs: str = ""
    """software that has to be installed for it"""
    sync_input: str = ""
    """input for the board's sync line, and its resolution; empty: none"""
    draw: str | None = None
    """power that it takes from the computer it is plugged into, in words; None: it is not on a cable"""
    on_serial_port: bool = False
    """its place is a serial port, which another program may have open"""
    states_voltage: bool = False
    """`voltage=` after its name is the voltage of the board's supply"""
    stamp_width_ns: float = 1e6
    """width of the interval in which the host knows a sample was measured [ns]"""
    shunt_of: ShuntOf = ShuntOf.METER
    options: tuple[str, ...] = ()
    """keys of the options after its name, besides the label"""
    imports: Mapping[str, Callable[[], ErrorBounds]] = field(default_factory=dict)
    """--sensor NAME of `measure.py import` -> error bounds of the device that recorded the file"""
    import_formats: Mapping[str, str] = field(default_factory=dict)
    """format of a file (energy/trace/imported/formats.py) -> default NAME for it"""

    def split(self, rest: str) -> tuple[str, dict[str, str]]:
        """(place, options) from the text after `KIND:`. The first part is a place unless it is KEY=VALUE.

        Raises: BadInput: another part is not an option of this kind; names a similar one.
        """
        place, *parts = rest.split(",")
        if "=" in place and not place.startswith("/"):
            place, parts = "", [place, *parts]
        known, options = (*self.options, LABEL), {}
        for part in parts:
            key, equals, value = (word.strip() for word in part.partition("="))
            if not equals or key not in known:
                listed = ", ".join(f"{one}=" for one in known)
                hint = suggestion(key, known)
                raise BadInput(f"meter option '{part}': {hint}known are {listed}; write {self.written}")
            options[key] = value
        return place, options


@dataclass(frozen=True)
class Address:
    """The parts of a meter's name."""

    name: str
    kind: MeterKind
    place: str
    options: dict[str, str]

    def needed_place(self) -> str:
        """The place. Raises: BadInput: the name has none."""
        if not self.place:
            raise BadInput(f"meter '{self.name}': no port; write {self.kind.written}")
        return self.place

    def take(self, key: str) -> str | None:
        """Takes an option out of the address and returns its value; None if it is not given."""
        return self.options.pop(key, None)

    def take_number(self, key: str) -> float | None:
        """Takes an option that is a number. Raises: BadInput: it is not one."""
        text = self.take(key)
        try:
            return None if text is None else float(text)
        except ValueError:
            raise BadInput(f"meter '{self.name}': {key}={text} is not a number") from None

    def take_label(self) -> str:
        """Takes the user's label of the meter out of the options; empty if none is given. Raises: BadInput."""
        label = self.take(LABEL) or ""
        if label and not _LABEL.fullmatch(label):
            raise BadInput(
                f"meter '{self.name}': {LABEL}={label}: letters, digits, '.', '_' and '-', at most 48, for example "
                f"{LABEL}=bench-1"
            )
        return label
