"""From wrapping 32-bit tick counts to 64-bit time."""

from __future__ import annotations

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


def _nearest_to(reference: int, ticks: int) -> int:
    """The place of a wrapped count that is nearest to a reference."""
    return reference + ((ticks - reference + WRAP // 2) % WRAP) - WRAP // 2
