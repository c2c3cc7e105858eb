"""Waiting until what a workload has begun is over: pending writes, background work, the medium's own tail."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from opjoule.measurement.quiet import Rest, calm
from opjoule.trace.power_history import PowerHistory

SETTLED_BYTES: Final = 1 << 20
"""Pending writes below this count as settled: the board's own logging never quite stops."""
PROGRESS_BYTES: Final = 16 << 20
"""So much less to be written is progress: the limit counts anew."""
SHIFT_MAX: Final = 0.02
"""A steady power this far from rest, relative, is taken for another idle level; beyond it for a tail that goes on."""
_PENDING_POLL_S: Final = 0.5
"""Seldom: each question costs the board a little."""
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
        show: Callable[[float], None],
    ) -> None:
        """Keeps what it waits on.

        Args:
            pending_write_bytes: asks the board.
            check: raises what ends the measurement.
            show: called with the seconds waited so far.
        """
        self._pending_write_bytes = pending_write_bytes
        self._history = history
        self._limit_s = limit_s
        self._check = check
        self._show = show

    def wait(self, writes: Left, rest: Rest | None) -> Unsettled | None:
        """Waits until writes are on the medium and the power is back at rest; what was not, or None.

        Args:
            rest: power at rest; None where it is not known, then only the writes are waited for.
        """
        if not writes.written and (left := self._await_written(writes.before_bytes)):
            return left
        return self._await_rest(rest) if rest else None

    def _await_written(self, before_bytes: int) -> Unsettled | None:
        """A medium that gets on with its writes is waited for, however many they are."""
        level_bytes = max(before_bytes, SETTLED_BYTES)
        progress_s, least_bytes = time.monotonic(), math.inf
        while (pending := self._pending_write_bytes()) > level_bytes:
            if pending <= least_bytes - PROGRESS_BYTES:
                progress_s, least_bytes = time.monotonic(), pending
            if self._out_of_time(progress_s):
                line = (
                    f"{pending} bytes still to be written, and hardly fewer for {self._limit_s:g} s: something goes on "
                    "writing; end it, or raise --settle-limit"
                )
                return Unsettled(line, pollutes_idle=True)
            time.sleep(_PENDING_POLL_S)
        return None

    def _await_rest(self, rest: Rest) -> Unsettled | None:
        started_s = time.monotonic()
        since_ns = self._history.end_ns
        while not ((now := calm(self._history, rest, since_ns)) and now.quiet):
            if self._out_of_time(started_s):
                if now is None:
                    return Unsettled(
                        f"the power was not seen at rest within {self._limit_s:g} s; raise --settle-limit",
                        True,
                    )
                shifted = now.steady and abs(now.above_w) <= SHIFT_MAX * abs(rest.mean_w)
                state = "steady" if shifted else "not at rest"
                return Unsettled(
                    f"power {state}, {1e3 * now.above_w:+.3g} mW from idle, after {self._limit_s:g} s; raise "
                    "--settle-limit, or let the board come to an even temperature",
                    pollutes_idle=not shifted,
                )
            time.sleep(_POLL_S)
        return None

    def _out_of_time(self, started_s: float) -> bool:
        self._check()
        waited_s = time.monotonic() - started_s
        self._show(waited_s)
        return waited_s > self._limit_s
