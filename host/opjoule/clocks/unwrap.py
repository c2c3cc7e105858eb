"""Conversion of wrapping 32-bit tick counts to 64-bit time."""

WRAP = 1 << 32


def signed_difference(later: int, earlier: int, bits: int) -> int:
    """`later - earlier` of counters that wrap at 2^bits, as the smallest difference; negative if `later` is older."""
    span = 1 << bits
    return (later - earlier + span // 2) % span - span // 2


class TickUnwrapper:
    """Converts wrapping u32 ticks to positions on an unlimited tick axis.

    A count is placed within half a wrap (17.9 min at 2 MHz) of the preceding ones, so that slightly older counts (an
    edge reported after a newer sample) are correct. A count more than a quarter of a wrap away, for example a forged
    one, affects later ones only if the next count confirms it. Across a longer silence pass `near_ticks`.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._doubted: int | None = None

    def unwrap(self, ticks: int, near_ticks: int | None = None) -> int:
        """Unwrapped ticks of one count from 0 to 2^32 - 1; `near_ticks`: its expected place on the unwrapped axis."""
        reference = self._last if near_ticks is None else near_ticks
        placed = ticks if reference is None else reference + signed_difference(ticks, reference, 32)
        known = [place for place in (self._last, self._doubted) if place is not None]
        if near_ticks is not None or any(abs(placed - place) <= WRAP // 4 for place in known):
            self._last, self._doubted = placed, None
        elif self._last is None:
            self._last = placed
        else:
            self._doubted = placed
        return placed
