"""The wait until a workload's effects are over: pending writes, background work, the medium's tail."""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.trace.power_history import PowerHistory
from opjoule.runs.measuring.quiet import QUIET_S, Calm, Rest, calm
from opjoule.runs.record.groups import ABOVE_IDLE

PROGRESS_BYTES: Final = 16 << 20
"""Decrease of the pending writes that counts as progress,"""
PROGRESS_SHARE: Final = 0.25
"""or this fraction of a smaller remainder,"""
PROGRESS_LEAST_BYTES: Final = 1 << 20
"""but at least as much as a board's own logging writes."""
HELD_S: Final = 35.0
"""Longest time for which Linux may leave dirty pages if nothing syncs them: the flusher looks every 5 s for pages
older than 30 s (dirty_writeback_centisecs, dirty_expire_centisecs; Documentation/admin-guide/sysctl/vm.rst)."""
_RATE_OVER_S: Final = 10.0


class WriteBack:
    """Follows one board's pending writes down to a level; all times are on one clock [s]."""

    def __init__(self, level_bytes: int, now_s: float) -> None:
        """`level_bytes`: level of pending writes at which everything counts as written."""
        self._level_bytes = level_bytes
        self._least_bytes = math.inf
        self._progress_s = now_s
        self._begun = False
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, pending_bytes: int, now_s: float) -> None:
        """Takes a new value of the pending writes."""
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
        """Time without progress [s]; before write-back has begun, less the time that Linux may take to begin."""
        return now_s - self._progress_s - (0.0 if self._begun else HELD_S)

    @property
    def bytes_per_s(self) -> float:
        """Rate at which the pending writes fell in the last ten seconds; 0 if they did not fall."""
        (start_s, first_bytes), (end_s, last_bytes) = self._seen[0], self._seen[-1]
        return max(first_bytes - last_bytes, 0) / (end_s - start_s) if end_s > start_s else 0.0

    @property
    def remaining_s(self) -> float | None:
        """Time that the rest will take at that rate [s]; None without a rate."""
        left_bytes = max(self._seen[-1][1] - self._level_bytes, 0)
        return left_bytes / self.bytes_per_s if self.bytes_per_s else None


SETTLED_BYTES: Final = 1 << 20
"""Pending writes below this count as settled: the board's own logging never stops completely."""
SHIFT_MAX: Final = 0.02
"""Relative deviation of a steady power from rest up to which it counts as a new idle level; above it, as a tail."""
_PENDING_POLL_S: Final = 0.5
"""Long, because each query costs the board a little."""
_ASK_AGAIN_S: Final = 10.0
"""Interval of queries while the power is not at rest."""
_POLL_S: Final = 0.1


@dataclass
class Settling:
    """Waits on one board and one meter."""

    pending_write_bytes: Callable[[], int]
    history: PowerHistory
    limit_s: float
    """Longest wait for a medium without progress, and for the power to come to rest [s]."""
    check: Callable[[], None]
    show: Callable[[float, float | None], None]
    """Called with the seconds waited so far and the estimated remaining seconds, or None without an estimate."""
    _started_s: float = 0.0

    def wait(self, rest: Rest | None, before_bytes: int, *, synced: bool) -> Notice | None:
        """Waits until writes are on the medium and the power is back at rest, if that is known; returns what is left.

        Args:
            before_bytes: pending writes before the workload; a board that logs never falls below that.
            synced: whether the workload waited for its own writes, so that pending writes are not queried.
        """
        self._started_s = time.monotonic()
        level_bytes = max(before_bytes, SETTLED_BYTES)
        if not synced and (left := self._await_written(level_bytes)):
            return left
        return self._await_rest(rest, level_bytes) if rest else None

    def _await_written(self, level_bytes: int) -> Notice | None:
        """Waits for a medium as long as its writes make progress, however many they are."""
        write_back = WriteBack(level_bytes, time.monotonic())
        while (pending := self.pending_write_bytes()) > level_bytes:
            now_s = time.monotonic()
            write_back.see(pending, now_s)
            self._look(write_back.remaining_s)
            if write_back.still_s(now_s) > self.limit_s:
                line = (
                    f"{pending / 1e6:.0f} MB still wait to be written to the medium, hardly fewer than "
                    f"{self.limit_s:g} s ago. A program goes on writing, or the medium hangs"
                )
                remedy = "end the program, or look for the medium's errors in the board's kernel log (dmesg)"
                return Notice(NoticeKind.UNSETTLED, line, remedy, (ABOVE_IDLE,))
            time.sleep(_PENDING_POLL_S)
        return None

    def _await_rest(self, rest: Rest, level_bytes: int) -> Notice | None:
        """Waits for the power to come to rest; meanwhile checks at intervals whether the medium still writes."""
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


def _not_at_rest(now: Calm | None, rest: Rest, limit_s: float) -> Notice:
    """A fault, or a note if idle power can still be measured: little above idle, and not changing."""
    if now is None:
        line = f"settle saw less than {QUIET_S} s of samples in {limit_s:g} s"
        return Notice(NoticeKind.UNSETTLED, line, "raise --settle-limit", (ABOVE_IDLE,))
    above = f"{1e3 * now.above_w:+.3g} mW from idle, after {limit_s:g} s"
    if not now.steady or abs(now.above_w) > SHIFT_MAX * abs(rest.mean_w):
        why = "although no writes are pending. The medium or a program is still at work"
        line = f"power not at rest: {above}, {why}"
        return Notice(NoticeKind.UNSETTLED, line, "raise --settle-limit", (ABOVE_IDLE,))
    if now.in_bursts:
        line = f"power at rest except for bursts: {above}. The idle phase was too short to show such bursts"
        return Notice(NoticeKind.ABOVE_IDLE, line, "raise --idle")
    line = f"power steady, but {above}. The board is warmer or cooler than before the run"
    return Notice(NoticeKind.ABOVE_IDLE, line, "raise --settle-limit")
