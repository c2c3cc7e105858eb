"""From wrapping 32-bit tick counts to 64-bit time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

WRAP = 1 << 32


class TickUnwrapper:
    """Gives wrapping u32 ticks their place on one endless tick axis.

    A count is placed within half a wrap (17.9 min at 2 MHz) of the latest one seen, so that slightly older
    counts (an edge reported after a newer sample) come out right; across a longer silence give `near_ticks`.
    """

    def __init__(self) -> None:
        self._latest: int | None = None

    def unwrap(self, ticks: int, near_ticks: int | None = None) -> int:
        """Unwrapped ticks of one count.

        Args:
            ticks: 0 to 2^32 - 1.
            near_ticks: where the count is expected on the unwrapped axis, for example from the host's clock.
        """
        reference = self._latest if near_ticks is None else near_ticks
        placed = ticks if reference is None else _nearest_to(reference, ticks)
        self._latest = placed if self._latest is None else max(self._latest, placed)
        return placed

    def unwrap_array(self, ticks: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Unwrapped ticks of counts in the order of their making, neighbours less than half a wrap apart."""
        if ticks.size == 0:
            return np.empty(0, np.int64)
        first = self.unwrap(int(ticks[0]))
        steps = np.diff(ticks.astype(np.uint32)).astype(np.int32).astype(np.int64)
        placed = first + np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)])
        self._latest = max(int(placed.max()), first if self._latest is None else self._latest)
        return placed


def _nearest_to(reference: int, ticks: int) -> int:
    """The place of a wrapped count that is nearest to a reference."""
    return reference + ((ticks - reference + WRAP // 2) % WRAP) - WRAP // 2
