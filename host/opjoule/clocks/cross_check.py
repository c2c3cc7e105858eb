"""Independent evidence on the same two clocks must agree within its stated uncertainty."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from opjoule.clocks.clock_map import ClockMap
from opjoule.errors import AlignmentError
from opjoule.units import COVERAGE_FACTOR

POINTS = 5


@dataclass(frozen=True)
class Check:
    """One cross-check of two clock maps."""

    name: str
    """The two methods compared."""
    passed: bool
    difference_ns: float
    """Difference where it is largest against its limit [target ns]."""
    limit_ns: float
    """Expanded uncertainty (k = 2) of the difference there [target ns]."""
    detail: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in result.json under alignment.checks."""
        return asdict(self)


def agree(a: ClockMap, b: ClockMap, over: tuple[int, int]) -> Check:
    """Whether two independent maps between the same clocks agree over a stretch of the source clock.

    Args:
        over: start and end of the stretch where the maps are used [source ns].
    Raises: AlignmentError: the maps are not between the same clocks.
    """
    if (a.source, a.target) != (b.source, b.target):
        raise AlignmentError(f"cannot compare {a.source}->{a.target} with {b.source}->{b.target}")
    step = (over[1] - over[0]) / (POINTS - 1)
    compared = [_compare(a, b, over[0] + round(index * step)) for index in range(POINTS)]
    difference_ns, limit_ns = max(compared, key=lambda pair: abs(pair[0]) / max(pair[1], 1.0))
    passed = abs(difference_ns) <= max(limit_ns, 1.0)
    verdict = "agree" if passed else "disagree"
    apart = f"{difference_ns / 1e3:.1f} us apart, limit {limit_ns / 1e3:.1f} us"
    detail = f"{a.method} and {b.method} {verdict}: {apart}"
    return Check(f"{a.method} against {b.method}", passed, difference_ns, limit_ns, detail)


def _compare(a: ClockMap, b: ClockMap, source_ns: int) -> tuple[float, float]:
    limit_ns = COVERAGE_FACTOR * math.hypot(a.u_ns(source_ns), b.u_ns(source_ns))
    return float(a.to_target(source_ns) - b.to_target(source_ns)), limit_ns


def not_comparable(name: str, reason: str) -> Check:
    """A check that could not be made; it does not pass."""
    return Check(name, False, float(np.inf), 0.0, reason)
