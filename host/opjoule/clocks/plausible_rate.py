"""Whether the rates of two clocks were plausible for their oscillators, over every stretch of a run.

A round trip encloses the far clock's reading, so that it bounds that clock. If no two clocks within their makers'
bounds fit all round trips, one of them stopped, was set, or was simulated at another speed. Examples are a suspended
computer (CLOCK_MONOTONIC stops then: Linux clock_gettime(2)), a paused virtual machine, and a clock that is slewed by
thousands of ppm (chrony's maxslewrate is 83,333 ppm by default: chrony.conf(5)).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.clocks.clock_map import ClockMap, Float64Array, Int64Array
from opjoule.clocks.exchanges import Exchange, stamps_ns

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
