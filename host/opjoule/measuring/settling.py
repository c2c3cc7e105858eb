"""Waiting until what a workload has begun is over: pending writes, background work, the medium's own tail."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from opjoule.measuring.quiet import QUIET_S, Calm, Rest, calm
from opjoule.measuring.write_back import WriteBack
from opjoule.trace.power_history import PowerHistory

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


class Settling:
    """Waits on one board and one meter."""

    def __init__(
        self,
        pending_write_bytes: Callable[[], int],
        history: PowerHistory,
        limit_s: float,
        *,
        check: Callable[[], None],
        show: Callable[[float, float | None], None],
    ) -> None:
        """Keeps what it waits on.

        Args:
            pending_write_bytes: asks the board.
            limit_s: longest wait for a medium that does not get on, and for the power to come to rest [s].
            check: raises what ends the measurement.
            show: called with the seconds waited so far, and those that remain, None where nothing tells them.
        """
        self._pending_write_bytes = pending_write_bytes
        self._history = history
        self._limit_s = limit_s
        self._check = check
        self._show = show
        self._started_s = 0.0

    def wait(self, writes: Left, rest: Rest | None) -> Unsettled | None:
        """Waits until writes are on the medium and the power is back at rest; what was not, or None.

        Args:
            rest: power at rest; None where it is not known, then only the writes are waited for.
        """
        self._started_s = time.monotonic()
        level_bytes = max(writes.before_bytes, SETTLED_BYTES)
        if not writes.written and (left := self._await_written(level_bytes)):
            return left
        return self._await_rest(rest, level_bytes) if rest else None

    def _await_written(self, level_bytes: int) -> Unsettled | None:
        """A medium that gets on with its writes is waited for, however many they are."""
        write_back = WriteBack(level_bytes, time.monotonic())
        while (pending := self._pending_write_bytes()) > level_bytes:
            now_s = time.monotonic()
            write_back.see(pending, now_s)
            self._look(write_back.remaining_s)
            if write_back.stands_still_s(now_s) > self._limit_s:
                line = (
                    f"{pending / 1e6:.0f} MB still wait to be written to the medium, hardly fewer than "
                    f"{self._limit_s:g} s ago. A program goes on writing, or the medium hangs: end the "
                    "program, or look for the medium's errors in the board's kernel log (dmesg)"
                )
                return Unsettled(line, pollutes_idle=True)
            time.sleep(_PENDING_POLL_S)
        return None

    def _await_rest(self, rest: Rest, level_bytes: int) -> Unsettled | None:
        """Where the power does not come to rest, the board is asked now and then whether its medium still writes."""
        ask_again_s = min(_ASK_AGAIN_S, self._limit_s / 2)
        limit_s = time.monotonic() + self._limit_s
        asked_s, since_ns = time.monotonic(), self._history.end_ns
        while not ((now := calm(self._history, rest, since_ns)) and now.quiet):
            now_s = time.monotonic()
            self._look(None)
            if now_s > limit_s:
                return _not_at_rest(now, rest, self._limit_s)
            if now_s - asked_s > ask_again_s:
                asked_s = now_s
                if self._pending_write_bytes() > level_bytes:
                    if left := self._await_written(level_bytes):
                        return left
                    asked_s, since_ns = time.monotonic(), self._history.end_ns
                    limit_s += asked_s - now_s
            time.sleep(_POLL_S)
        return None

    def _look(self, remaining_s: float | None) -> None:
        self._check()
        self._show(time.monotonic() - self._started_s, remaining_s)


def _not_at_rest(now: Calm | None, rest: Rest, limit_s: float) -> Unsettled:
    """In words, and whether idle power can still be measured: above idle by little, and no more changing."""
    if now is None:
        line = f"settle saw less than {QUIET_S} s of samples in {limit_s:g} s; raise --settle-limit"
        return Unsettled(line, pollutes_idle=True)
    above = f"{1e3 * now.above_w:+.3g} mW from idle, after {limit_s:g} s"
    if not now.steady or abs(now.above_w) > SHIFT_MAX * abs(rest.mean_w):
        line = (
            f"power not at rest: {above}, although no writes are pending. The medium or a program is still "
            "at work; raise --settle-limit"
        )
        return Unsettled(line, pollutes_idle=True)
    if now.in_bursts:
        line = (
            f"power at rest except for bursts: {above}. The idle phase was too short to show such "
            "bursts; raise --idle"
        )
    else:
        line = (
            f"power steady, but {above}. The board is warmer or cooler than before the run; raise "
            "--settle-limit"
        )
    return Unsettled(line, pollutes_idle=False)
