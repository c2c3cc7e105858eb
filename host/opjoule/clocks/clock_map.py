"""A map from one clock to another: a line, its deviation, and the uncertainty of both; whether two maps agree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.errors import AlignmentError

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
Nanoseconds = TypeVar("Nanoseconds", int, Int64Array)
NS_PER_S = 1e9
END_CORRELATION = 0.8
"""Correlation of offset and rate at the outermost knots: 0.87 for a straight line, 0.71 if the rate does a random
walk."""


class Knot(NamedTuple):
    """Offset and uncertainty at one moment."""

    source_ns: int
    away_ns: float
    """Deviation of the target clock from the map's line [ns]; linear between neighbouring knots."""
    u_ns: float
    """Standard uncertainty of `away_ns`, without the part common to all times [ns]."""
    rate: float
    """Local rate: target nanoseconds per source nanosecond."""
    u_rate: float
    """Standard uncertainty of the local rate."""


class _Table(NamedTuple):
    """The knots by column, each of shape (n,); distances are from the map's reference."""

    distance_ns: Float64Array
    away_ns: Float64Array
    u_ns: Float64Array
    rate: Float64Array
    u_rate: Float64Array


LATEST_NS: Final = 1 << 63
"""Bound of any clock's times, which are numbers of 64 bits."""


@dataclass(frozen=True)
class ClockMap:
    """target_ns = target_ref_ns + rate * (source_ns - source_ref_ns) + away(source_ns).

    `away` is linear between knots, and beyond the outermost knots it follows their rate. A map without knots is a
    straight line: one knot at the reference, where offset and rate are uncorrelated. All uncertainties are
    standard (k = 1). Source: JCGM 100:2008, 5.1.2 and H.3; docs/method/clocks.md.
    """

    source: str
    """Source clock: "meter", "board" or "host"."""
    target: str
    source_ref_ns: int
    target_ref_ns: int
    rate: float
    """Target nanoseconds per source nanosecond, mean over the evidence, near 1; for one time use `rate_at`."""
    u_offset_ns: float
    """Standard uncertainty common to all times [target ns]; without knots the uncertainty at the reference."""
    u_rate: float
    """Standard uncertainty of the mean rate; for one time use `u_rate_at`."""
    method: str
    """Kind of evidence: "sync-edges", "exchanges", "signature"; joined by "+" after `then`."""
    residual_ns: float
    """Root mean square distance of the evidence from the map [ns]."""
    n: int
    """Pieces of evidence used."""
    knots: tuple[Knot, ...] = ()
    """Knots in order of time."""
    wander_per_s: float = 0.0
    """Variance that the local rate gains per second without evidence [1/s]: random walk of the frequency."""

    def __post_init__(self) -> None:
        if max(abs(self.source_ref_ns), abs(self.target_ref_ns)) >= LATEST_NS:
            raise AlignmentError(f"clock map from {self.source} to {self.target}: its reference is no time of a clock")
        if not abs(self.rate - 1.0) < 0.1:
            raise AlignmentError(
                f"{self.source} to {self.target} clock: rate {self.rate:.6g} is not near 1; check the meter's tick rate"
            )

    def to_target(self, source_ns: Nanoseconds) -> Nanoseconds:
        """Times on the target clock [ns], for one time or an int64 array, rounded to 1 ns.

        Only the small correction to the distance from the reference goes through floating point.
        """
        distance = source_ns - self.source_ref_ns
        if isinstance(distance, np.ndarray):
            correction = np.rint(self._beyond_ns(distance.astype(np.float64))).astype(np.int64)
            moved: Int64Array = self.target_ref_ns + distance + correction
            return moved
        return self.target_ref_ns + distance + round(float(self._beyond_ns(np.float64(distance))))

    @overload
    def u_ns(self, source_ns: int) -> float: ...
    @overload
    def u_ns(self, source_ns: Int64Array) -> Float64Array: ...
    def u_ns(self, source_ns: int | Int64Array) -> float | Float64Array:
        """Standard uncertainty of `to_target(source_ns)` [ns], also in gaps of the evidence and beyond it."""
        u = np.hypot(self.u_offset_ns, self._own_u_ns(source_ns))
        return u if isinstance(source_ns, np.ndarray) else float(u)

    def u_duration_ns(self, start_source_ns: int, end_source_ns: int) -> float:
        """Upper bound of the standard uncertainty of a stretch's length on the target clock [ns].

        The uncertainty common to all times cancels. The errors of the two ends may have any correlation, so they add
        linearly.
        """
        ends = np.array([start_source_ns, end_source_ns], np.int64)
        first, last = np.sort(self._distance(ends))
        table = self._table
        inside = table.u_rate[(table.distance_ns > first) & (table.distance_ns < last)]
        rates = max(float(inside.max(initial=0.0)), *(self.u_rate_at(int(end)) for end in ends))
        return min(float(self._own_u_ns(ends).sum()), rates * float(last - first))

    def rate_at(self, source_ns: int) -> float:
        """Local rate at one time: target nanoseconds per source nanosecond."""
        return float(np.interp(self._distance(source_ns), self._table.distance_ns, self._table.rate))

    def u_rate_at(self, source_ns: int) -> float:
        """Standard uncertainty of the local rate at one time."""
        distance = self._distance(source_ns)
        known = float(np.interp(distance, self._table.distance_ns, self._table.u_rate))
        return math.hypot(known, math.sqrt(self.wander_per_s * float(self._outside_s(distance))))

    def inverse(self) -> ClockMap:
        """The map from target to source; a round trip is exact within 1 ns."""
        knots = tuple(
            Knot(target_ns, away_ns, knot.u_ns / knot.rate, 1.0 / knot.rate, knot.u_rate / knot.rate**2)
            for knot, (target_ns, away_ns) in ((knot, self._inverse_away(knot)) for knot in self.knots)
        )
        return replace(
            self,
            source=self.target,
            target=self.source,
            source_ref_ns=self.target_ref_ns,
            target_ref_ns=self.source_ref_ns,
            rate=1.0 / self.rate,
            u_offset_ns=self.u_offset_ns / self.rate,
            u_rate=self.u_rate / self.rate**2,
            residual_ns=self.residual_ns / self.rate,
            knots=knots,
        )

    def then(self, other: ClockMap) -> ClockMap:
        """This map followed by an independent one; the variances of the two add at every time.

        Raises: AlignmentError: this map's target is not the other's source.
        """
        if self.target != other.source:
            raise AlignmentError(f"cannot chain {self.source}->{self.target} with {other.source}->{other.target}")
        straight = not self.knots and not other.knots
        reference_ns = self._joint_reference_ns(other) if straight else self.source_ref_ns
        between_ns = self.to_target(reference_ns)
        shared = self.u_offset_ns, other.u_offset_ns
        if straight:
            shared = self.u_ns(reference_ns), other.u_ns(between_ns)
        line = ClockMap(
            source=self.source,
            target=other.target,
            source_ref_ns=reference_ns,
            target_ref_ns=other.to_target(between_ns),
            rate=self.rate * other.rate,
            u_offset_ns=math.hypot(shared[0] * other.rate, shared[1]),
            u_rate=math.hypot(self.u_rate * other.rate, other.u_rate * self.rate),
            method=f"{self.method}+{other.method}",
            residual_ns=math.hypot(self.residual_ns, other.residual_ns),
            n=min(self.n, other.n),
            wander_per_s=self.wander_per_s + other.wander_per_s,
        )
        return line if straight else replace(line, knots=self._joint_knots(other, line))

    @cached_property
    def _table(self) -> _Table:
        knots = self.knots or (Knot(self.source_ref_ns, 0.0, 0.0, self.rate, self.u_rate),)
        columns = np.array([(float(k.source_ns - self.source_ref_ns), *k[1:]) for k in knots], np.float64)
        return _Table(*columns.T)

    def _distance(self, source_ns: int | Int64Array) -> Float64Array:
        return np.asarray(source_ns - self.source_ref_ns, np.float64)

    def _beyond_ns(self, distance_ns: Float64Array | np.float64) -> Float64Array:
        """Target clock minus target_ref_ns minus the distance."""
        table = self._table
        line = distance_ns * (self.rate - 1.0)
        if not self.knots:
            return np.asarray(line)
        before = np.minimum(distance_ns - table.distance_ns[0], 0.0) * (table.rate[0] - self.rate)
        after = np.maximum(distance_ns - table.distance_ns[-1], 0.0) * (table.rate[-1] - self.rate)
        return np.asarray(line + np.interp(distance_ns, table.distance_ns, table.away_ns) + before + after)

    def _outside_s(self, distance_ns: Float64Array) -> Float64Array:
        """Distance from the nearest knot, outside all of them [s]; 0 inside."""
        nearest_ns = np.clip(distance_ns, *self._table.distance_ns[[0, -1]])
        return np.asarray(np.abs(distance_ns - nearest_ns) / NS_PER_S)

    def _own_u_ns(self, source_ns: int | Int64Array) -> Float64Array:
        """Standard uncertainty without the part common to all times [ns]."""
        distance = self._distance(source_ns)
        table, outside_s = self._table, self._outside_s(distance)
        known = np.interp(distance, table.distance_ns, table.u_ns)
        turned = np.interp(distance, table.distance_ns, table.u_rate) * outside_s * NS_PER_S
        walked2 = self.wander_per_s * outside_s**3 / 3.0 * NS_PER_S**2
        return np.asarray(np.sqrt(known**2 + turned**2 + 2 * END_CORRELATION * known * turned + walked2))

    def _inverse_away(self, knot: Knot) -> tuple[int, float]:
        """A knot's position on the target clock, and the source clock's deviation from the inverse line there."""
        source_distance = float(knot.source_ns - self.source_ref_ns)
        beyond = source_distance * (self.rate - 1.0) + knot.away_ns
        whole = round(beyond)
        target_distance = source_distance + whole
        rounded = (whole - beyond) / knot.rate
        away_ns = rounded - whole - target_distance * (1.0 / self.rate - 1.0)
        return self.target_ref_ns + (knot.source_ns - self.source_ref_ns) + whole, away_ns

    def _joint_reference_ns(self, other: ClockMap) -> int:
        """Moment with the least summed variance of two lines: offset and rate are uncorrelated there."""
        other_ref_ns = self.inverse().to_target(other.source_ref_ns)
        one_u2, others = self.u_rate**2, other.u_rate**2
        share = others / (one_u2 + others) if one_u2 + others > 0 else 0.0
        return self.source_ref_ns + round((other_ref_ns - self.source_ref_ns) * share)

    def _joint_knots(self, other: ClockMap, line: ClockMap) -> tuple[Knot, ...]:
        """Knots at all knots of either of two chained maps."""
        back = self.inverse()
        knots_ns = [knot.source_ns for knot in self.knots] or [self.source_ref_ns]
        others = [knot.source_ns for knot in other.knots] or [other.source_ref_ns]
        source_ns = np.unique(np.array([*knots_ns, *(back.to_target(at) for at in others)], np.int64))
        between_ns = self.to_target(source_ns)
        away_ns = (other.to_target(between_ns) - line.to_target(source_ns)).astype(np.float64)
        u_ns = np.hypot(self._own_u_ns(source_ns) * other.rate, other._own_u_ns(between_ns))
        made = []
        columns = source_ns, between_ns, away_ns, u_ns
        for at, between, away, u in zip(*(column.tolist() for column in columns), strict=True):
            first, second = self.rate_at(at), other.rate_at(between)
            u_rate = math.hypot(self.u_rate_at(at) * second, other.u_rate_at(between) * first)
            made.append(Knot(at, away, u, first * second, u_rate))
        return tuple(made)


def identity(source: str, target: str, method: str) -> ClockMap:
    """Map between two names of the same clock, for example board and host if they are one computer."""
    return ClockMap(source, target, 0, 0, 1.0, 0.0, 0.0, method, 0.0, 0)


POINTS: Final = 33
"""Number of compared moments."""
FACTOR: Final = 3.0
"""Factor of the standard uncertainty: the worst of that many moments exceeds 2 in many correct maps, but 3 in few."""


@dataclass(frozen=True)
class Check:
    """One cross-check of two clock maps."""

    name: str
    """The two methods compared."""
    passed: bool
    difference_ns: float | None
    """Difference where it is largest relative to its limit [target ns]; None if the check could not be made."""
    limit_ns: float
    """Greatest difference there of two maps with correct uncertainties [target ns]."""
    detail: str


def agree(a: ClockMap, b: ClockMap, over: tuple[int, int]) -> Check:
    """Whether two independent maps between the same clocks agree over a stretch of the source clock [source ns].

    Raises: AlignmentError: the maps are not between the same clocks.
    """
    if (a.source, a.target) != (b.source, b.target):
        raise AlignmentError(f"cannot compare {a.source}->{a.target} with {b.source}->{b.target}")
    moments_ns = over[0] + np.linspace(0, over[1] - over[0], POINTS).astype(np.int64)
    differences_ns = (a.to_target(moments_ns) - b.to_target(moments_ns)).astype(np.float64)
    # The expanded common error, and FACTOR times what is independent at each moment.
    shared_ns = COVERAGE_FACTOR * math.hypot(a.u_offset_ns, b.u_offset_ns)
    own_ns2 = sum(np.maximum(one.u_ns(moments_ns) ** 2 - one.u_offset_ns**2, 0.0) for one in (a, b))
    limits_ns = np.maximum(shared_ns + FACTOR * np.sqrt(own_ns2), 1.0)
    worst = int(np.argmax(np.abs(differences_ns) / limits_ns))
    difference_ns, limit_ns = float(differences_ns[worst]), float(limits_ns[worst])
    passed = abs(difference_ns) <= limit_ns
    verdict = "agree" if passed else "disagree"
    apart = f"{difference_ns / 1e3:.1f} us apart, limit {limit_ns / 1e3:.1f} us"
    detail = f"{a.method} and {b.method} {verdict}: {apart}"
    return Check(f"{a.method} against {b.method}", passed, difference_ns, limit_ns, detail)


def not_comparable(name: str, reason: str) -> Check:
    """A check that could not be made; it does not pass."""
    return Check(name, False, None, 0.0, reason)
