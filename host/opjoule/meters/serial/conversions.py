"""Turns the samples messages of one sensor into timed samples, with every lost conversion accounted for.

Each frame states how many conversions came before it and the sum of all their codes. A lost frame therefore shows in
the next one, together with the exact sum of its codes: the charge of a gap is known, only its shape is lost.

One damaged frame in 65,536 passes its checksum. A frame with a jump in its count or time is therefore accepted only
once further frames continue from it.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from opjoule.energy.trace.power_trace import BoolArray, Gap, Int64Array
from opjoule.meters.chips import ChipScale, CodeEnds, ConversionTimes
from opjoule.meters.interface import BusReading, FaultEvent, GapEvent, MeterEvent, Samples
from opjoule.meters.messages import Flag, Pairs, Shunts, Wide
from opjoule.meters.serial.wire import WRAP, signed_difference

MISSED_SHARE: Final = 1.5
"""Distance in periods above which conversions between two others were never read (chip clocks: +-10 %)."""
BUS_READING_SHARE: Final = 4.0
"""Largest number of periods between two conversions with a bus reading between them (3 if both take equally long)."""
LEAST_BUS_EVERY: Final = 16
"""Least number of conversions between two bus readings, as far as lost frames may contain some."""
FASTEST_SHARE: Final = 0.5
"""Shortest possible distance of two conversions, as part of the period."""
CLOCK_TOLERANCE: Final = 0.12
"""Tolerance of the chip's own clock: 532 us nominal, 586 us at most (SBOS448G, 7.5). It is too small for a missed
conversion to pass as a slow clock."""
PERIOD_MEMORY: Final = 1024
"""Number of conversions over which the measured period is averaged."""
FAR_CONVERSIONS: Final = 256
"""A frame further ahead than this is treated like one that contradicts earlier frames."""
AGREEING_FRAMES: Final = 3
"""Number of consecutive, agreeing frames that are accepted even if they contradict earlier ones."""
AGREEING_NEAR: Final = 2
"""The same number if the first frame can follow earlier ones with some conversions lost."""
SamplesMessage = Pairs | Shunts | Wide


@dataclass(frozen=True)
class SamplesFrame:
    """A samples message and its conversions; arrays of shape (n,)."""

    message: SamplesMessage
    end_ticks: Int64Array
    shunt: Int64Array
    bus: Int64Array

    @classmethod
    def of(cls, message: SamplesMessage, first_end_ticks: int) -> Self:
        """The conversions of a message; `first_end_ticks`: its stamp, unwrapped."""
        items = message.items
        after_first = np.cumsum(items["delta_ticks"].astype(np.int64))
        after_first -= after_first[0]
        bus = np.full(len(items), message.bus) if isinstance(message, Shunts) else items["bus"]
        shunt = items["shunt"].astype(np.int64)
        return cls(message, first_end_ticks + after_first, shunt, bus.astype(np.int64))


class ConversionAssembler:
    """State of one sensor between start and stop."""

    def __init__(self, sensor: int, times: ConversionTimes, scale: ChipScale, ns_per_tick: int, ends: CodeEnds) -> None:
        self._sensor, self._scale, self._ns_per_tick, self._ends = sensor, scale, ns_per_tick, ends
        self._nominal_ticks = times.period_us * 1000 / ns_per_tick
        self._period_ticks = self._nominal_ticks
        self._steps_measured = 0
        self._centre_share = times.centre_share
        self._next_index = 0
        self._shunt_sum = 0
        self._clipped = 0
        self._start_ticks: int | None = None
        self._last_end_ticks: int | None = None
        self._last_centre_ns: int | None = None
        self._largest_code = 1 << 15
        self._reads_bus_apart = times.bus_us == 0.0
        self._bus_end_ticks: int | None = None
        self._waiting: list[SamplesFrame] = []
        self.lost_samples = 0
        self.recovered_samples = 0
        self.refused_frames = 0
        """Frames that were discarded because they contradict the frames around them."""
        self.count_jumps = 0
        """Number of jumps in the meter's count of conversions."""
        self.sum_mismatches = 0

    @property
    def unbelieved_frames(self) -> int:
        """Number of frames refused so far, and of frames waiting for others to confirm them."""
        return self.refused_frames + len(self._waiting)

    def begins(self, ticks: int) -> None:
        """`ticks`: approximate start of sampling, unwrapped. A first frame far from it waits to be confirmed."""
        self._start_ticks = ticks

    def take(self, message: SamplesMessage, first_end_ticks: int) -> list[MeterEvent]:
        """Samples of one frame, after the gap before them if there is one; `first_end_ticks`: its stamp, unwrapped."""
        if not len(message.items):
            return []
        self._largest_code = 1 << (19 if isinstance(message, Wide) else 15)
        frame = SamplesFrame.of(message, first_end_ticks)
        last_ticks = self._last_end_ticks
        is_past = last_ticks is not None and not self._has_time_for(frame, 0, last_ticks)
        if is_past or np.any(np.diff(frame.end_ticks) <= 0):
            return [self._refuse(frame)]
        if self._is_next(frame, self._next_index, self._last_end_ticks):
            return [*self._refuse_waiting(), *self._accept(frame)]
        return self._wait(frame)

    def _wait(self, frame: SamplesFrame) -> list[MeterEvent]:
        """Keeps a frame that does not directly follow the accepted ones until enough other frames agree with it."""
        events: list[MeterEvent] = []
        if self._waiting:
            before = self._waiting[-1]
            place = before.message.first_index + len(before.shunt), int(before.end_ticks[-1])
            agrees = self._goes_on if self._is_ahead(self._waiting[0]) else self._is_next
            if not agrees(frame, *place):
                events += self._refuse_waiting()
        self._waiting.append(frame)
        if len(self._waiting) >= (AGREEING_NEAR if self._is_near(self._waiting[0]) else AGREEING_FRAMES):
            events += self._believe_waiting()
        return events

    def _is_ahead(self, frame: SamplesFrame) -> bool:
        """Whether a frame can come after the accepted ones, however far ahead it is."""
        end_ticks = self._last_end_ticks
        lost = signed_difference(frame.message.first_index, self._next_index, 32)
        return lost >= 0 and (end_ticks is None or self._has_time_for(frame, lost, end_ticks))

    def _is_near(self, frame: SamplesFrame) -> bool:
        """Whether a frame can follow the accepted ones if some frames between them were lost."""
        if self._last_end_ticks is None and not self._is_near_start(frame):
            return False
        return self._goes_on(frame, self._next_index, self._last_end_ticks)

    def _is_next(self, frame: SamplesFrame, index: int, end_ticks: int | None) -> bool:
        """Whether a frame directly follows conversion `index - 1`, which ended at `end_ticks`."""
        if frame.message.first_index != index % WRAP:
            return False
        if end_ticks is None:
            return self._is_near_start(frame)
        distance = int(frame.end_ticks[0]) - end_ticks
        most = BUS_READING_SHARE if frame.message.flags & Flag.GAP_BEFORE else MISSED_SHARE
        return FASTEST_SHARE * self._nominal_ticks <= distance <= most * self._period_ticks

    def _goes_on(self, frame: SamplesFrame, index: int, end_ticks: int | None) -> bool:
        """Whether a frame comes after conversion `index - 1`, which ended at `end_ticks`, and is not far from it."""
        lost = signed_difference(frame.message.first_index, index, 32)
        if not 0 <= lost <= FAR_CONVERSIONS:
            return False
        return end_ticks is None or (
            self._has_time_for(frame, lost, end_ticks)
            and frame.end_ticks[0] - end_ticks <= FAR_CONVERSIONS * self._period_ticks
        )

    def _has_time_for(self, frame: SamplesFrame, lost: int, end_ticks: int) -> bool:
        """Whether `lost` conversions fit between `end_ticks` and the frame."""
        return int(frame.end_ticks[0]) - end_ticks >= FASTEST_SHARE * self._nominal_ticks * (lost + 1)

    def _is_near_start(self, frame: SamplesFrame) -> bool:
        if self._start_ticks is None:
            return True
        return 0 <= int(frame.end_ticks[0]) - self._start_ticks <= FAR_CONVERSIONS * self._period_ticks

    def _believe_waiting(self) -> list[MeterEvent]:
        waiting, self._waiting = self._waiting, []
        return [event for frame in waiting for event in self._accept(frame)]

    def _refuse_waiting(self) -> list[MeterEvent]:
        waiting, self._waiting = self._waiting, []
        return [self._refuse(frame) for frame in waiting]

    def _refuse(self, frame: SamplesFrame) -> FaultEvent:
        self.refused_frames += 1
        return self._fault("frame_refused", self.refused_frames, int(frame.end_ticks[0]))

    def _accept(self, frame: SamplesFrame) -> list[MeterEvent]:
        """Samples of an accepted frame, after the gap before it if there is one."""
        message = frame.message
        events: list[MeterEvent] = []
        lost = signed_difference(message.first_index, self._next_index, 32)
        if not self._is_ahead(frame):
            events += self._jump(frame)
            lost = 0
        first_index = self._next_index + lost
        if not self._steps_measured:
            self._measure_period(np.diff(frame.end_ticks))
        centre_ns = self._centres_ns(frame.end_ticks)
        events += self._bus_reading(message, int(frame.end_ticks[0]))
        events += self._before(message, int(frame.end_ticks[0]), int(centre_ns[0]), lost)
        clipped = self._ends.reached(frame.shunt, frame.bus)
        if message.flags & Flag.OVERFLOW and not clipped.any():
            clipped[:] = True  # the chip's own overflow bit is set, although the codes are in range
        events += self._samples(frame, centre_ns, clipped)
        self._next_index = first_index + len(frame.shunt)
        self._shunt_sum = message.shunt_sum + int(frame.shunt.sum())
        self._clipped = message.clipped + int(np.count_nonzero(clipped))
        self._last_end_ticks, self._last_centre_ns = int(frame.end_ticks[-1]), int(centre_ns[-1])
        return events

    def _jump(self, frame: SamplesFrame) -> list[MeterEvent]:
        """Continues after a jump in the count of conversions; the number lost before it is estimated from the time."""
        message, end_ticks = frame.message, int(frame.end_ticks[0])
        self.count_jumps += 1
        events: list[MeterEvent] = [self._fault("count_jump", self.count_jumps, end_ticks)]
        self._next_index, self._clipped = message.first_index, message.clipped
        self._shunt_sum = message.shunt_sum
        if self._last_end_ticks is not None and self._last_centre_ns is not None:
            missed = max(0, round((end_ticks - self._last_end_ticks) / self._period_ticks) - 1)
            if missed:
                centre_ns = int(self._centres_ns(frame.end_ticks[:1])[0])
                gap = self._gap_before(centre_ns, missed, None, "count of conversions jumped", 0)
                events.append(self._lose(gap))
            self._last_end_ticks = end_ticks - round(self._period_ticks)
        return events

    def _bus_reading(self, message: SamplesMessage, end_ticks: int) -> list[MeterEvent]:
        """The bus reading before the frame's first conversion, which ended at `end_ticks`; empty if it is not new."""
        if isinstance(message, Pairs) or (isinstance(message, Wide) and not self._reads_bus_apart):
            return []
        if isinstance(message, Wide):
            if not message.flags & Flag.GAP_BEFORE:
                return []
            code, age_ticks = int(message.items["bus"][0]), round(self._period_ticks)
        else:
            code, age_ticks = message.bus, message.bus_age_ticks
        bus_end_ticks = end_ticks - age_ticks
        if self._bus_end_ticks is not None and bus_end_ticks - self._bus_end_ticks < self._period_ticks / 2:
            return []
        self._bus_end_ticks = bus_end_ticks
        reading_v = float(self._scale.voltage_v(np.array([code]))[0])
        return [BusReading(self._sensor, bus_end_ticks * self._ns_per_tick, reading_v)]

    def finish(self, conversions: int, shunt_sum: int, clipped: int, ticks: int) -> list[MeterEvent]:
        """The gap at the end, from the final sums that the meter sends after stop (modulo 2^32).

        `ticks`: time of these sums, unwrapped. Sums with more conversions than fit into the time are refused.
        """
        events = self._end_waiting(conversions)
        lost = signed_difference(conversions, self._next_index, 32)
        if lost <= 0 or self._last_centre_ns is None or self._last_end_ticks is None:
            return events
        if ticks - self._last_end_ticks < FASTEST_SHARE * self._nominal_ticks * lost:
            return [*events, self._fault("final_count_refused", 1, ticks)]
        period_ns = self._period_ticks * self._ns_per_tick
        start_ns = self._last_centre_ns + int(period_ns / 2)
        mean_a = self._mean_lost_a(shunt_sum, lost, 32)
        end_ns = start_ns + int(lost * period_ns)
        gap = _gap(start_ns, end_ns, lost, mean_a, "frame lost at the end", self._lost_clipped(clipped, lost))
        self._next_index += lost
        return [*events, self._lose(gap)]

    def _end_waiting(self, conversions: int) -> list[MeterEvent]:
        """Accepts the frames that still wait at the end if they fit the meter's final count; else refuses them."""
        if not self._waiting:
            return []
        first, last = self._waiting[0], self._waiting[-1]
        end = last.message.first_index + len(last.shunt)
        fits = self._is_ahead(first) and 0 <= signed_difference(conversions, end, 32) <= FAR_CONVERSIONS
        return self._believe_waiting() if fits else self._refuse_waiting()

    def _centres_ns(self, end_ticks: Int64Array) -> Int64Array:
        back_ns = round(self._centre_share * self._period_ticks * self._ns_per_tick)
        return end_ticks * self._ns_per_tick - back_ns

    def _before(self, message: SamplesMessage, end_ticks: int, centre_ns: int, lost: int) -> list[MeterEvent]:
        """Events between the last frame and this one."""
        bits = 64 if isinstance(message, Wide) else 32
        events: list[MeterEvent] = []
        if lost == 0 and signed_difference(message.shunt_sum, self._shunt_sum, bits) != 0:
            self.sum_mismatches += 1
            events.append(self._fault("sum_mismatch", self.sum_mismatches, end_ticks))
        missed = self._missed(message, end_ticks, lost)
        if lost + missed:
            mean_a = None if missed else self._mean_lost_a(message.shunt_sum, lost, bits)
            reason = "frame lost" if lost else "conversion missed by the meter"
            clipped = self._lost_clipped(message.clipped, lost)
            events.append(self._lose(self._gap_before(centre_ns, lost + missed, mean_a, reason, clipped)))
        return events

    def _missed(self, message: SamplesMessage, end_ticks: int, lost: int) -> int:
        """Number of conversions before this frame that the meter never read.

        After an outage of the sensor it is the number that would have ended in the time: the meter knows only that
        some are missing.
        """
        flagged = bool(message.flags & Flag.MISSED_BEFORE)
        if self._last_end_ticks is None:
            return int(flagged)
        excess = (end_ticks - self._last_end_ticks) / self._period_ticks - (lost + 1)
        if isinstance(message, Pairs) or (lost == 0 and not message.flags & Flag.GAP_BEFORE):
            # The measured period is known to better than 1 %; over a long loss, its error grows with the loss.
            explained = MISSED_SHARE - 1 + 0.01 * lost
        elif flagged:
            explained = (BUS_READING_SHARE - 1) * (1 + lost // LEAST_BUS_EVERY)
        else:
            return 0
        seen = round(excess) if excess > explained else 0
        return max(seen, int(flagged))

    def _mean_lost_a(self, shunt_sum: int, lost: int, bits: int) -> float | None:
        """Mean current of the lost conversions [A]; None if the wrapped sums are ambiguous."""
        if lost <= 0 or lost * self._largest_code >= 1 << (bits - 1):
            return None
        code_sum = signed_difference(shunt_sum, self._shunt_sum, bits)
        return code_sum / lost * self._scale.shunt_lsb_v / self._scale.shunt_ohm

    def _lost_clipped(self, clipped: int, lost: int) -> int:
        """Number of lost conversions at the end of a range, from the meter's running count."""
        return min(max(signed_difference(clipped, self._clipped, 16), 0), max(lost, 0))

    def _gap_before(self, centre_ns: int, lost: int, mean_a: float | None, reason: str, clipped: int) -> Gap:
        if self._last_centre_ns is not None:
            return Gap.between(self._last_centre_ns, centre_ns, lost, reason, mean_a, clipped)
        period_ns = self._period_ticks * self._ns_per_tick
        end_ns = centre_ns - int(period_ns / 2)
        return _gap(end_ns - int(lost * period_ns), end_ns, lost, mean_a, reason, clipped)

    def _samples(self, frame: SamplesFrame, centre_ns: Int64Array, clipped: BoolArray) -> list[MeterEvent]:
        """The frame's samples, split where the distance between two shows that conversions were missed."""
        events: list[MeterEvent] = []
        steps = np.diff(frame.end_ticks)
        cuts = np.flatnonzero(steps > MISSED_SHARE * self._period_ticks)
        start = 0
        for cut in [*(int(c) + 1 for c in cuts), len(frame.shunt)]:
            part = slice(start, cut)
            if start:
                missed = round(float(steps[start - 1]) / self._period_ticks) - 1
                around = int(centre_ns[start - 1]), int(centre_ns[start])
                events.append(self._lose(Gap.between(*around, missed, "conversion missed by the meter")))
            amperes, volts = self._scale.current_a(frame.shunt[part]), self._scale.voltage_v(frame.bus[part])
            ended = int(np.count_nonzero(self._ends.voltage_reached(frame.bus[part])))
            events.append(Samples(self._sensor, centre_ns[part], amperes, volts, clipped[part], ended))
            start = cut
        self._measure_period(steps)
        return events

    def _measure_period(self, steps: Int64Array) -> None:
        """Follows the chip's clock, from the steps of a frame without those over missed conversions."""
        steps = steps[steps <= MISSED_SHARE * self._period_ticks]
        if steps.size:
            self._steps_measured = min(self._steps_measured + steps.size, PERIOD_MEMORY)
            weight = min(1.0, steps.size / self._steps_measured)
            measured = self._period_ticks + weight * (float(steps.mean()) - self._period_ticks)
            least, most = (self._nominal_ticks * (1 + side * CLOCK_TOLERANCE) for side in (-1, 1))
            self._period_ticks = min(max(measured, least), most)

    def _lose(self, gap: Gap) -> GapEvent:
        self.lost_samples += gap.lost_samples
        if gap.charge_c is not None:
            self.recovered_samples += gap.lost_samples
        return GapEvent(self._sensor, gap)

    def _fault(self, name: str, count: int, ticks: int) -> FaultEvent:
        return FaultEvent(name, count, ticks * self._ns_per_tick, self._sensor)


def _gap(start_ns: int, end_ns: int, lost: int, mean_a: float | None, reason: str, clipped: int) -> Gap:
    charge_c = None if mean_a is None else mean_a * (end_ns - start_ns) * 1e-9
    return Gap(start_ns, end_ns, lost, charge_c, reason, clipped)
