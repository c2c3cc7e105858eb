"""The number of each sample since the device's start, with everything lost counted in.

The device converts once each 200 us whatever happens. A sample's number is therefore its time on the device's own
crystal. Samples that the device's queue of 16 could not hold are in its drop count, packets that the host lost
in their sequence number. What neither tells of still shows against the clock of arrival.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.meters.monsoon.models import SAMPLE_PERIOD_NS
from opjoule.meters.monsoon.packets import OBSERVATIONS_MAX, Packets
from opjoule.meters.streaming import DelayWatch

Int64Array = npt.NDArray[np.int64]

NO_COUNT: Final = 0xFFFF
"""What the drop count reads just after start, before it counts."""
UNEXPLAINED_NS: Final = 5_000_000
"""A least delay that grows by more than this is time that nothing accounts for; the device's queue holds 3.2 ms."""


class SampleClock:
    """Numbers the observations of one run."""

    def __init__(self, delays: DelayWatch) -> None:
        self._next = 0
        self._dropped = NO_COUNT
        self._sequence: int | None = None
        self._delays = delays
        self.lost_packets = 0
        """packets missing from the sequence"""
        self.unexplained = 0
        """samples that only the clock of arrival tells of"""

    def first_numbers(self, packets: Packets, arrival_ns: Int64Array) -> Int64Array:
        """Number of the first observation of each packet since start, shape (n,).

        Args:
            arrival_ns: when each packet reached the host [host_ns], shape (n,).
        """
        lost_packets = self._missing_packets(packets.sequence)
        lost = self._dropped_since(packets.dropped) + OBSERVATIONS_MAX * lost_packets
        self.lost_packets += int(lost_packets.sum())
        ends = self._next + np.cumsum(lost + packets.count)
        late = round(self._delays.missing_ns(ends * SAMPLE_PERIOD_NS, arrival_ns) / SAMPLE_PERIOD_NS)
        self.unexplained += late
        ends += late
        self._next = int(ends[-1])
        return np.asarray(ends - packets.count, np.int64)

    def _missing_packets(self, sequence: Int64Array) -> Int64Array:
        before = (int(sequence[0]) - 1) % 16 if self._sequence is None else self._sequence
        self._sequence = int(sequence[-1])
        return (np.diff(sequence, prepend=before) - 1) % 16

    def _dropped_since(self, dropped: Int64Array) -> Int64Array:
        counts = np.concatenate([[self._dropped], dropped])
        self._dropped = int(dropped[-1])
        steps = np.diff(counts) % (NO_COUNT + 1)
        # Until the device counts, its value is no count, and neither is the step to the first one.
        steps[(counts[:-1] == NO_COUNT) | (counts[1:] == NO_COUNT)] = 0
        return steps
