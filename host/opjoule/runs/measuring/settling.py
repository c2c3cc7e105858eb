"""The wait until a workload's effects are over: pending writes, background work, the tail of a medium or an engine.

Whether the board is back at rest, only the meter says, so that the check itself does nothing on the board. At rest
means: for the last five seconds, each second's mean power is within the tolerance of the idle power measured before.
The tolerance combines its noise, its standard uncertainty, and the wander that an idle phase of that length cannot
show.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR, student_t
from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.trace.power_history import BLOCKS_PER_SECOND, PowerHistory
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.runs.record.result import ABOVE_IDLE

QUIET_S: Final = 5
"""Number of consecutive seconds that must be at rest."""
JUDGED_S: Final = 20
"""Number of seconds, if available, that classify a power that did not come to rest."""
DEVIATIONS: Final = 3.0
"""Standard deviations of a second's mean that count as noise."""
FLOOR: Final = 1e-3
"""Fraction of the power below which a difference may be due to the steps of a 12-bit sensor: an INA219's 4 mV are
0.08 % of 5 V, and its 10 uV are 0.02 % of the current of an idle board (SBOS448G, 7.5)."""
UNSEEN: Final = 2e-3
"""Assumed standard deviation of idle wander within ten seconds, as a fraction of the power: ripple that beats
with the voltage's readings, regulators, daemons. Chosen; validation/settle_trials.py shows its cost."""
SHOWN_S: Final = 10.0
"""Length of an idle phase that shows its wander by itself."""
_BLOCKS_MIN: Final = 3
_GROUPS_MIN: Final = 3


@dataclass(frozen=True)
class Rest:
    """Power at rest, with its uncertainty."""

    mean_w: float
    noise_w: float
    """Standard deviation of the mean of one second [W], widened if estimated from few seconds."""
    mean_u_w: float
    """Standard uncertainty of mean_w [W], including the wander that a phase of its length cannot show."""

    @classmethod
    def of(cls, history: PowerHistory, start_meter_ns: int, end_meter_ns: int) -> Self | None:
        """Rest power from a stretch of a trace; None if fewer than three tenths of a second have samples."""
        blocks_w = history.blocks_w(start_meter_ns, end_meter_ns)
        if blocks_w.size < _BLOCKS_MIN:
            return None
        seconds = _known(history.seconds_w(start_meter_ns, end_meter_ns))
        widened = student_t(blocks_w.size - 1) / COVERAGE_FACTOR
        noise_w = widened * float(blocks_w.std(ddof=1)) / math.sqrt(BLOCKS_PER_SECOND)
        if seconds.size >= _GROUPS_MIN:
            widened = student_t(seconds.size - 1) / COVERAGE_FACTOR
            noise_w = max(noise_w, float(seconds.std(ddof=1)) * widened)
        mean_w, length_s = float(blocks_w.mean()), (end_meter_ns - start_meter_ns) * 1e-9
        unseen_w = UNSEEN * abs(mean_w) * math.sqrt(max(1.0 - length_s / SHOWN_S, 0.0))
        return cls(mean_w, noise_w, math.hypot(noise_w / math.sqrt(max(length_s, 1.0)), unseen_w))

    @property
    def tolerance_w(self) -> float:
        """Tolerance of the mean of a second at rest, about mean_w [W]."""
        return max(DEVIATIONS * math.hypot(self.noise_w, self.mean_u_w), FLOOR * abs(self.mean_w))


@dataclass(frozen=True)
class Calm:
    """Comparison of the newest seconds with rest."""

    quiet: bool
    """Whether each of the newest five is within the tolerance of rest."""
    above_w: float
    """Mean of the newest twenty less that of rest [W]."""
    steady: bool
    """Whether the newest twenty change from their first half to their second by no more than their scatter: a new level
    or recurring bursts, not a falling tail."""
    in_bursts: bool
    """Whether more than half of the newest twenty are within the tolerance of rest: the excess comes in bursts."""


def calm(history: PowerHistory, rest: Rest, since_meter_ns: int) -> Calm | None:
    """Compares the newest seconds of a trace with rest; None if fewer than five have passed since `since_meter_ns`."""
    end_ns = history.end_ns
    start_ns = max(since_meter_ns, end_ns - JUDGED_S * 1_000_000_000)
    seconds = history.seconds_w(start_ns, end_ns)
    newest, seconds = seconds[-QUIET_S:], _known(seconds)
    if newest.size < QUIET_S or not np.isfinite(newest).all():
        return None
    half = seconds.size // 2
    first, last = seconds[:half], seconds[-half:]
    moved_w = abs(float(last.mean() - first.mean()))
    scatter_w = math.hypot(float(first.std(ddof=1)), float(last.std(ddof=1))) / math.sqrt(half)
    off = np.abs(seconds - rest.mean_w)
    return Calm(
        bool(np.all(np.abs(newest - rest.mean_w) <= rest.tolerance_w)),
        float(seconds.mean()) - rest.mean_w,
        moved_w <= max(rest.tolerance_w, DEVIATIONS * scatter_w),
        float(np.median(off)) <= rest.tolerance_w,
    )


def _known(seconds_w: Float64Array) -> Float64Array:
    return seconds_w[np.isfinite(seconds_w)]


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
