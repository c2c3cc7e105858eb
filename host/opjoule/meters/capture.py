"""Records a running meter into a trace journal, in a thread of its own."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opjoule.base.errors import MeterFault, OpJouleError
from opjoule.base.notices import Notice, NoticeKind
from opjoule.clocks.exchanges import Exchange, ExchangeFile
from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.energy.trace.journal import TraceJournal
from opjoule.energy.trace.power_history import PowerHistory
from opjoule.energy.trace.power_trace import Gap
from opjoule.meters.interface import (
    BusReading,
    EdgeEvent,
    FaultEvent,
    GapEvent,
    InputEnded,
    Losses,
    Meter,
    MeterEvent,
    Samples,
)

EXCHANGE_PERIOD_S = 0.2
READ_TIMEOUT_S = 0.1
SILENCE_LIMIT_S = 30.0
"""Longest time without a sample before a running meter counts as faulty. A simulated meter waits for its board's
activity, which takes seconds on a busy computer."""
UNANSWERED = ("i2c_nack", "i2c_timeout", "i2c_bus_error", "sensor_reset")
"""Counters of the meter that show that its sensor did not answer for a while."""
SUPPLY_CUT = ("overcurrent_or_overheating", "output_off")
"""Counters of a meter that supplies the board and cut its output."""
OSCILLATES = "sync_oscillates"
"""Counter of the pauses that the meter made because edges of the sync line came faster than 2 kHz."""
FIRST_FAULTS = 100
"""Number of fault events kept in full; later ones are only counted."""


@dataclass
class CaptureSummary:
    """Counts and faults of one capture, for the run record."""

    samples: int = 0
    """samples of the board's supply"""
    further_samples: dict[int, int] = field(default_factory=dict)
    """number of a further sensor -> number of its samples"""
    gaps: int = 0
    edges: int = 0
    clipped_samples: int = 0
    """samples of the board's supply at the end of the meter's range, including those known from gaps"""
    voltage_ended_samples: int = 0
    """samples that arrived with a voltage at the end of its range"""
    faults: list[FaultEvent] = field(default_factory=list)
    """the first fault events, with their time"""
    exchanges: int = 0
    """round trips between host and meter; they are in the file of exchanges alone, because a run may last for hours"""
    losses: Losses = field(default_factory=Losses)
    ended: str | None = None
    """the fault that ended the capture early; None if there was none"""

    def notices(self) -> Iterator[Notice]:
        """The capture's faults."""
        if counts := self._counts(UNANSWERED):
            line = f"the meter's sensor did not answer all the time ({counts})"
            yield Notice(NoticeKind.METER, line, "check its supply, SDA, SCL and pull-ups")
        if counts := self._counts(SUPPLY_CUT):
            line = (
                f"the meter cut the board's supply ({counts}), and its samples from then on are not of the board at "
                "work"
            )
            yield Notice(NoticeKind.METER, line, "raise the meter's limit of the current, and check the wiring")
        if OSCILLATES in self.losses.faults:
            line = f"the sync line oscillates ({OSCILLATES} {self.losses.faults[OSCILLATES]})"
            remedy = (
                "check its wire and the buffer's supply, enable and ground; without a sync line leave D8 open "
                "(docs/how-to/wire-the-rig.md)"
            )
            yield Notice(NoticeKind.SYNC_LINE, line, remedy)
        if self.clipped_samples:
            line = (
                f"{self.clipped_samples} of {self.samples} samples at the end of the meter's range: energies over them "
                "are lower bounds"
            )
            yield Notice(NoticeKind.CLIPPED, line, f"{self._more_range} (docs/reference/sensors.md)")

    def _counts(self, names: tuple[str, ...]) -> str:
        """Those of the meter's counters that are above 0, in words; empty if none is."""
        faults = self.losses.faults
        return ", ".join(f"{name} {faults[name]}" for name in names if name in faults)

    @property
    def _more_range(self) -> str:
        """Advice on samples at the end of the range of the current or of the voltage."""
        current = "use a wider range or a smaller shunt"
        voltage = "the voltage is beyond the sensor's range: use a lower supply, or a sensor for a higher voltage"
        if not self.voltage_ended_samples:
            return current
        return voltage if self.voltage_ended_samples >= self.clipped_samples else f"{voltage}; {current}"

    def to_json(self) -> dict[str, Any]:
        """The summary in the form of the run record."""
        return {
            "samples": self.samples,
            **({"further_samples": self.further_samples} if self.further_samples else {}),
            "gaps": self.gaps,
            "edges": self.edges,
            "clipped_samples": self.clipped_samples,
            "exchanges": self.exchanges,
            "faults": self.faults,
            "losses": self.losses,
            "ended": self.ended,
        }


@dataclass(frozen=True)
class Latest:
    """The newest sample, for a progress line."""

    meter_ns: int
    current_a: float
    voltage_v: float
    samples: int


class Capture:
    """Reads an open, configured meter into a journal until `stop`.

    A meter that disappears ends the capture, not the program. Earlier data stays, and `ended` keeps the reason. The
    journal is flushed at the end; its owner closes it.
    """

    def __init__(
        self,
        meter: Meter,
        journal: TraceJournal,
        exchanges: ExchangeFile | None = None,
        clock: HostClock = MONOTONIC,
    ) -> None:
        """`exchanges`: file in which the meter's exchanges of time stamps are kept too; its owner closes it."""
        self._meter, self._journal, self._exchanges, self._clock = meter, journal, exchanges, clock
        self.summary = CaptureSummary()
        """The results of the capture; complete once it has ended."""
        self._stop = threading.Event()
        self._ended = threading.Event()
        self.error: BaseException | None = None
        """The error that kept the capture from writing and ended it; None if there was none."""
        self.latest: Latest | None = None
        """The newest sample; None before the first."""
        self._first_meter_ns: int | None = None
        self._heard_s = 0.0
        self.history = PowerHistory()
        """power of the board's supply so far"""
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)

    def start(self) -> None:
        """Starts the meter and the thread. Raises: MeterFault: the meter does not start."""
        self._meter.start()
        self._thread.start()

    def stop(self) -> CaptureSummary:
        """Stops the meter, takes in the events on their way, and returns the summary. May be called again.

        Raises: the error that kept the capture from writing, such as a full disk. A fault of the meter raises nothing.
        """
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self.error is not None:
            raise self.error
        return self.summary

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the capture ends by itself. Returns: True if it has ended."""
        return self._ended.wait(timeout_s)

    @property
    def trace_s(self) -> float:
        """Length of the trace so far on the meter's clock [s]."""
        if self.latest is None or self._first_meter_ns is None:
            return 0.0
        return (self.latest.meter_ns - self._first_meter_ns) * 1e-9

    @property
    def period_ns(self) -> int:
        """Mean distance of the samples so far [ns]; 0 before the second sample."""
        latest, first_ns = self.latest, self._first_meter_ns
        if latest is None or first_ns is None or latest.samples < 2:
            return 0
        return (latest.meter_ns - first_ns) // (latest.samples - 1)

    def _run(self) -> None:
        try:
            try:
                self._drain()
                self._record(self._meter.stop())
            except InputEnded:  # a simulated meter has played its profile to the end
                pass
            except MeterFault as fault:
                self.summary.ended = str(fault)
                self._leave_gap(str(fault))
            self.summary.losses = self._meter.losses
            self._journal.flush()
        except (OSError, ValueError, OpJouleError) as fault:
            self.error = fault
        finally:
            self._ended.set()

    def _leave_gap(self, reason: str) -> None:
        """Records a gap from the last sample to the time at which the meter was given up, at least one period long."""
        silent_ns = max(round((self._clock.now_s() - self._heard_s) * 1e9), self.period_ns, 1)
        if self.latest:
            start_ns = self.latest.meter_ns + self.period_ns // 2
            self._journal.append_gap(Gap(start_ns, start_ns + silent_ns, 0, None, reason))
            self.summary.gaps += 1

    def _drain(self) -> None:
        next_exchange_s = self._heard_s = self._clock.now_s()
        while not self._stop.is_set():
            at_s = self._clock.now_s()
            if at_s >= next_exchange_s:
                self._meter.clock_exchange()
                next_exchange_s = at_s + EXCHANGE_PERIOD_S
            before = self.summary.samples
            self._record(self._meter.read(READ_TIMEOUT_S))
            self._journal.flush_when_due()  # also while the meter is silent
            if self.summary.samples > before:
                self._heard_s = self._clock.now_s()
            elif self._clock.now_s() - self._heard_s > SILENCE_LIMIT_S:
                silent = f"the meter sent no sample for {SILENCE_LIMIT_S:g} s"
                raise MeterFault(f"{silent}: reset it, check its sensor")

    def _record(self, events: list[MeterEvent]) -> None:
        for event in events:
            if isinstance(event, Samples):
                self._record_samples(event)
            elif isinstance(event, GapEvent):
                self._journal.append_gap(event.gap, event.sensor)
                self.summary.gaps += 1
                self.summary.clipped_samples += 0 if event.sensor else event.gap.clipped_samples
            elif isinstance(event, BusReading):
                self._journal.append_bus(event.meter_ns, event.voltage_v, event.sensor)
            elif isinstance(event, EdgeEvent):
                self._journal.append_edge(event.meter_ns, event.level, event.index)
                self.summary.edges += 1
            elif isinstance(event, Exchange):
                self.summary.exchanges += 1
                if self._exchanges:
                    self._exchanges.append(event)
            elif len(self.summary.faults) < FIRST_FAULTS:
                self.summary.faults.append(event)

    def _record_samples(self, event: Samples) -> None:
        self._journal.append_samples(event.meter_ns, event.current_a, event.voltage_v, event.sensor, event.clipped)
        if event.sensor:
            others = self.summary.further_samples
            others[event.sensor] = others.get(event.sensor, 0) + int(event.meter_ns.size)
            return
        if self._first_meter_ns is None:
            self._first_meter_ns = int(event.meter_ns[0])
        self.summary.samples += int(event.meter_ns.size)
        self.summary.clipped_samples += int(np.count_nonzero(event.clipped))
        self.summary.voltage_ended_samples += event.voltage_ended
        self.history.add(event.meter_ns, event.current_a * event.voltage_v)
        last = int(event.meter_ns[-1]), float(event.current_a[-1]), float(event.voltage_v[-1])
        self.latest = Latest(*last, self.summary.samples)
