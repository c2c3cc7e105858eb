"""A clock, a meter and pending writes under a test's control, and a wait for the end of a drain on them."""

import numpy as np
from opjoule.energy.trace.power_history import PowerHistory
from opjoule.runs.measuring import settling
from opjoule.runs.measuring.settling import Rest, Settling

REST = Rest(3.0, 0.01, 0.003)


class SettlingClock:
    """A board and a meter whose time passes only while the measurement sleeps."""

    def __init__(self, monkeypatch, power_w, pending=lambda now_s: 0):
        self.now_s, self.queried_s, self.shown = 0.0, [], []
        self.history = PowerHistory()
        self._power_w, self._pending = power_w, pending
        monkeypatch.setattr(settling.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(settling.time, "sleep", self._pass)
        self._pass(1.0)
        self.started_s = self.now_s

    def _pass(self, seconds):
        meter_ns = np.arange(round(self.now_s * 1e9), round((self.now_s + seconds) * 1e9), 1_000_000)
        self.now_s += seconds
        self.history.add(meter_ns, np.array([self._power_w(at * 1e-9) for at in meter_ns]))

    def pending_write_bytes(self):
        self.queried_s.append(self.now_s)
        return self._pending(self.now_s)

    def wait(self, before_bytes=0, *, synced=True, rest=REST, limit_s=60.0):
        waiting = Settling(
            self.pending_write_bytes,
            self.history,
            limit_s,
            check=lambda: None,
            show=lambda *seconds: self.shown.append(seconds),
        )
        unsettled = waiting.wait(rest, before_bytes, synced=synced)
        return unsettled, self.now_s - self.started_s
