"""Cross-check of independent evidence on the same two clocks, which must agree within its stated uncertainty."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.errors import AlignmentError
from opjoule.clocks.clock_map import ClockMap

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
