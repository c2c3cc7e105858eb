"""Monsoon's 64-byte packets, many at once, and the events that they become: timed samples, gaps, and exchanges.

    byte 0-1   samples dropped since start, uint16 little endian, wraps
    byte 2     bits 0-3: number of the packet modulo 16; 4: overcurrent or thermal kill; 5: main output at voltage
    byte 3     observations in this packet, 1 to 3
    byte 4-57  three observations of 18 bytes; unused ones are padding

An observation: main coarse, main fine, USB coarse, USB fine, aux coarse, aux fine, main voltage, USB voltage, each
16 bits big endian; a byte of gain and marker bits; a byte whose bits 4 and 5 state what was converted.
Source: PyMonsoon 0.1.88 (swizzlePacket, SampleEngine) and the vendor's API document (table 1); the code is this
project's own.

Calibration samples that the device inserts convert raw values to amperes and volts; they and losses are gaps. Exchanges
come from arrival times.
"""

from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import MeterFault
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Gap, Int64Array
from opjoule.meters.interface import FaultEvent, GapEvent, Losses, MeterEvent, Samples
from opjoule.meters.monsoon.models import SAMPLE_PERIOD_NS, ChannelScale, Model
from opjoule.meters.streaming import DelayWatch, StreamAssembler

PACKET_BYTES: Final = 64
OBSERVATIONS_MAX: Final = 3
_OBSERVATION_BYTES: Final = 18
_KIND_BITS: Final = 0x30


class Kind(IntEnum):
    """Content of one observation."""

    MEASUREMENT = 0x00
    ZERO = 0x10
    """input shorted: the converter's offset"""
    INVALID = 0x20
    REFERENCE = 0x30
    """reference current: the converter's gain"""


class PacketColumn(IntEnum):
    """Columns of the raw values."""

    MAIN_COARSE = 0
    MAIN_FINE = 1
    USB_COARSE = 2
    USB_FINE = 3
    AUX_COARSE = 4
    AUX_FINE = 5
    MAIN_VOLTAGE = 6
    USB_VOLTAGE = 7


@dataclass(frozen=True)
class Packets:
    """The fields of n consecutive packets with m observations."""

    dropped: Int64Array
    """the device's own count of dropped samples, modulo 2^16, shape (n,)"""
    sequence: Int64Array
    """modulo 16, shape (n,)"""
    tripped: BoolArray
    """True if overcurrent or heat made the device cut its output, shape (n,)"""
    output_off: BoolArray
    """True if the main output is not at voltage, shape (n,)"""
    count: Int64Array
    """observations of each packet, shape (n,)"""
    raw: npt.NDArray[np.uint16]
    """shape (m, 8), columns as in PacketColumn"""
    kind: npt.NDArray[np.uint8]
    """shape (m,), values of Kind"""


def decode(data: bytes) -> Packets:
    """Decodes packets. Raises: MeterFault: a packet is not whole, or states more than three observations."""
    if len(data) % PACKET_BYTES:
        raise MeterFault(f"monsoon: {len(data)} bytes are not a whole number of packets of {PACKET_BYTES}")
    packets = np.frombuffer(data, np.uint8).reshape(-1, PACKET_BYTES)
    count = packets[:, 3]
    if count.size and int(count.max()) > OBSERVATIONS_MAX:
        raise MeterFault(
            f"monsoon: a packet claims {int(count.max())} observations, at most {OBSERVATIONS_MAX} fit: reset it"
        )
    header = packets[:, :3].astype(np.int64)
    last = 4 + OBSERVATIONS_MAX * _OBSERVATION_BYTES
    slots = packets[:, 4:last].reshape(-1, OBSERVATIONS_MAX, _OBSERVATION_BYTES)
    filled = slots[np.arange(OBSERVATIONS_MAX) < count[:, None]]
    raw = np.ascontiguousarray(filled[:, :16]).view(">u2").astype(np.uint16)
    return Packets(
        dropped=header[:, 0] | header[:, 1] << 8,
        sequence=header[:, 2] & 0xF,
        tripped=(header[:, 2] & 0x10) != 0,
        output_off=(header[:, 2] & 0x20) == 0,
        count=count.astype(np.int64),
        raw=raw,
        kind=np.bitwise_and(filled[:, 17], _KIND_BITS, dtype=np.uint8),
    )


def whole_packets(data: bytes) -> bytes:
    """The data of one read as whole packets; a short last packet is padded."""
    return data + bytes(-len(data) % PACKET_BYTES)


KEPT: Final = 5
"""Number of calibration samples of each kind that are averaged."""


class Calibration:
    """Zero and reference of one channel (means of the last few samples), and the conversions based on them."""

    def __init__(self, model: Model, channel: str, scale: ChannelScale) -> None:
        self.channel = channel
        """'main' or 'usb'"""
        self._scale, self._fine_limit = scale, model.fine_limit
        names = (f"{channel.upper()}_{name}" for name in ("COARSE", "FINE", "VOLTAGE"))
        self._coarse, self._fine, self._volts = (PacketColumn[name] for name in names)
        self._step_v = model.voltage_step_v(channel)
        self._type = np.dtype(np.int16 if model.signed else np.uint16)
        self._kept: dict[tuple[Kind, PacketColumn], deque[float]] = {
            (kind, column): deque(maxlen=KEPT)
            for kind in (Kind.ZERO, Kind.REFERENCE)
            for column in (self._coarse, self._fine)
        }

    @property
    def known(self) -> bool:
        """True once each kind has come at least once."""
        return all(self._kept.values())

    def add(self, kind: Kind, raw: npt.NDArray[np.uint16]) -> None:
        """Takes calibration samples, shape (n, 8). A raw value of 0 is ignored, as in the library."""
        for column in (self._coarse, self._fine):
            values = raw[:, column].view(self._type).astype(np.float64)
            self._kept[kind, column].extend(values[values != 0].tolist())

    def current_a(self, raw: npt.NDArray[np.uint16]) -> Float64Array:
        """Currents [A] of measurements, shape (n,), from the fine range where it is in range, else the coarse one."""
        fine, coarse = (raw[:, column].view(self._type) for column in (self._fine, self._coarse))
        fine_a = self._converted(fine, self._fine, self._scale.fine_a, self._scale.fine_zero)
        coarse_a = self._converted(coarse, self._coarse, self._scale.coarse_a, self._scale.coarse_zero)
        return np.where(fine < self._fine_limit, fine_a, coarse_a)

    def voltage_v(self, raw: npt.NDArray[np.uint16]) -> Float64Array:
        """Voltages [V] of measurements, shape (n,)."""
        return np.asarray(raw[:, self._volts] * self._step_v, np.float64)

    def clipped(self, raw: npt.NDArray[np.uint16]) -> BoolArray:
        """True where the coarse range is used and is at its converter's end, or the voltage is; shape (n,)."""
        end = np.iinfo(self._type).max
        beyond_fine = raw[:, self._fine].view(self._type) >= self._fine_limit
        coarse = raw[:, self._coarse].view(self._type)
        volts_end = raw[:, self._volts] == np.iinfo(np.uint16).max
        return np.asarray((beyond_fine & (coarse >= end)) | volts_end, np.bool_)

    def _converted(self, raw: npt.NDArray[Any], column: PacketColumn, scale_a: float, offset: float) -> Float64Array:
        zero = offset + float(np.mean(self._kept[Kind.ZERO, column]))
        reference = float(np.mean(self._kept[Kind.REFERENCE, column]))
        slope = scale_a / (reference - zero) if reference != zero else 0.0
        return np.asarray((raw - zero) * slope, np.float64)


NO_COUNT: Final = 0xFFFF
"""Value of the drop count just after start, before it begins to count."""
UNEXPLAINED_NS: Final = 5_000_000
"""Growth of the minimum delay above which time is missing without explanation; the device's queue holds 3.2 ms."""


class SampleClock:
    """Numbers the observations of one run since the device's start, including lost ones.

    The device converts once every 200 us, whatever happens, so that a sample's number is its time on the device's own
    crystal. Samples that did not fit into the device's queue of 16 show in its drop count. Packets that the host lost
    show in the sequence number. Any other loss shows in the arrival times.
    """

    def __init__(self, delays: DelayWatch) -> None:
        self._next = 0
        self._dropped = NO_COUNT
        self._sequence: int | None = None
        self._delays = delays
        self.lost_packets = 0
        """packets missing from the sequence"""
        self.unexplained = 0
        """lost samples that show only in the arrival times"""

    def first_numbers(self, packets: Packets, arrival_ns: Int64Array) -> Int64Array:
        """Number of each packet's first observation since start, shape (n,), from counts and arrivals [host_ns]."""
        before = int(packets.sequence[0] - 1) if self._sequence is None else self._sequence
        self._sequence = int(packets.sequence[-1])
        lost_packets = (np.diff(packets.sequence, prepend=before) - 1) % 16
        lost = self._dropped_since(packets.dropped) + OBSERVATIONS_MAX * lost_packets
        self.lost_packets += int(lost_packets.sum())
        ends = self._next + np.cumsum(lost + packets.count)
        late = round(self._delays.missing_ns(ends * SAMPLE_PERIOD_NS, arrival_ns) / SAMPLE_PERIOD_NS)
        self.unexplained += late
        ends += late
        self._next = int(ends[-1])
        return np.asarray(ends - packets.count, np.int64)

    def _dropped_since(self, dropped: Int64Array) -> Int64Array:
        counts = np.concatenate([[self._dropped], dropped])
        self._dropped = int(dropped[-1])
        steps = np.diff(counts) % (NO_COUNT + 1)
        # Before the device begins to count, neither its value nor the step to the first count is valid.
        steps[(counts[:-1] == NO_COUNT) | (counts[1:] == NO_COUNT)] = 0
        return steps


UNCALIBRATED_MAX: Final = 25_000
"""Samples that may wait for the first calibration (5 s); a calibration comes every 1.25 s."""
DELIVERY_NS: Final = 1_600_000
"""Longest time from a sample's end to its packet's arrival without queueing: three samples and one USB frame."""
CALIBRATION: Final = "calibration of the meter"
DROPPED: Final = "samples dropped"
TRIPPED, OUTPUT_OFF = "overcurrent_or_overheating", "output_off"
"""Names of the faults of a device that cut its output."""


@dataclass(frozen=True)
class _Run:
    """Consecutive measurements."""

    first: int
    raw: npt.NDArray[np.uint16]
    calibrations: int
    """calibration slots since the previous measurement"""


class MonsoonAssembler(StreamAssembler):
    """Turns packets into events; holds the state between start and stop."""

    def __init__(self, calibration: Calibration) -> None:
        super().__init__(DELIVERY_NS, UNEXPLAINED_NS)
        self._calibration = calibration
        self._clock = SampleClock(self._delays)
        self._waiting: list[_Run] = []
        self._calibrations = 0
        self._last: int | None = None
        self._unexplained = 0
        self._packets = 0
        self._calibration_samples = 0
        self._cut: dict[str, bool] = {}
        """name of a fault -> whether the last packet showed it"""
        self._faults: dict[str, int] = {}

    def take(self, data: bytes, arrival_ns: Int64Array) -> list[MeterEvent]:
        """Events of consecutive whole packets, each with its arrival [host_ns].

        Raises: MeterFault: the bytes are not packets, or no calibration came for 5 s.
        """
        if not data:
            return []
        packets = decode(data)
        self._packets += int(packets.count.size)
        first = self._clock.first_numbers(packets, arrival_ns)
        before = np.cumsum(packets.count) - packets.count
        number = np.repeat(first - before, packets.count) + np.arange(packets.kind.size)
        cuts = np.flatnonzero((np.diff(number) != 1) | (np.diff(packets.kind.astype(np.int8)) != 0)) + 1
        events = self._unexplained_time() + self._cuts(packets, first)
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), number.size], strict=True):
            if end > start:
                kind = Kind(int(packets.kind[start]))
                events += self._run(int(number[start]), kind, packets.raw[start:end])
        end_ns = (first + packets.count) * SAMPLE_PERIOD_NS
        soonest = int(np.argmin(arrival_ns - end_ns))
        return events + self._arrivals.exchanges(int(end_ns[soonest]), int(arrival_ns[soonest]))

    def losses(self) -> Losses:
        """Losses since start. Calibration samples are not losses; they are counted separately."""
        link = {"packets": self._packets, "calibration_samples": self._calibration_samples}
        link |= {"lost_packets": self._clock.lost_packets, "unexplained_samples": self._clock.unexplained}
        return Losses(lost_samples=self._lost, link=link, faults=dict(self._faults))

    def _cuts(self, packets: Packets, first: Int64Array) -> list[MeterEvent]:
        """A fault for each packet from which on the output was cut; `first`: number of its first observation."""
        shown = {TRIPPED: packets.tripped}
        if self._calibration.channel == "main":
            # An output that is off from the start was not cut: the board has another supply.
            self._cut.setdefault(OUTPUT_OFF, bool(packets.output_off[0]))
            shown[OUTPUT_OFF] = packets.output_off
        events: list[MeterEvent] = []
        for name, state in shown.items():
            begins = np.diff(state.astype(np.int8), prepend=np.int8(self._cut.get(name, False))) > 0
            for number in first[begins].tolist():
                self._faults[name] = self._faults.get(name, 0) + 1
                events.append(FaultEvent(name, self._faults[name], number * SAMPLE_PERIOD_NS, 0))
            self._cut[name] = bool(state[-1])
        return events

    def _run(self, first: int, kind: Kind, raw: npt.NDArray[np.uint16]) -> list[MeterEvent]:
        if kind in (Kind.ZERO, Kind.REFERENCE):
            self._calibration.add(kind, raw)
            self._calibrations += raw.shape[0]
            self._calibration_samples += raw.shape[0]
        elif kind is Kind.MEASUREMENT:
            self._waiting.append(_Run(first, raw, self._calibrations))
            self._calibrations = 0
        if not self._calibration.known:
            if sum(run.raw.shape[0] for run in self._waiting) > UNCALIBRATED_MAX:
                raise MeterFault("monsoon: no calibration samples for 5 s: switch it off and on again")
            return []
        waiting, self._waiting = self._waiting, []
        return [event for run in waiting for event in self._samples(run)]

    def _samples(self, run: _Run) -> list[MeterEvent]:
        number = run.first + np.arange(run.raw.shape[0], dtype=np.int64)
        centre_ns = number * SAMPLE_PERIOD_NS + SAMPLE_PERIOD_NS // 2
        events: list[MeterEvent] = []
        if self._last is not None and run.first > self._last + 1:
            events.append(self._gap(int(centre_ns[0]), run.first - self._last - 1, run.calibrations))
        amperes, volts = self._calibration.current_a(run.raw), self._calibration.voltage_v(run.raw)
        events.append(Samples(0, centre_ns, amperes, volts, self._calibration.clipped(run.raw)))
        self._last = int(number[-1])
        return events

    def _gap(self, next_ns: int, slots: int, calibrations: int) -> GapEvent:
        assert self._last is not None
        lost = slots - calibrations
        self._lost += lost
        last_ns = self._last * SAMPLE_PERIOD_NS + SAMPLE_PERIOD_NS // 2
        return GapEvent(0, Gap.between(last_ns, next_ns, slots, DROPPED if lost else CALIBRATION))

    def _unexplained_time(self) -> list[MeterEvent]:
        if self._clock.unexplained == self._unexplained:
            return []
        self._unexplained = self._clock.unexplained
        at_ns = (self._last or 0) * SAMPLE_PERIOD_NS
        return [FaultEvent("time_unaccounted_for", self._unexplained, at_ns, 0)]
