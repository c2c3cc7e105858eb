"""A map from one clock to another: straight line, with the standard uncertainty of what it returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from opjoule.errors import AlignmentError, RecordFault

Nanoseconds = TypeVar("Nanoseconds", int, npt.NDArray[np.int64])


@dataclass(frozen=True)
class ClockMap:
    """target_ns = target_ref_ns + rate * (source_ns - source_ref_ns).

    The reference lies where offset and rate are uncorrelated (the weighted centre of the evidence), so that
    the variance at any time is that of the offset plus that of the rate times the squared distance.
    All uncertainties are standard (k = 1). Source: JCGM 100:2008, 5.1.2 and H.3 (straight-line calibration).
    """

    source: str
    """Clock that is mapped: "meter", "board" or "host"."""
    target: str
    """Clock that it is mapped to."""
    source_ref_ns: int
    target_ref_ns: int
    rate: float
    """Target nanoseconds per source nanosecond, near 1."""
    u_offset_ns: float
    """Standard uncertainty at the reference [target ns]."""
    u_rate: float
    """Standard uncertainty of the rate."""
    method: str
    """Kind of evidence: "sync-edges", "exchanges", "signature"; joined by "+" after `then`."""
    residual_ns: float
    """Root mean square distance of the evidence from the line [ns]."""
    n: int
    """Pieces of evidence used."""

    def __post_init__(self) -> None:
        if not abs(self.rate - 1.0) < 0.1:
            raise AlignmentError(
                f"{self.source} to {self.target} clock: rate {self.rate:.6g} is not near 1; "
                "check the meter's tick rate"
            )

    def to_target(self, source_ns: Nanoseconds) -> Nanoseconds:
        """Times on the target clock [ns], for one time or an int64 array, rounded to 1 ns.

        Only the small correction (rate - 1) goes through floating point.
        """
        distance = source_ns - self.source_ref_ns
        if isinstance(distance, np.ndarray):
            correction = np.rint(distance.astype(np.float64) * (self.rate - 1.0)).astype(np.int64)
            moved: npt.NDArray[np.int64] = self.target_ref_ns + distance + correction
            return moved
        return self.target_ref_ns + distance + round(float(distance) * (self.rate - 1.0))

    def u_ns(self, source_ns: int) -> float:
        """Standard uncertainty of `to_target(source_ns)` [ns]."""
        return math.hypot(self.u_offset_ns, self.u_rate * float(source_ns - self.source_ref_ns))

    def inverse(self) -> ClockMap:
        """The map from target to source; there and back is within 1 ns."""
        return ClockMap(
            source=self.target,
            target=self.source,
            source_ref_ns=self.target_ref_ns,
            target_ref_ns=self.source_ref_ns,
            rate=1.0 / self.rate,
            u_offset_ns=self.u_offset_ns / self.rate,
            u_rate=self.u_rate / self.rate**2,
            method=self.method,
            residual_ns=self.residual_ns / self.rate,
            n=self.n,
        )

    def then(self, other: ClockMap) -> ClockMap:
        """This map followed by an independent one; the variances of the two add at every time.

        Raises: AlignmentError: this map does not end on the clock that the other begins with.
        """
        if self.target != other.source:
            raise AlignmentError(
                f"cannot chain {self.source}->{self.target} with {other.source}->{other.target}"
            )
        reference_ns = self._joint_reference_ns(other)
        between_ns = self.to_target(reference_ns)
        return ClockMap(
            source=self.source,
            target=other.target,
            source_ref_ns=reference_ns,
            target_ref_ns=other.to_target(between_ns),
            rate=self.rate * other.rate,
            u_offset_ns=math.hypot(self.u_ns(reference_ns) * other.rate, other.u_ns(between_ns)),
            u_rate=math.hypot(self.u_rate * other.rate, other.u_rate * self.rate),
            method=f"{self.method}+{other.method}",
            residual_ns=math.hypot(self.residual_ns, other.residual_ns),
            n=min(self.n, other.n),
        )

    def _joint_reference_ns(self, other: ClockMap) -> int:
        """Where the summed variance of both maps is least: there offset and rate are uncorrelated again."""
        other_ref_ns = self.inverse().to_target(other.source_ref_ns)
        own, others = self.u_rate**2, other.u_rate**2
        share = others / (own + others) if own + others > 0 else 0.0
        return self.source_ref_ns + round((other_ref_ns - self.source_ref_ns) * share)

    def to_json(self) -> dict[str, Any]:
        """As it stands in run.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> ClockMap:
        """The map that `to_json` wrote.

        Raises: RecordFault: a field is missing or of another type.
        """
        try:
            return cls(**entry)
        except TypeError as fault:
            raise RecordFault(f"clock map in run.json: {fault}") from None


def identity(source: str, target: str, method: str) -> ClockMap:
    """The map between two names of one clock, for example board and host when they are one computer."""
    return ClockMap(source, target, 0, 0, 1.0, 0.0, 0.0, method, 0.0, 0)
