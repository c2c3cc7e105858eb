"""Turns decoded frames into meter events: unwrapped times, samples with their gaps, each edge once, faults."""

from collections.abc import Mapping

from opjoule.clocks.exchanges import Exchange
from opjoule.meters import messages
from opjoule.meters.interface import EdgeEvent, FaultEvent, Losses, MeterEvent
from opjoule.meters.serial.conversions import ConversionAssembler, SamplesMessage
from opjoule.meters.serial.wire import WRAP, Frame, TickUnwrapper, signed_difference

NO_SENSOR = 255
PENDING_REQUESTS = 16


def parse(frame: Frame) -> messages.Message | None:
    """The message in a frame; None if its type or its length is unknown here."""
    kind = messages.BY_TYPE.get(frame.type)
    if kind is None:
        return None
    try:
        return kind.unpack(frame.body)
    except ValueError:
        return None


FAR_EDGES = 8
"""Number of lost edges above which a message waits until the next one, or the meter's own count, confirms it."""
LEVELS = (0, 1)
"""Levels of the sync line; a message with another level is damaged, even if its checksum is right."""


class Assembler:
    """State of one meter between start and stop."""

    def __init__(self, ns_per_tick: int, conversions: Mapping[int, ConversionAssembler], anchor_ticks: int = 0) -> None:
        """`anchor_ticks`: approximate time now, unwrapped, from a status of the meter."""
        self._ns_per_tick = ns_per_tick
        self._conversions = dict(conversions)
        self._ticks = TickUnwrapper()
        self._ticks.unwrap(anchor_ticks % WRAP, near_ticks=anchor_ticks)
        for part in self._conversions.values():
            part.begins(anchor_ticks)
        self._next_edge = 0
        self._waiting_edge: messages.Edge | None = None
        self._lost_edges = 0
        self._counted_edges = 0
        self._requested: dict[int, int] = {}
        self._faults: dict[str, int] = {}

    def requested(self, token: int, sent_host_ns: int) -> None:
        """Records that a clock request with this token was sent at `sent_host_ns`."""
        self._requested[token] = sent_host_ns
        while len(self._requested) > PENDING_REQUESTS:
            self._requested.pop(next(iter(self._requested)))  # the oldest, whose answer was lost

    def take(self, message: messages.Message, received_host_ns: int) -> list[MeterEvent]:
        """Events of one message; [] for answers to commands."""
        if isinstance(message, SamplesMessage):
            return self._samples(message)
        if isinstance(message, messages.Edge):
            return self._edges(message)
        if isinstance(message, messages.ClockReply):
            return self._exchange(message, received_host_ns)
        if isinstance(message, messages.FaultMessage):
            return [self._fault(message)]
        if isinstance(message, messages.Status):
            return self._status(message)
        return []

    def losses(self, link: Mapping[str, int]) -> Losses:
        """Losses since start; `link`: counts of the line."""
        parts = self._conversions.values()
        refused = {"frame_refused": sum(part.unbelieved_frames for part in parts)}
        refused["count_jump"] = sum(part.count_jumps for part in parts)
        refused["sum_mismatch"] = sum(part.sum_mismatches for part in parts)
        faults = {name: count for name, count in {**self._faults, **refused}.items() if count}
        return Losses(
            lost_samples=sum(part.lost_samples for part in parts),
            recovered_samples=sum(part.recovered_samples for part in parts),
            # Only the status shows that the last edges were lost.
            lost_edges=self._lost_edges + max(0, self._counted_edges - self._next_edge),
            link=dict(link),
            faults=faults,
        )

    def _samples(self, message: SamplesMessage) -> list[MeterEvent]:
        conversions = self._conversions.get(message.sensor)
        if conversions is None:
            return []
        return conversions.take(message, self._ticks.unwrap(message.first_end_ticks))

    def _edges(self, message: messages.Edge) -> list[MeterEvent]:
        """New edges of the message, oldest first. A message far ahead waits until the next one confirms it."""
        if any(level not in LEVELS for level in (message.level, *_previous_levels(message))):
            return self._refuse_edge()
        events: list[MeterEvent] = []
        waiting, self._waiting_edge = self._waiting_edge, None
        if self._is_far(message, self._next_edge):
            self._waiting_edge = message
            if waiting is None:
                return []
            if self._is_far(message, waiting.index + 1) or message.index == waiting.index:
                return self._refuse_edge()
            self._waiting_edge = None
            events += self._new_edges(waiting)
        elif waiting is not None:
            self._refuse_edge()
        return events + self._new_edges(message)

    def _is_far(self, message: messages.Edge, next_edge: int) -> bool:
        """Whether a message skips too many edges, counted from edge number `next_edge`."""
        ahead = signed_difference(message.index, next_edge, 16)
        return ahead - len(_previous_levels(message)) > FAR_EDGES

    def _refuse_edge(self) -> list[MeterEvent]:
        self._faults["edge_refused"] = self._faults.get("edge_refused", 0) + 1
        return []

    def _new_edges(self, message: messages.Edge) -> list[MeterEvent]:
        index = self._next_edge + signed_difference(message.index, self._next_edge, 16)
        ticks = self._ticks.unwrap(message.ticks)
        sent = [(index, ticks, message.level)]
        for i, level in enumerate(_previous_levels(message)):
            # Must be earlier than the following edge after unwrapping: edges are less than one wrap apart.
            ticks -= (ticks - message.previous_ticks[i]) % WRAP
            sent.append((index - 1 - i, ticks, level))
        fresh = [edge for edge in reversed(sent) if edge[0] >= self._next_edge]
        if fresh:
            self._lost_edges += fresh[0][0] - self._next_edge
            self._next_edge = fresh[-1][0] + 1
        return [EdgeEvent(at * self._ns_per_tick, level, number) for number, at, level in fresh]

    def _counted_edge(self, edges: int) -> list[MeterEvent]:
        """The waiting edge, if the meter's own count of edges has just reached it."""
        waiting = self._waiting_edge
        if waiting is None or signed_difference(edges, waiting.index + 1, 16) != 0:
            return []
        self._waiting_edge = None
        return self._new_edges(waiting)

    def _exchange(self, message: messages.ClockReply, received_host_ns: int) -> list[MeterEvent]:
        sent_host_ns = self._requested.pop(message.token, None)
        if sent_host_ns is None:
            return []
        received_ticks = self._ticks.unwrap(message.received_ticks)
        sent_ticks = self._ticks.unwrap(message.sent_ticks)
        scale = self._ns_per_tick
        return [Exchange(sent_host_ns, received_ticks * scale, sent_ticks * scale, received_host_ns)]

    def _fault(self, message: messages.FaultMessage) -> FaultEvent:
        name = fault_name(message.code)
        self._faults[name] = max(message.count, self._faults.get(name, 0))
        sensor = None if message.sensor == NO_SENSOR else message.sensor
        return FaultEvent(name, message.count, self._ticks.unwrap(message.ticks) * self._ns_per_tick, sensor)

    def _status(self, message: messages.Status) -> list[MeterEvent]:
        self._faults |= {fault_name(code): count for code, count in enumerate(message.faults)}
        self._counted_edges = message.edges
        events = self._counted_edge(message.edges)
        meter_ticks, own_ticks = status_ticks(message), self._ticks.unwrap(message.ticks)
        if meter_ticks != own_ticks:
            # Not corrected, as stamps must not jump within a trace. Caused by a silence of half a wrap (17.9 min).
            events.append(FaultEvent("wraps_disagree", 1, own_ticks * self._ns_per_tick))
        if message.acquisition == messages.Acquisition.IDLE:
            for sensor, item in enumerate(message.items):
                if conversions := self._conversions.get(sensor):
                    count, shunt_sum, clipped = item[["conversions", "shunt_sum", "clipped"]].item()
                    events += conversions.finish(count, shunt_sum, clipped, own_ticks)
        return events


def _previous_levels(message: messages.Edge) -> list[int]:
    """Levels of the earlier edges that a message repeats, latest first."""
    return list(message.previous_level[: min(message.previous_count, 3)])


def status_ticks(status: messages.Status) -> int:
    """Meter time of this status, in ticks since the meter's start."""
    return status.tick_wraps * WRAP + status.ticks


def fault_name(code: int) -> str:
    """Name of a fault code in the run record."""
    return messages.Fault(code).name.lower() if code in messages.Fault._value2member_map_ else f"fault_{code}"
