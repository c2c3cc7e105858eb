"""A second meter in series with a simulated rig, told by the power model what flows. SIMULATED."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np

from opjoule.clocks.exchanges import Exchange
from opjoule.energy.error_bounds import CURRENT, VOLTAGE, ErrorBounds
from opjoule.meters.interface import Losses, MeterEvent, MeterIdentity, Samples
from opjoule.simulation.feed import DELAY_NS


class Witness:
    """A second meter in series, on the supply's side of the shunt: 1,000 readings a second, 0.1 %. Implements Meter."""

    PERIOD_NS: Final = 1_000_000
    LATE_NS: Final = 1_500_000_000
    """Its readings come so late, which is later than any row of the feed; its clock is the rig's delay behind."""

    def __init__(self, gain: float, before_ohm: float) -> None:
        """Nothing is told yet.

        Args:
            gain: what it makes of a current.
            before_ohm: from its voltage to the board's.
        """
        self._gain, self._before_ohm = gain, before_ohm
        self._rows: deque[tuple[int, float, float]] = deque(maxlen=200_000)
        self._lock = threading.Lock()
        self._read_ns = 0
        self._exchange: Exchange | None = None

    def tell(self, rows: Sequence[tuple[int, float, float]]) -> None:
        """Current and voltage at the board's place, from moments on [board_ns]."""
        with self._lock:
            self._rows.extend(rows)

    def open(self) -> MeterIdentity:
        """Who it is."""
        return MeterIdentity("witness", "simulated", "second meter", 0, protocol_version=1, simulated=True)

    def configure(self) -> None:
        """Nothing to set."""

    def start(self) -> None:
        """From now on."""
        self._read_ns = (self._now_ns() // self.PERIOD_NS) * self.PERIOD_NS

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Samples since the last call."""
        time.sleep(min(timeout_s, 0.05))
        events: list[MeterEvent] = []
        if self._exchange:
            events.append(self._exchange)
            self._exchange = None
        count = (self._now_ns() - self._read_ns) // self.PERIOD_NS
        if count <= 0:
            return events
        at_ns = self._read_ns + self.PERIOD_NS * np.arange(1, count + 1, dtype=np.int64)
        with self._lock:
            known = list(self._rows)
        if not known or known[0][0] > at_ns[0]:
            return events
        self._read_ns = int(at_ns[-1])
        stamps, current_a, voltage_v = (np.array(column) for column in zip(*known, strict=True))
        place = np.searchsorted(stamps, at_ns, side="right") - 1
        source_v = voltage_v[place] + self._before_ohm * current_a[place]
        return [*events, Samples(0, at_ns, current_a[place] * self._gain, source_v)]

    def clock_exchange(self) -> None:
        """Answers at once."""
        now_ns = time.monotonic_ns()
        at_ns = now_ns - DELAY_NS
        self._exchange = Exchange(now_ns, at_ns, at_ns, now_ns)

    def stop(self) -> list[MeterEvent]:
        """What is left."""
        return self.read(0.0)

    def close(self) -> None:
        """Nothing to release."""

    def error_bounds(self) -> ErrorBounds:
        """0.1 % each, a crystal."""
        return ErrorBounds(
            gain_errors_max={CURRENT: 0.001, VOLTAGE: 0.001},
            current_offset_max_a=1e-4,
            current_step_a=1e-5,
            voltage_step_v=1e-4,
            current_max_a=6.0,
            seen_fraction=1.0,
            clock_error_max=1e-4,
        )

    @property
    def losses(self) -> Losses:
        """None."""
        return Losses()

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self.LATE_NS
