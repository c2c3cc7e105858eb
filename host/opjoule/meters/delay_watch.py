"""Time that a device's own counts do not explain, seen on the clock of arrival.

Data arrives late whenever the host is busy, but never early. So it is the least delay over a second that counts:
if that grows, samples are missing which no counter told of.
"""

import numpy as np
import numpy.typing as npt

WINDOW_NS = 1_000_000_000


class DelayWatch:
    """Watches one stream."""

    def __init__(self, limit_ns: int) -> None:
        """`limit_ns`: growth of the least delay that buffers alone could cause."""
        self._limit_ns = limit_ns
        self._window: tuple[int, int] | None = None
        """(start on the device's clock, least delay so far) of the present window"""
        self._usual_ns: int | None = None

    def missing_ns(self, end_ns: npt.NDArray[np.int64], arrival_ns: npt.NDArray[np.int64]) -> int:
        """Unexplained time before the end of these data [ns], mostly 0; the caller adds it to the device's clock.

        Args:
            end_ns: ends of pieces of data by the device's counts; arrival_ns: when each came [host_ns]; shape (n,).
        """
        least_ns = int((arrival_ns - end_ns).min())
        if self._window is None:
            self._window = int(end_ns[0]), least_ns
            return 0
        start_ns, so_far_ns = self._window
        least_ns = min(so_far_ns, least_ns)
        self._window = start_ns, least_ns
        if int(end_ns[-1]) - start_ns < WINDOW_NS:
            return 0
        self._window = None
        missing_ns = 0 if self._usual_ns is None else least_ns - self._usual_ns
        if missing_ns <= self._limit_ns:
            self._usual_ns = least_ns
            return 0
        return missing_ns
