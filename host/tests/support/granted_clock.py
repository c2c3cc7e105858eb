"""A host clock that grants a simulated rig its time step by step.

Measurements then do not depend on how busy this computer is. The other side is firmware/sim/link/grant.h.
"""

import select
import socket
from dataclasses import dataclass

from opjoule.clocks.host_clock import HostClock

NS_PER_S = 1_000_000_000
AWAY_STEP_NS = 5_000_000
END_LIMIT_S = 120.0
"""Real time in which a rig must close its port after it has given its time back; far more than it needs."""


@dataclass(frozen=True)
class HostAway:
    """A time in which the host does not read its port, as one that is suspended or too busy."""

    at_s: float
    for_s: float
    kept_bytes: int
    """Bytes of that time which adapter and driver keep; the others are lost. Below 4095, as a terminal holds."""


class GrantedClock(HostClock):
    """A HostClock on `rig`, the host's end of --grant; counts from 0. Used by one thread at a time.

    Once the rig has ended, time goes on by itself.
    """

    def __init__(self, rig: socket.socket, limit_s: float, away: HostAway | None = None) -> None:
        """`limit_s`: real time that the rig may take for one step."""
        self._rig, self._now_ns, self._ended = rig, 0, False
        self._away, self._lossy_until_ns = away, 0
        self._text = b""
        rig.settimeout(limit_s)

    def now_ns(self) -> int:
        return self._now_ns

    def sleep(self, duration_s: float) -> None:
        self._step(b"pass", self._now_ns + round(duration_s * NS_PER_S))

    def wait_readable(self, source, timeout_s: float) -> bool:
        self._be_away(source)
        until_ns = self._now_ns + round(timeout_s * NS_PER_S)
        if readable(source, 0.0):
            return True
        if not self._ended:
            self._step(b"read", until_ns)
        if not self._ended:
            return readable(source, 0.0)
        # The rig's last bytes are on their way, or its port is about to close. Neither takes time on this clock.
        if readable(source, END_LIMIT_S):
            return True
        self._now_ns = until_ns
        return False

    def _be_away(self, source) -> None:
        """Lets time pass without a read until the buffers are full. After the read of these, drops what comes."""
        while self._now_ns < self._lossy_until_ns and not self._ended:
            self._step(b"pass", min(self._now_ns + AWAY_STEP_NS, self._lossy_until_ns))
            while readable(source, 0.0) and source.read(1 << 16):
                pass
        if self._away and self._now_ns >= self._away.at_s * NS_PER_S:
            away, self._away = self._away, None
            until_ns = self._now_ns + round(away.for_s * NS_PER_S)
            while self._now_ns < until_ns and source.in_waiting < away.kept_bytes and not self._ended:
                self._step(b"pass", min(self._now_ns + AWAY_STEP_NS, until_ns))
            self._lossy_until_ns = until_ns

    def _step(self, kind: bytes, until_ns: int) -> None:
        """Grants time up to `until_ns`, and sets the clock to the time that the rig reached."""
        try:
            if not self._ended:
                self._rig.sendall(b"%s %d\n" % (kind, until_ns))
            while not self._ended and b"\n" not in self._text:
                piece = self._rig.recv(4096)
                self._text += piece
                self._ended = not piece
        except (BrokenPipeError, ConnectionResetError):
            self._ended = True
        if self._ended:
            self._now_ns = until_ns if kind == b"pass" else self._now_ns
            return
        line, _, self._text = self._text.partition(b"\n")
        reached_ns = int(line)
        assert self._now_ns <= reached_ns <= until_ns, (self._now_ns, reached_ns, until_ns)
        self._now_ns = reached_ns


def readable(source, timeout_s: float) -> bool:
    return bool(select.select([source], [], [], timeout_s)[0])
