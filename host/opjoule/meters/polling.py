"""Meters that are polled: counters or sensors that the operating system exposes.

Meters of the operating system run on the board that they measure, so that the trace includes the energy of polling. Its
processor time is counted and reported.
"""

import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from opjoule.base.errors import MeterFault
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.error_bounds import SQRT3, ErrorBounds
from opjoule.energy.trace.power_trace import Gap
from opjoule.meters.interface import GapEvent, Losses, Meter, MeterEvent, MeterIdentity, Samples

WHOLE_MAX: Final = 2
"""Whole periods inside one poll above which they are reported as a gap, although their energy is known."""
GATHERED_NS: Final = 20_000_000
"""Longest time for which readings are gathered before they are handed over together."""
ON_BOARD: Final = "runs on the board itself: the trace includes its own cost (losses.link.poll_cpu_us in run.json)"


@dataclass(frozen=True)
class Reading:
    """Result of one poll."""

    current_a: float
    voltage_v: float
    clipped: bool = False
    """at the end of the sensor's range"""


class Source(ABC):
    """A counter or sensor to poll."""

    period_s: float
    mean_since_last: bool
    """True for a counter, whose reading is the mean since the previous one; False: the sensor's latest value"""

    window_s: float = 0.0
    """Length of the mean that a sensor forms by itself, one after the other [s]; known once open. 0: instantaneous."""
    gap_s: float = 0.0
    """For latest values: readings further apart than this [s] and than 1.5 periods have a gap between them."""

    @abstractmethod
    def open(self) -> MeterIdentity:
        """Finds the source. Raises: MeterFault: absent, or no permission; with the remedy."""

    @abstractmethod
    def read(self) -> Reading | None:
        """The present reading; None for a counter's first reading, or if none came. Raises: MeterFault."""

    @abstractmethod
    def error_bounds(self) -> ErrorBounds:
        """Error bounds."""

    def counts(self) -> dict[str, int]:
        """Counters since the source was opened, by name, for the record."""
        return {}

    def close(self) -> None:  # most have nothing to release
        """Releases the source; may be called twice."""


class PolledMeter(Meter):
    """A source behind the meter interface, polled by a thread; see Meter for the contract.

    Its clock is the host's monotonic clock since start.
    """

    def __init__(self, source: Source, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._source, self._clock_ns = source, clock_ns
        self._period_ns = round(source.period_s * 1e9)
        self._lock = threading.Condition()
        self._events: list[MeterEvent] = []
        self._notified = False
        """True while the reader was notified of events and has not taken them yet"""
        self._first_ns: int | None = None
        """time of the first event of which the reader was not notified yet"""
        self._fault: MeterFault | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._start_ns = 0
        self._last_ns: int | None = None
        self._cell_charge: float | None = None
        """charge so far in the current period of the grid [A ns]; None if the period was not covered from its start"""
        self._losses = Losses(link={"polls": 0, "late_polls": 0, "skipped_polls": 0, "poll_cpu_us": 0})

    def open(self) -> MeterIdentity:
        """Finds the source."""
        return self._source.open()

    def start(self) -> None:
        """Starts polling."""
        self._start_ns = self._clock_ns()
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="meter-poll", daemon=True)
        self._thread.start()

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Events since the last call. Raises: MeterFault: the source cannot be read any more."""
        with self._lock:
            if not self._notified and self._fault is None:
                self._lock.wait(timeout_s)
            self._notified = False
            if not self._events and self._fault is not None:
                raise self._fault
            events, self._events = self._events, []
        return _joined(events)

    def clock_exchange(self) -> None:
        """Reads the meter clock between two readings of the host's clock; both are the same clock.

        The centre of a sensor's own mean lies up to half a window before or after its stamp: the round trip is as much
        longer.
        """
        sent_ns = time.monotonic_ns() - self._window_ns // 2
        far_ns = self._clock_ns() - self._start_ns
        with self._lock:
            self._events.append(Exchange(sent_ns, far_ns, far_ns, time.monotonic_ns() + self._window_ns // 2))

    def stop(self) -> list[MeterEvent]:
        """Stops polling. Returns the events read before."""
        self._end_thread()
        with self._lock:
            events, self._events = self._events, []
        return _joined(events)

    def close(self) -> None:
        """Ends the thread and releases the source."""
        self._end_thread()
        self._source.close()

    def _end_thread(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def error_bounds(self) -> ErrorBounds:
        """Error bounds of the source, with the uncertainty of its stamps."""
        return replace(self._source.error_bounds(), stamp_u_ns=self._window_ns / 2 / SQRT3)

    @property
    def _window_ns(self) -> int:
        """Time from the centre of the sensor's latest mean to the poll, on average [ns].

        The mean was completed up to one window before the poll. Its centre lies half a window before its end.
        """
        return round(self._source.window_s * 1e9)

    @property
    def losses(self) -> Losses:
        """Losses, and the cost of polling itself."""
        self._losses.link.update(self._source.counts())
        return self._losses

    def _run(self) -> None:
        try:
            due_s = time.monotonic()
            while not self._stop.is_set():
                self.poll()
                self._losses.link["poll_cpu_us"] = time.thread_time_ns() // 1000
                now_s = time.monotonic()
                due_s = max(due_s + self._source.period_s, now_s)
                self._stop.wait(due_s - now_s)
        except MeterFault as fault:
            with self._lock:
                self._fault = fault
                self._lock.notify()

    def poll(self) -> None:
        """Reads the source once and takes the reading in. Raises: MeterFault."""
        before_ns = self._clock_ns()
        reading = self._source.read()
        at_ns = (before_ns + self._clock_ns()) // 2 - self._start_ns - self._window_ns
        self._losses.link["polls"] += 1
        if reading is None and not self._source.mean_since_last:
            return  # the gap is from the last reading to the next
        last_ns, self._last_ns = self._last_ns, at_ns
        if last_ns is None:
            # If polling began inside a period, the whole period is not known.
            self._cell_charge = None if at_ns % self._period_ns else 0.0
        if reading is None or (last_ns is not None and at_ns <= last_ns):
            return
        events = (self._mean if self._source.mean_since_last else self._now)(reading, last_ns, at_ns)
        with self._lock:
            self._events += events
            self._first_ns = at_ns if self._first_ns is None else self._first_ns
            if at_ns - self._first_ns >= GATHERED_NS or self._period_ns >= GATHERED_NS:
                self._notified, self._first_ns = True, None
                self._lock.notify()

    def _mean(self, reading: Reading, last_ns: int | None, at_ns: int) -> list[MeterEvent]:
        """Events of a mean since the last poll, divided over the periods of a fixed grid: late polls move no energy.

        If one long poll contains whole periods, their charge is known but not their course: they become a gap.
        """
        if last_ns is None:
            return []
        period_ns, volts = self._period_ns, reading.voltage_v
        cell, last_cell = last_ns // period_ns, at_ns // period_ns
        if cell == last_cell:
            self._fill(reading.current_a * (at_ns - last_ns))
            return []
        self._fill(reading.current_a * ((cell + 1) * period_ns - last_ns))
        events: list[MeterEvent] = []
        if self._cell_charge is not None:
            events.append(self._in_cell(cell, self._cell_charge / period_ns, volts))
        whole = range(cell + 1, last_cell)
        if len(whole) > WHOLE_MAX:
            self._losses.link["late_polls"] += 1
            self._losses.lost_samples += len(whole)
            self._losses.recovered_samples += len(whole)
            charge_c = reading.current_a * len(whole) * period_ns * 1e-9
            around_ns = whole.start * period_ns, whole.stop * period_ns
            events.append(GapEvent(0, Gap(*around_ns, len(whole), charge_c, "read late: the mean is known")))
        else:
            events += [self._in_cell(number, reading.current_a, volts) for number in whole]
        self._cell_charge = reading.current_a * (at_ns - last_cell * period_ns)
        return events

    def _fill(self, charge: float) -> None:
        if self._cell_charge is not None:
            self._cell_charge += charge

    def _in_cell(self, cell: int, current_a: float, voltage_v: float) -> Samples:
        return self._sample(Reading(current_a, voltage_v), cell * self._period_ns + self._period_ns // 2)

    def _now(self, reading: Reading, last_ns: int | None, at_ns: int) -> list[MeterEvent]:
        """Events of a latest value; missed polls before it become a gap if the time without a poll was long."""
        sample = self._sample(reading, at_ns)
        slots = 0 if last_ns is None else round((at_ns - last_ns) / self._period_ns) - 1
        if slots <= 0 or last_ns is None:
            return [sample]
        self._losses.link["late_polls"] += 1
        if at_ns - last_ns <= self._source.gap_s * 1e9:
            self._losses.link["skipped_polls"] += slots
            return [sample]
        self._losses.lost_samples += slots
        return [GapEvent(0, Gap.between(last_ns, at_ns, slots, "polled late, or no answer")), sample]

    def _sample(self, reading: Reading, at_ns: int) -> Samples:
        values = np.array([reading.current_a]), np.array([reading.voltage_v])
        return Samples(0, np.array([at_ns], np.int64), *values, np.array([reading.clipped]))


def _joined(events: list[MeterEvent]) -> list[MeterEvent]:
    """The same events, with consecutive samples joined into one."""
    joined: list[MeterEvent] = []
    for samples, group in itertools.groupby(events, key=lambda event: isinstance(event, Samples)):
        parts = list(group)
        joined += [_one([part for part in parts if isinstance(part, Samples)])] if samples else parts
    return joined


def _one(parts: list[Samples]) -> Samples:
    return Samples(
        parts[0].sensor,
        np.concatenate([part.meter_ns for part in parts]),
        np.concatenate([part.current_a for part in parts]),
        np.concatenate([part.voltage_v for part in parts]),
        np.concatenate([part.clipped for part in parts]),
    )
