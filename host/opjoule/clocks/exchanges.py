"""Clock map from request-reply exchanges with the least round trip, tracked over the whole run.

In each exchange, the far clock's reading is, on the near clock, somewhere inside the round trip; half of
the round trip bounds the error, whatever the asymmetry of the two directions. Only the fastest exchange of each part of
the run is used, because queues only lengthen a round trip; the clock is tracked through these.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.base.errors import AlignmentError, RecordFault, naming
from opjoule.clocks.clock_map import ClockMap, Int64Array
from opjoule.clocks.wandering_clock import follow

EXCHANGES_MIN: Final = 3
PARTS_MAX: Final = 240
"""Greatest number of parts of equal length that the run is cut into."""
EXCHANGES_A_PART: Final = 20
"""Number of exchanges that usually contains one of the fastest."""
STAMP_U_NS: Final = 1000.0
"""Least standard uncertainty of a reading: time stamps taken in user space, ticks of 0.5 us."""
SQRT3: Final = math.sqrt(3.0)


@dataclass(frozen=True)
class Exchange:
    """Four time stamps of one request and its reply."""

    sent_ns: int
    """Near clock when the request left."""
    far_received_ns: int
    """Far clock when the request arrived."""
    far_sent_ns: int
    """Far clock when the reply left."""
    received_ns: int
    """Near clock when the reply arrived."""

    @property
    def round_trip_ns(self) -> int:
        """Travel time in both directions, without the far side's processing [near ns]."""
        return (self.received_ns - self.sent_ns) - (self.far_sent_ns - self.far_received_ns)


def fit_exchanges(exchanges: Sequence[Exchange], near: str, far: str) -> ClockMap:
    """Map from the near clock to the far clock, from exchanges in any order; `near` and `far` name the clocks.

    Returns: map whose u_offset_ns contains the asymmetry bound: half of the mean round trip used, rectangular. Both
        directions may differ in the same sense every time, so averaging does not reduce it.
    Raises: AlignmentError: fewer than 3 usable exchanges.
    """
    usable = [one for one in exchanges if one.received_ns >= one.sent_ns and one.round_trip_ns >= 0]
    if len(usable) < EXCHANGES_MIN:
        raise AlignmentError(
            f"{near} to {far} clock: {len(usable)} usable round-trip exchanges of {len(exchanges)}, "
            f"at least {EXCHANGES_MIN} are needed: record longer"
        )
    near_ns, far_ns, trip_ns = _midpoints(usable)
    # even the fastest exchange was delayed, by about the spread of the fastest tenth
    unseen_ns = float(np.quantile(trip_ns, 0.1) - trip_ns.min())
    fastest = _fastest_of_each_part(near_ns, trip_ns)
    near_ns, far_ns, trip_ns = near_ns[fastest], far_ns[fastest], trip_ns[fastest]
    common_ns = float(trip_ns.mean())
    waited_ns = (trip_ns - trip_ns.min()).astype(np.float64) + unseen_ns
    course = follow(near_ns, far_ns, np.hypot(STAMP_U_NS, waited_ns / 2 / SQRT3))
    return course.clock_map(near, far, "exchanges", common_ns / 2 / SQRT3)


def stamps_ns(exchanges: Sequence[Exchange]) -> Int64Array:
    """The four time stamps of each exchange in their order, shape (n, 4)."""
    return np.array(
        [(one.sent_ns, one.far_received_ns, one.far_sent_ns, one.received_ns) for one in exchanges], np.int64
    )


def _midpoints(exchanges: Sequence[Exchange]) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Near and far time at the middle of each exchange, and its round trip, by near time."""
    stamps = stamps_ns(exchanges)
    # sorted by the middle, because an exchange may begin before another and end after it
    stamps = stamps[np.argsort(stamps[:, 0] + (stamps[:, 3] - stamps[:, 0]) // 2, kind="stable")]
    sent, far_received, far_sent, received = stamps.T
    near_ns = sent + (received - sent) // 2
    far_ns = far_received + (far_sent - far_received) // 2
    return near_ns, far_ns, (received - sent) - (far_sent - far_received)


def _fastest_of_each_part(near_ns: Int64Array, trip_ns: Int64Array) -> Int64Array:
    """Index of the exchange with the least round trip in each part of the run."""
    parts = min(PARTS_MAX, max(near_ns.size // EXCHANGES_A_PART, EXCHANGES_MIN))
    span_ns = int(near_ns[-1] - near_ns[0]) + 1
    part = (near_ns - near_ns[0]) * parts // span_ns
    order = np.lexsort((trip_ns, part))
    _, first = np.unique(part[order], return_index=True)
    return np.sort(order[first]).astype(np.int64)


METER_EXCHANGES = "meter-exchanges.csv"
BOARD_EXCHANGES = "board-exchanges.csv"
"""File names under raw/ of a record."""
_FIELDS = [field.name for field in dataclasses.fields(Exchange)]


class ExchangeFile:
    """Appends to a new CSV file; every line is passed to the kernel at once, so that a killed run keeps it. One thread.

    Raises: FileExistsError: the file exists already; raw data are never overwritten.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("x", encoding="utf-8", buffering=1)
        with naming(path):
            self._file.write(",".join(_FIELDS) + "\n")

    def append(self, exchange: Exchange) -> None:
        """Appends one exchange; time stamps in ns."""
        with naming(self._path):
            self._file.write(",".join(str(value) for value in dataclasses.astuple(exchange)) + "\n")

    def close(self) -> None:
        """Closes the file."""
        with naming(self._path):
            self._file.close()


def read_exchanges(path: Path) -> list[Exchange]:
    """The exchanges of a file in order, without an incomplete last line; empty if there is no file.

    Raises: RecordFault: a line that is not an exchange.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]
        return [Exchange(*map(int, line.split(","))) for line in lines if line.endswith("\n")]
    except (ValueError, TypeError) as fault:
        raise RecordFault(f"{path} is corrupt: {fault}") from None
