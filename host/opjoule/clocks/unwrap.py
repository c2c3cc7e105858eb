"""From wrapping 32-bit tick counts to 64-bit time."""

from __future__ import annotations

WRAP = 1 << 32


class TickUnwrapper:
    """Gives wrapping u32 ticks their place on one endless tick axis.

    A count is placed within half a wrap (17.9 min at 2 MHz) of the ones before it, so that slightly older counts
    (an edge reported after a newer sample) come out right. One that is more than a quarter of a wrap away, as a
    forged one may be, leads no other astray: the next must bear it out. Across a longer silence give `near_ticks`.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._doubted: int | None = None

    def unwrap(self, ticks: int, near_ticks: int | None = None) -> int:
        """Unwrapped ticks of one count.

        Args:
            ticks: 0 to 2^32 - 1.
            near_ticks: where the count is expected on the unwrapped axis, for example from the host's clock.
        """
        reference = self._last if near_ticks is None else near_ticks
        placed = ticks if reference is None else _nearest_to(reference, ticks)
        if near_ticks is not None or any(_near(placed, known) for known in (self._last, self._doubted)):
            self._last, self._doubted = placed, None
        elif self._last is None:
            self._last = placed
        else:
            self._doubted = placed
        return placed


def _near(placed: int, known: int | None) -> bool:
    return known is not None and abs(placed - known) <= WRAP // 4


def _nearest_to(reference: int, ticks: int) -> int:
    """The place of a wrapped count that is nearest to a reference."""
    return reference + ((ticks - reference + WRAP // 2) % WRAP) - WRAP // 2
