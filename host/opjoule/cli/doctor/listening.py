"""A meter that records while `measure.py doctor` looks at the boards: what flows, and which sync edges arrive."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from opjoule.devices.rig.examine import Finding
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import OpJouleError
from opjoule.meters.interface import EdgeEvent, Meter, MeterEvent, Samples
from opjoule.meters.registry import address_of, open_meter

LEAST_BOARD_W: Final = 0.25
"""No board of the profiles runs on less: a Raspberry Pi Zero 2 W idles at about 0.4 W."""
LEAST_SUPPLY_V: Final = 2.0
_FLOW_S: Final = 3.0
_FLOW_SAMPLES: Final = 200


@dataclass(frozen=True)
class Flow:
    """Means over the time that was listened."""

    samples: int
    current_a: float
    voltage_v: float


class Listener:
    """Reads an opened meter in a thread of its own, from start() to stop()."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._heard = threading.Condition()
        self._edges = self._samples = 0
        self._current_sum = self._voltage_sum = 0.0
        self._ended = False
        self._thread = threading.Thread(target=self._listen, name="doctor-meter", daemon=True)

    def start(self) -> None:
        """Starts the meter's sampling. Raises: MeterFault."""
        self._meter.configure()
        self._meter.start()
        self._thread.start()

    def stop(self) -> None:
        """Ends it; a meter that is gone by then is no fault of its own here."""
        self._ended = True
        self._thread.join()

    def wait_for_edges(self, count: int, limit_s: float) -> int:
        """Sync edges so far, as soon as there are `count` or the time is over."""
        with self._heard:
            self._heard.wait_for(lambda: self._edges >= count or self._ended, limit_s)
            return self._edges

    def flow(self) -> Flow | None:
        """What flows, once enough is known of it; None where no sample came."""
        with self._heard:
            self._heard.wait_for(lambda: self._samples >= _FLOW_SAMPLES or self._ended, _FLOW_S)
            if not self._samples:
                return None
            return Flow(self._samples, self._current_sum / self._samples, self._voltage_sum / self._samples)

    def _listen(self) -> None:
        try:
            while not self._ended:
                self._take(self._meter.read(0.1))
            self._meter.stop()
        except OpJouleError:
            self._ended = True
        with self._heard:
            self._heard.notify_all()

    def _take(self, events: list[MeterEvent]) -> None:
        with self._heard:
            for event in events:
                if isinstance(event, EdgeEvent):
                    self._edges += 1
                elif isinstance(event, Samples) and event.sensor == 0:
                    self._samples += event.meter_ns.size
                    self._current_sum += float(event.current_a.sum())
                    self._voltage_sum += float(event.voltage_v.sum())
            self._heard.notify_all()


@dataclass(frozen=True)
class Listening:
    """A listener, and what its meter is."""

    listener: Listener
    bounds: ErrorBounds
    has_sync_input: bool


@contextmanager
def listening(meter_name: str) -> Iterator[Listening | None]:
    """Records with the meter of this name for the time of the block; None where it does not open."""
    meter = None
    try:
        meter = open_meter(meter_name)
        meter.open()
        listener = Listener(meter)
        listener.start()
    except OpJouleError:
        if meter:
            meter.close()
        yield None  # what is wrong with it was found when it was looked at
        return
    try:
        has_sync_input = bool(address_of(meter_name).kind.sync_input)
        yield Listening(listener, meter.error_bounds(), has_sync_input)
    finally:
        listener.stop()
        meter.close()


def flow_finding(name: str, flow: Flow | None, bounds: ErrorBounds) -> Finding:
    """Whether current and voltage are those of a board that has just answered, and runs on this meter."""
    about = f"{name} current"
    if flow is None:
        return Finding(about, False, "the meter gave no sample", "see the lines of the meter above")
    seen = f"{flow.current_a:.3f} A at {flow.voltage_v:.2f} V"
    # Twice the offset's bound and a step: what no current at all may look like.
    nothing_a = 2 * bounds.current_offset_max_a + bounds.current_step_a
    if flow.current_a < -nothing_a:
        return Finding(about, False, f"{seen}: it flows backwards", "exchange VIN+ and VIN\N{MINUS SIGN}")
    if bounds.voltage_step_v and flow.voltage_v < LEAST_SUPPLY_V:
        return Finding(
            about,
            False,
            f"{seen}: the board runs, but the sensor does not see its supply",
            "join VIN\N{MINUS SIGN} (VBUS of an INA226 or INA228) with the board's +5 V, and the sensor's GND with the "
            "board's",
        )
    if flow.current_a * flow.voltage_v < LEAST_BOARD_W:
        return Finding(
            about,
            False,
            f"{seen}: the board runs on less than {LEAST_BOARD_W:g} W of this supply, so another one feeds it",
            "unplug HDMI, powered hubs, USB serial adapters and every second supply (docs/how-to/wire-the-rig.md), or "
            "move the meter to this board",
        )
    return Finding(about, True, f"{seen}, {flow.current_a * flow.voltage_v:.2f} W")
