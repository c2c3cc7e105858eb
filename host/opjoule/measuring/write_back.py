"""How a medium gets on with what is still to be written to it, from the board's pending writes as they shrink."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

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
        """Begins to follow.

        Args:
            level_bytes: pending writes at which all is written.
        """
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

    def stands_still_s(self, now_s: float) -> float:
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
