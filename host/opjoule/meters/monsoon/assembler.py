"""Turns Monsoon packets into events: timed samples, gaps for calibration and loss, and exchanges from arrival times."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import MeterFault
from opjoule.energy.trace.power_trace import Gap, Int64Array
from opjoule.meters.interface import FaultEvent, GapEvent, Losses, MeterEvent, Samples
from opjoule.meters.monsoon.calibration import Calibration
from opjoule.meters.monsoon.models import SAMPLE_PERIOD_NS
from opjoule.meters.monsoon.packets import OBSERVATIONS_MAX, Kind, Packets, decode
from opjoule.meters.streaming import DelayWatch, StreamAssembler

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
