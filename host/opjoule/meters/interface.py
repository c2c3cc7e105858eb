"""The interface of every meter: open, configure, start, read events, stop, close."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from opjoule.clocks.exchanges import Exchange
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import MeterFault
from opjoule.trace.power_trace import BoolArray, Float64Array, Gap, Int64Array

LOAD_SIDE = "at the board's side of the shunt"
"""Where an INA2xx reads the bus voltage: an INA219 at IN-, an INA226 or INA228 at VBUS, which is wired there."""


class MeterGone(MeterFault):
    """The meter disappeared in mid-run: cable pulled, supply lost, or the simulator ended."""


class InputEnded(MeterFault):
    """A simulated meter has played its input to the end: no fault, but nothing more will come."""


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
    """its limits and what it costs, a line each, for doctor and the run record"""
    voltage_at: str = ""
    """where it reads the voltage, in words; empty for a meter that does not measure it"""
    simulated: bool = False
    """a program is at the other end, not a meter: what comes of it says SIMULATED"""


@dataclass(frozen=True)
class Samples:
    """Consecutive conversions of one sensor, none missing between them."""

    sensor: int
    """0: of the board's supply; others are further sensors of the same meter"""
    meter_ns: Int64Array
    """centre of each current conversion [ns], int64, shape (n,), increasing"""
    current_a: Float64Array
    voltage_v: Float64Array
    clipped: BoolArray = field(default_factory=lambda: np.zeros(0, np.bool_))
    """True at the end of the meter's range, where the true power was that or more; all False if not given"""
    voltage_ended: int = 0
    """how many of them have a voltage at the end of its range: no other shunt helps there"""

    def __post_init__(self) -> None:
        if not self.clipped.size:
            object.__setattr__(self, "clipped", np.zeros(self.meter_ns.shape, np.bool_))


@dataclass(frozen=True)
class GapEvent:
    """Conversions that were made and did not arrive; comes before the samples that follow."""

    sensor: int
    gap: Gap


@dataclass(frozen=True)
class BusReading:
    """A conversion of the voltage between two samples, of a meter that does not convert it with each current."""

    sensor: int
    meter_ns: int
    """its end"""
    voltage_v: float


@dataclass(frozen=True)
class EdgeEvent:
    """One edge of the sync line; each index comes once, in order."""

    meter_ns: int
    level: int
    index: int


@dataclass(frozen=True)
class FaultEvent:
    """A fault that the meter, or the decoder of its frames, has counted."""

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
    """... of which the sum is known"""
    lost_edges: int = 0
    link: dict[str, int] = field(default_factory=dict)
    """counts of the line: frames, bad ones by cause, lost ones"""
    faults: dict[str, int] = field(default_factory=dict)
    """the meter's own counters, those above 0"""


def further_sensors(meter: Any) -> dict[int, ErrorBounds]:
    """Number, from 1 -> error bounds of each further sensor that an open meter records; empty for one that has none."""
    return meter.further_error_bounds() if hasattr(meter, "further_error_bounds") else {}


class Meter(Protocol):
    """A power meter. One thread at a time; `read` is called at least each 0.2 s while it runs.

    Every method raises MeterFault, with the remedy, if the meter does not do as asked, and MeterGone once it
    has disappeared; `close` never raises.
    """

    def open(self) -> MeterIdentity:
        """Connects, and asks the meter who it is."""

    def configure(self) -> None:
        """Brings the meter's settings into effect, if it has any; only while it is not running."""
        return

    def start(self) -> None:
        """Starts sampling; indexes begin at 0."""

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call, in order; waits up to `timeout_s` for the first."""

    def clock_exchange(self) -> None:
        """Begins a round trip; its result comes from `read` as an Exchange, unless it is lost."""
        return

    def stop(self) -> list[MeterEvent]:
        """Stops sampling; gives the events that were still on their way, to the last conversion."""

    def close(self) -> None:
        """Releases the port, if it has one; may be called twice."""
        return

    def error_bounds(self) -> ErrorBounds:
        """Error bounds of what it measures; once it is open."""

    @property
    def losses(self) -> Losses:
        """Losses since start."""
