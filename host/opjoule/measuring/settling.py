"""The wait until what a workload has begun is over: pending writes, background work, the medium's own tail."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from opjoule.measuring.quiet import QUIET_S, Calm, Rest, calm
from opjoule.trace.power_history import PowerHistory

PROGRESS_BYTES: Final = 16 << 20
"""So much less to be written is progress."""
PROGRESS_SHARE: Final = 0.25
"""Or so much less of a smaller rest,"""
PROGRESS_LEAST_BYTES: Final = 1 << 20
"""but not less than what a board logs by itself."""
HELD_S: Final = 35.0
"""For so long Linux may leave dirty pages where they are, if nothing syncs them: the flusher looks each 5 s for pages
older than 30 s (dirty_writeback_centisecs, dirty_expire_centisecs; Documentation/admin-guide/sysctl/vm.rst)."""
_RATE_OVER_S: Final = 10.0


class WriteBack:
    """Follows the pending writes of one board down to a level; times are of one clock [s]."""

    def __init__(self, level_bytes: int, now_s: float) -> None:
        """`level_bytes`: pending writes at which all is written."""
        self._level_bytes = level_bytes
        self._least_bytes = math.inf
        self._progress_s = now_s
        self._begun = False
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, pending_bytes: int, now_s: float) -> None:
        """Takes what is pending now."""
        self._seen.append((now_s, pending_bytes))
        while self._seen[0][0] < now_s - _RATE_OVER_S:
            self._seen.popleft()
        if self._least_bytes == math.inf:
            self._least_bytes = pending_bytes
        left_bytes = max(self._least_bytes - self._level_bytes, 0)
        step_bytes = max(min(PROGRESS_BYTES, PROGRESS_SHARE * left_bytes), PROGRESS_LEAST_BYTES)
        if pending_bytes <= self._least_bytes - step_bytes:
            self._begun, self._progress_s, self._least_bytes = True, now_s, pending_bytes

    def still_s(self, now_s: float) -> float:
        """How long nothing has got on [s]; before write-back has begun, less the time Linux may take to begin it."""
        return now_s - self._progress_s - (0.0 if self._begun else HELD_S)

    @property
    def bytes_per_s(self) -> float:
        """Rate at which the pending writes became fewer in the last ten seconds; 0 where they did not."""
        (start_s, first_bytes), (end_s, last_bytes) = self._seen[0], self._seen[-1]
        return max(first_bytes - last_bytes, 0) / (end_s - start_s) if end_s > start_s else 0.0

    @property
    def remaining_s(self) -> float | None:
        """How long the rest will take at that rate [s]; None where there is no rate."""
        left_bytes = max(self._seen[-1][1] - self._level_bytes, 0)
        return left_bytes / self.bytes_per_s if self.bytes_per_s else None


SETTLED_BYTES: Final = 1 << 20
"""Pending writes below this count as settled: the board's own logging never quite stops."""
SHIFT_MAX: Final = 0.02
"""A steady power this far from rest, relative, is taken for another idle level; beyond it for a tail that goes on."""
_PENDING_POLL_S: Final = 0.5
"""Seldom: each question costs the board a little."""
_ASK_AGAIN_S: Final = 10.0
"""While the power is not at rest."""
_POLL_S: Final = 0.1


@dataclass(frozen=True)
class Left:
    """What a workload has left to be written when it ended."""

    written: bool
    """Nothing: it has seen to its writes itself, and the board's pending writes are not asked for."""
    before_bytes: int
    """Pending writes before it began; a board that logs never comes below."""


@dataclass(frozen=True)
class Unsettled:
    """What was not over when the limit had passed."""

    line: str
    """In words."""
    pollutes_idle: bool
    """Idle power that is measured from here on is not that of a board at rest."""


@dataclass
class Settling:
    """Waits on one board and one meter."""

    pending_write_bytes: Callable[[], int]
    history: PowerHistory
    limit_s: float
    """Longest wait for a medium that does not get on, and for the power to come to rest [s]."""
    check: Callable[[], None]
    show: Callable[[float, float | None], None]
    """Called with the seconds waited so far, and those that remain, None where nothing tells them."""
    _started_s: float = 0.0

    def wait(self, writes: Left, rest: Rest | None) -> Unsettled | None:
        """Waits until writes are on the medium and the power is back at rest, if that is known; what was not."""
        self._started_s = time.monotonic()
        level_bytes = max(writes.before_bytes, SETTLED_BYTES)
        if not writes.written and (left := self._await_written(level_bytes)):
            return left
        return self._await_rest(rest, level_bytes) if rest else None

    def _await_written(self, level_bytes: int) -> Unsettled | None:
        """A medium that gets on with its writes is waited for, however many they are."""
        write_back = WriteBack(level_bytes, time.monotonic())
        while (pending := self.pending_write_bytes()) > level_bytes:
            now_s = time.monotonic()
            write_back.see(pending, now_s)
            self._look(write_back.remaining_s)
            if write_back.still_s(now_s) > self.limit_s:
                line = (
                    f"{pending / 1e6:.0f} MB still wait to be written to the medium, hardly fewer than "
                    f"{self.limit_s:g} s ago. A program goes on writing, or the medium hangs: end the "
                    "program, or look for the medium's errors in the board's kernel log (dmesg)"
                )
                return Unsettled(line, pollutes_idle=True)
            time.sleep(_PENDING_POLL_S)
        return None

    def _await_rest(self, rest: Rest, level_bytes: int) -> Unsettled | None:
        """Where the power does not come to rest, the board is asked now and then whether its medium still writes."""
        ask_again_s = min(_ASK_AGAIN_S, self.limit_s / 2)
        limit_s = time.monotonic() + self.limit_s
        asked_s, since_ns = time.monotonic(), self.history.end_ns
        while not ((now := calm(self.history, rest, since_ns)) and now.quiet):
            now_s = time.monotonic()
            self._look(None)
            if now_s > limit_s:
                return _not_at_rest(now, rest, self.limit_s)
            if now_s - asked_s > ask_again_s:
                asked_s = now_s
                if self.pending_write_bytes() > level_bytes:
                    if left := self._await_written(level_bytes):
                        return left
                    asked_s, since_ns = time.monotonic(), self.history.end_ns
                    limit_s += asked_s - now_s
            time.sleep(_POLL_S)
        return None

    def _look(self, remaining_s: float | None) -> None:
        self.check()
        self.show(time.monotonic() - self._started_s, remaining_s)


def _not_at_rest(now: Calm | None, rest: Rest, limit_s: float) -> Unsettled:
    """In words, and whether idle power can still be measured: above idle by little, and no more changing."""
    if now is None:
        line = f"settle saw less than {QUIET_S} s of samples in {limit_s:g} s; raise --settle-limit"
        return Unsettled(line, pollutes_idle=True)
    above = f"{1e3 * now.above_w:+.3g} mW from idle, after {limit_s:g} s"
    if not now.steady or abs(now.above_w) > SHIFT_MAX * abs(rest.mean_w):
        why = "although no writes are pending. The medium or a program is still at work"
        return Unsettled(f"power not at rest: {above}, {why}; raise --settle-limit", pollutes_idle=True)
    if now.in_bursts:
        why = "The idle phase was too short to show such bursts; raise --idle"
        return Unsettled(f"power at rest except for bursts: {above}. {why}", pollutes_idle=False)
    why = "The board is warmer or cooler than before the run; raise --settle-limit"
    return Unsettled(f"power steady, but {above}. {why}", pollutes_idle=False)
