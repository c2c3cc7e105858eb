"""A kind of meter: one row of the registry's table, defined in the meter's own file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from opjoule.base.errors import BadInput
from opjoule.base.settings import as_struct
from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.meters.chips.chip import SensorSettings
from opjoule.meters.interface import Meter

LABEL: Final = "label"


class MeterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options after a meter's name, KEY=VALUE; a meter with further ones has a struct of its own."""

    label: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,47}$",
            description="letters, digits, '.', '_' and '-', at most 48, for example bench-1",
        ),
    ] = ""
    """The user's name of the meter or its sensor; empty if none is given."""


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
    """Makes the meter, not yet connected. Raises: BadInput: its options contradict each other."""
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
    options: type[MeterOptions] = MeterOptions
    """the options after its name"""
    imports: Mapping[str, Callable[[], ErrorBounds]] = field(default_factory=dict)
    """--sensor NAME of `measure.py import` -> error bounds of the device that recorded the file"""
    import_formats: Mapping[str, str] = field(default_factory=dict)
    """format of a file (energy/trace/imported/formats.py) -> default NAME for it"""

    def address(self, rest: str) -> "Address":
        """The parts of the text after `KIND:`. The first one is a place unless it is KEY=VALUE.

        Raises: BadInput: another part is not an option of this kind, or has an impossible value.
        """
        place, *parts = rest.split(",")
        if "=" in place and not place.startswith("/"):
            place, parts = "", [place, *parts]
        name = f"{self.name}:{rest}" if rest else self.name
        given = {key.strip(): value.strip() for key, _, value in (part.partition("=") for part in parts)}
        try:
            options = as_struct(given, self.options, f"meter '{name}':", texts=True)
        except BadInput as error:
            raise BadInput(f"{error}; write {self.written}") from None
        return Address(name, self, place, options)


@dataclass(frozen=True)
class Address:
    """The parts of a meter's name."""

    name: str
    kind: MeterKind
    place: str
    options: Any
    """A value of the kind's `options`."""

    def needed_place(self) -> str:
        """The place. Raises: BadInput: the name has none."""
        if not self.place:
            raise BadInput(f"meter '{self.name}': no port; write {self.kind.written}")
        return self.place
