"""The kinds of meter, the lookup of a name like serial:/dev/ttyACM0, and a second meter in the medium's supply.

A second meter is recorded as a further sensor of the board's meter. Each meter has a clock of its own. The times of the
second meter's samples are mapped to the host's clock, and from there to the first meter's clock, by the exchanges of
time stamps of both meters.
"""

import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.base.errors import BadInput
from opjoule.base.settings import MEDIUM
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.error_bounds import SQRT3, ErrorBounds
from opjoule.energy.trace.power_trace import Float64Array, Int64Array
from opjoule.meters.interface import (
    Address,
    FaultEvent,
    GapEvent,
    Losses,
    Meter,
    MeterEvent,
    MeterIdentity,
    MeterKind,
    Samples,
    Wishes,
)
from opjoule.meters.serial import meter as serial

EXCHANGES_KEPT: Final = 300
"""One minute of exchanges. Within it, a warming resonator drifts by less than the uncertainty of its stamps."""
EXCHANGES_LEAST: Final = 5
FASTEST: Final = 0.3
"""Part of the exchanges to which the line is fitted: those with the shortest round trips."""
HELD_S: Final = 0.02
"""Longest wait for the board's meter while the second one may have events."""


class LiveClock:
    """A meter's clock against the host's, fitted to the latest exchanges."""

    def __init__(self) -> None:
        self._stamps: deque[tuple[int, int, int]] = deque(maxlen=EXCHANGES_KEPT)
        self._line: tuple[float, float, float] | None = None
        """(rate of meter over host, host_ns and meter_ns at the same time)"""

    @property
    def known(self) -> bool:
        """True once there are enough exchanges for a line."""
        return len(self._stamps) >= EXCHANGES_LEAST

    def take(self, exchange: Exchange) -> None:
        """Takes one more exchange between host (near) and meter (far)."""
        host_ns = (exchange.sent_ns + exchange.received_ns) // 2
        far_ns = (exchange.far_received_ns + exchange.far_sent_ns) // 2
        self._stamps.append((host_ns, far_ns, exchange.round_trip_ns))
        self._line = None

    def to_host(self, meter_ns: Int64Array) -> Float64Array:
        """Times of the meter's clock on the host's clock [ns], same shape; only once `known`."""
        rate, host_ns, far_ns = self._fitted()
        return np.asarray(host_ns + (meter_ns - far_ns) / rate, np.float64)

    def from_host(self, host_ns: Float64Array) -> Int64Array:
        """Times of the host's clock on the meter's clock [ns], same shape; only once `known`."""
        rate, near_ns, far_ns = self._fitted()
        return np.asarray(np.rint(far_ns + (host_ns - near_ns) * rate), np.int64)

    def _fitted(self) -> tuple[float, float, float]:
        if self._line is None:
            host_ns, far_ns, trip_ns = np.array(self._stamps, np.float64).T
            fast = trip_ns <= np.quantile(trip_ns, FASTEST)
            host_ns, far_ns = host_ns[fast], far_ns[fast]
            middle, far = float(host_ns.mean()), float(far_ns.mean())
            spread = float(np.sum((host_ns - middle) ** 2))
            slope = float(np.sum((host_ns - middle) * (far_ns - far))) / spread if spread else 1.0
            self._line = (slope, middle, far) if 0.9 < slope < 1.1 else (1.0, middle, far)
        return self._line


class WithMediumMeter(Meter):
    """The board's meter with a second one for its medium; see Meter for the contract."""

    def __init__(self, board: Meter, medium: Meter, stamp_width_ns: float) -> None:
        """`board`, `medium`: meters that are not open yet; `stamp_width_ns`: as in MeterKind, of the second meter."""
        self._board, self._medium, self._stamp_width_ns = board, medium, stamp_width_ns
        self._medium_id = ""
        self._clocks = LiveClock(), LiveClock()
        self._held: list[MeterEvent] = []
        self._last_ns: int | None = None

    @property
    def number(self) -> int:
        """Number of the medium's sensor among the recorded ones; known once the meters are open."""
        return 1 + max(self._board.further_error_bounds(), default=0)

    def open(self) -> MeterIdentity:
        """Connects both. Raises: MeterFault: as the meters do."""
        try:
            first, second = self._board.open(), self._medium.open()
        except BaseException:
            self.close()
            raise
        if second.serial_number:
            self._medium_id = f"{second.kind}-{second.serial_number}"
        return replace(
            first,
            sensors=first.sensors + second.sensors,
            simulated=first.simulated or second.simulated,
            notices=(*first.notices, *second.notices),
            notes=(*first.notes, *(f"storage meter: {note}" for note in (second.board, *second.notes))),
        )

    def configure(self) -> None:
        """Configures both."""
        self._board.configure()
        self._medium.configure()

    def start(self) -> None:
        """Starts both."""
        self._clocks, self._held, self._last_ns = (LiveClock(), LiveClock()), [], None
        self._medium.start()
        self._board.start()

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events of both meters since the last call. Raises: MeterFault: as the meters do."""
        events = self._board.read(min(timeout_s, HELD_S))
        self._learn(self._clocks[0], events)
        return events + self._from_medium(self._medium.read(0.001))

    def clock_exchange(self) -> None:
        """Begins a round trip with each."""
        self._board.clock_exchange()
        self._medium.clock_exchange()

    def stop(self) -> list[MeterEvent]:
        """Stops both. Events that waited for a clock map are returned now, or lost."""
        events = self._board.stop()
        self._learn(self._clocks[0], events)
        return events + self._from_medium(self._medium.stop())

    def close(self) -> None:
        """Releases both."""
        self._medium.close()
        self._board.close()

    def error_bounds(self) -> ErrorBounds:
        """Bounds of the board's meter."""
        return self._board.error_bounds()

    def further_error_bounds(self) -> dict[int, ErrorBounds]:
        """Bounds of the further sensors of the board's meter, and of the medium's meter."""
        bounds = self._medium.error_bounds()
        stamp_u_ns = math.hypot(bounds.stamp_u_ns, self._stamp_width_ns / 2 / SQRT3)
        bounds = replace(bounds, sensor_id=self._medium_id, stamp_u_ns=stamp_u_ns)
        return {**self._board.further_error_bounds(), self.number: bounds}

    @property
    def losses(self) -> Losses:
        """Losses of the board's meter. The second meter's counts have names that begin with `storage_`."""
        first, second = self._board.losses, self._medium.losses
        others = {"lost_samples": second.lost_samples, **second.link, **second.faults}
        named = {f"{MEDIUM}_{name}": count for name, count in others.items()}
        return replace(first, link={**first.link, **named})

    @staticmethod
    def _learn(clock: LiveClock, events: Sequence[MeterEvent]) -> None:
        for event in events:
            if isinstance(event, Exchange):
                clock.take(event)

    def _from_medium(self, events: Sequence[MeterEvent]) -> list[MeterEvent]:
        """The second meter's events on the first meter's clock, as soon as both clocks are known."""
        self._learn(self._clocks[1], events)
        self._held += [event for event in events if isinstance(event, Samples | GapEvent | FaultEvent)]
        if not all(clock.known for clock in self._clocks):
            return []
        held, self._held = self._held, []
        return [placed for event in held if (placed := self._placed(event)) is not None]

    def _placed(self, event: MeterEvent) -> MeterEvent | None:
        """One event on the first meter's clock; None for an event of a further sensor of the second meter."""
        if isinstance(event, Samples) and event.sensor == 0:
            meter_ns = self._onto(event.meter_ns)
            if self._last_ns is not None:  # a new line may give slightly earlier times than the one before
                meter_ns = np.maximum(meter_ns, self._last_ns + 1 + np.arange(meter_ns.size))
            self._last_ns = int(meter_ns[-1])
            return replace(event, sensor=self.number, meter_ns=meter_ns)
        if isinstance(event, GapEvent) and event.sensor == 0:
            ends = self._onto(np.array([event.gap.start_meter_ns, event.gap.end_meter_ns], np.int64))
            gap = replace(event.gap, start_meter_ns=int(ends[0]), end_meter_ns=int(ends[1]))
            return GapEvent(self.number, gap)
        if isinstance(event, FaultEvent):
            (meter_ns,) = self._onto(np.array([event.meter_ns], np.int64)).tolist()
            return FaultEvent(f"{MEDIUM}_{event.name}", event.count, meter_ns, self.number)
        return None

    def _onto(self, medium_ns: Int64Array) -> Int64Array:
        board, medium = self._clocks
        return board.from_host(medium.to_host(medium_ns))


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
