"""Clock map from request-reply exchanges with the least round trip, tracked over the whole run.

In each exchange, the far clock's reading is, on the near clock, somewhere inside the round trip; half of
the round trip bounds the error, whatever the asymmetry of the two directions. Only the fastest exchange of each part of
the run is used, because queues only lengthen a round trip; the clock is tracked through these.

The same round trips tell whether the rates of two clocks were plausible for their oscillators. If no two clocks within
their makers' bounds fit all round trips, one of them stopped, was set, or ran at another speed. Examples are a
suspended computer (CLOCK_MONOTONIC stops then: Linux clock_gettime(2)), a paused virtual machine, and a clock that is
slewed by thousands of ppm (chrony's maxslewrate is 83,333 ppm by default: chrony.conf(5)).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from opjoule.base.errors import AlignmentError, RecordFault, naming
from opjoule.clocks.clock_map import ClockMap, Float64Array, Int64Array
from opjoule.clocks.wandering_clock import follow

EXCHANGES_MIN: Final = 3
PARTS_MAX: Final = 240
"""Greatest number of parts of equal length that the run is cut into."""
EXCHANGES_A_PART: Final = 20
"""Number of exchanges that usually contains one of the fastest."""
STAMP_U_NS: Final = 1000.0
"""Least standard uncertainty of a reading: time stamps taken in user space, ticks of 0.5 us."""
SQRT3: Final = math.sqrt(3.0)


class Exchange(NamedTuple):
    """Four time stamps of one request and its reply; a tuple, because a long run has tens of thousands."""

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
    return np.array(exchanges, np.int64).reshape(-1, len(Exchange._fields))


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


class ExchangeFile:
    """Appends to a new CSV file; every line is passed to the kernel at once, so that a killed run keeps it. One thread.

    Raises: FileExistsError: the file exists already; raw data are never overwritten.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("x", encoding="utf-8", buffering=1)
        with naming(path):
            self._file.write(",".join(Exchange._fields) + "\n")

    def append(self, exchange: Exchange) -> None:
        """Appends one exchange; time stamps in ns."""
        with naming(self._path):
            self._file.write(",".join(map(str, exchange)) + "\n")

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
        if lines and not lines[-1].endswith("\n"):
            lines.pop()
        if any(line.count(",") != len(Exchange._fields) - 1 for line in lines):
            raise ValueError("a line has not four times")
        numbers = map(int, ",".join(lines).split(",") if lines else [])
        return [Exchange._make(four) for four in zip(numbers, numbers, numbers, numbers, strict=True)]
    except ValueError as fault:
        raise RecordFault(f"{path} is corrupt: {fault}") from None


SLACK_NS: Final = 1_000_000.0
"""Clock error that causes no warning: too small to affect any energy."""
TOGETHER: Final = 5
"""Number of consecutive exchanges of which the quickest counts: a single delayed answer is not a clock error."""


@dataclass(frozen=True)
class OddStretch:
    """A stretch in which the near clock had an implausible rate."""

    rate: float
    """Seconds of the near clock per second of the far clock."""
    start_s: float
    end_s: float
    """Times on the far clock, since the first comparison."""
    unexplained_s: float
    """Part of the far clock's time there that the bound does not explain."""


def odd_stretch(exchanges: Sequence[Exchange], error_max: float) -> OddStretch | None:
    """The stretch between two exchanges, in order of time, that is farthest beyond a bound; None if all are within it.

    `error_max`: relative bound of the rate of one clock against the other.
    """
    usable = [one for one in exchanges if one.received_ns >= one.sent_ns]
    if len(usable) < 2:
        return None
    sent_ns, far_received_ns, far_sent_ns, received_ns = stamps_ns(usable).T
    apart_ns = _apart_ns(received_ns - sent_ns, far_sent_ns - far_received_ns)
    soonest = _soonest(apart_ns, received_ns - far_sent_ns)
    near_ns, far_ns = (sent_ns + received_ns) // 2, (far_received_ns + far_sent_ns) // 2
    return _worst(near_ns[soonest], far_ns[soonest], apart_ns[soonest] / 2, error_max)


def odd_stretch_of_map(clock_map: ClockMap, over_source_ns: tuple[int, int], error_max: float) -> OddStretch | None:
    """The same for a map, from knot to knot of a stretch of its source clock, which is the near clock."""
    start_ns, end_ns = over_source_ns
    inner = [knot.source_ns for knot in clock_map.knots if start_ns < knot.source_ns < end_ns]
    near_ns = np.array([start_ns, *inner, end_ns], np.int64)
    return _worst(near_ns, clock_map.to_target(near_ns), 3.0 * clock_map.u_ns(near_ns), error_max)


def _apart_ns(waited_ns: Int64Array, answering_ns: Int64Array) -> Int64Array:
    """The time within which both clocks were read: the round trip.

    The far side cannot take longer for its answer than the near side waits for it. If it states so, as a clock does
    that runs too fast, all of the near side's wait counts.
    """
    return np.where(answering_ns <= waited_ns, waited_ns - answering_ns, waited_ns)


def _soonest(apart_ns: Int64Array, answered_ns: Int64Array) -> Int64Array:
    """Index of the shortest delay in each group of consecutive exchanges; on equal delays the earliest answer."""
    size = apart_ns.size
    groups = np.array_split(np.arange(size), max(size // max(min(TOGETHER, size // 4), 1), 1))
    group = np.repeat(np.arange(len(groups)), [members.size for members in groups])
    order = np.lexsort((answered_ns, apart_ns, group))
    return order[np.searchsorted(group, np.arange(len(groups)))]


def _worst(near_ns: Int64Array, far_ns: Int64Array, half_ns: Float64Array, error_max: float) -> OddStretch | None:
    """Checks every pair of moments, in one pass for each sign: the excess over the bound adds up over a stretch."""
    since_ns = (far_ns - far_ns[0]).astype(np.float64)
    ahead_ns = (near_ns - near_ns[0]) - since_ns
    worst: OddStretch | None = None
    for sign in (1.0, -1.0):
        # sign * (ahead_j - ahead_i) may be error_max * (since_j - since_i) and both halves, for all i < j
        later_ns = sign * ahead_ns - error_max * since_ns - half_ns - SLACK_NS
        earlier_ns = sign * ahead_ns - error_max * since_ns + half_ns
        least_ns = np.minimum.accumulate(earlier_ns)
        end = int(np.argmax(later_ns - least_ns))
        beyond_s = float(later_ns[end] - least_ns[end]) * 1e-9
        if beyond_s <= 0 or (worst and beyond_s <= worst.unexplained_s):
            continue
        start = int(np.argmin(earlier_ns[: end + 1]))
        length_ns = max(float(since_ns[end] - since_ns[start]), 1.0)
        rate = float(near_ns[end] - near_ns[start]) / length_ns
        worst = OddStretch(rate, since_ns[start] * 1e-9, since_ns[end] * 1e-9, beyond_s)
    return worst
