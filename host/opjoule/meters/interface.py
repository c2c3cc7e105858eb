"""The interface of every meter, open, configure, start, read events, stop, close; and its kind, a row of a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Final, Protocol

import msgspec
import numpy as np
from msgspec import Meta

from opjoule.base.errors import BadInput, MeterFault
from opjoule.base.notices import Notice
from opjoule.base.settings import as_struct
from opjoule.clocks.exchanges import Exchange
from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Gap, Int64Array
from opjoule.meters.chips import SensorSettings

LOAD_SIDE = "at the board's side of the shunt"
"""Point at which an INA2xx reads the bus voltage: IN- of an INA219; VBUS of an INA226 or INA228, wired there."""


class MeterGone(MeterFault):
    """The meter disappeared in mid-run: cable pulled, supply lost, or the simulator ended."""


class InputEnded(MeterFault):
    """A simulated meter has played its input to the end. This is no fault, but no more samples will come."""


@dataclass(frozen=True)
class SensorIdentity:
    """One sensor that the meter found."""

    model: str
    address: int


@dataclass(frozen=True)
class MeterIdentity:
    """The meter that answered, for the run record."""

    kind: str
    """for example 'serial'"""
    place: str
    """port or address"""
    board: str
    tick_hz: int
    sensors: tuple[SensorIdentity, ...] = ()
    serial_number: str = ""
    """empty if the hardware has none"""
    protocol_version: int = 0
    firmware_version: str = ""
    reset_cause: str = ""
    notes: tuple[str, ...] = ()
    """limits and costs of the meter, one line each, for doctor and the run record"""
    notices: tuple[Notice, ...] = ()
    """what makes its readings doubtful"""
    voltage_at: str = ""
    """point at which the meter reads the voltage, in words; empty if it does not measure the voltage"""
    simulated: bool = False
    """a program is at the other end, not a meter; its results are marked SIMULATED"""


@dataclass(frozen=True)
class Samples:
    """Consecutive conversions of one sensor, none missing between them."""

    sensor: int
    """0: the sensor in the board's supply; other numbers: further sensors of the same meter"""
    meter_ns: Int64Array
    """centre of each current conversion [ns], int64, shape (n,), increasing"""
    current_a: Float64Array
    voltage_v: Float64Array
    clipped: BoolArray = field(default_factory=lambda: np.zeros(0, np.bool_))
    """True at the end of the meter's range, where the true power may be higher; all False if not given"""
    voltage_ended: int = 0
    """number of samples with the voltage at the end of its range; another shunt does not help there"""

    def __post_init__(self) -> None:
        if not self.clipped.size:
            object.__setattr__(self, "clipped", np.zeros(self.meter_ns.shape, np.bool_))


@dataclass(frozen=True)
class GapEvent:
    """Conversions that were made but did not arrive. The event comes before the samples after the gap."""

    sensor: int
    gap: Gap


@dataclass(frozen=True)
class BusReading:
    """A voltage conversion between two samples, from a meter that does not convert the voltage with each current."""

    sensor: int
    meter_ns: int
    """end of the conversion"""
    voltage_v: float


@dataclass(frozen=True)
class EdgeEvent:
    """One edge of the sync line; each index comes once, in order."""

    meter_ns: int
    level: int
    index: int


@dataclass(frozen=True)
class FaultEvent:
    """A fault counted by the meter or by the decoder of its frames."""

    name: str
    count: int
    """occurrences of this fault since the meter's start"""
    meter_ns: int
    sensor: int | None = None


MeterEvent = Samples | GapEvent | BusReading | EdgeEvent | FaultEvent | Exchange
"""Events that `read` returns. An Exchange has the host as its near clock and the meter as its far one."""


@dataclass
class Losses:
    """Losses since start, on the line and in the meter."""

    lost_samples: int = 0
    """conversions that did not arrive"""
    recovered_samples: int = 0
    """lost samples whose sum is known"""
    lost_edges: int = 0
    link: dict[str, int] = field(default_factory=dict)
    """counts of the line: frames, bad frames by cause, lost frames"""
    faults: dict[str, int] = field(default_factory=dict)
    """the meter's own counters that are above 0"""


class Meter(Protocol):
    """A power meter. Use it from one thread at a time, and call `read` at least every 0.2 s while it runs.

    Every method except `close` raises MeterFault, with the remedy, if the meter does not do as asked, and MeterGone
    once the meter has disappeared.
    """

    def open(self) -> MeterIdentity:
        """Connects, and asks the meter for its identity."""

    def configure(self) -> None:
        """Applies the meter's settings, if it has any. Only allowed while the meter is not running."""
        return

    def start(self) -> None:
        """Starts sampling; indexes begin at 0."""

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call, in order; waits up to `timeout_s` for the first."""

    def clock_exchange(self) -> None:
        """Begins a round trip. `read` returns its result as an Exchange, unless the answer is lost."""
        return

    def stop(self) -> list[MeterEvent]:
        """Stops sampling. Returns the events that were still on their way, up to the last conversion."""

    def close(self) -> None:
        """Releases the port, if it has one; may be called twice."""
        return

    def error_bounds(self) -> ErrorBounds:
        """Error bounds of the measured current and voltage; known once the meter is open."""

    def further_error_bounds(self) -> dict[int, ErrorBounds]:
        """Number (from 1) -> error bounds of each further sensor that an open meter records."""
        return {}

    @property
    def losses(self) -> Losses:
        """Losses since start."""


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
