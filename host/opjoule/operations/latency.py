"""Latency of operations: mean, percentiles and the worst."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

PERCENTILES: Final = (50, 95, 99, 100)
"""In the order of Latency's fields."""
Durations = npt.NDArray[np.int64] | npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Latency:
    """Latencies [s] of some operations; a percentile is the least that so many of them do not exceed (nearest rank)."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float

    def to_json(self) -> dict[str, float]:
        """Mean, p50, p95, p99 and max [s]."""
        return asdict(self)


def latency_s(duration_ns: npt.NDArray[np.int64]) -> Latency | None:
    """Latency of the operations with these durations, shape (n,); None for n = 0."""
    if not duration_ns.size:
        return None
    return latency_of_narrow_s(narrow(duration_ns))


def latency_of_narrow_s(duration_ns: Durations) -> Latency:
    """`latency_s` of one duration or more, as `narrow` gives them."""
    ranks = [max(math.ceil(duration_ns.size * percent / 100), 1) - 1 for percent in PERCENTILES]
    found_ns = np.partition(duration_ns, ranks)[ranks]
    return Latency(float(duration_ns.mean()) * 1e-9, *(float(latency_ns) * 1e-9 for latency_ns in found_ns))


def narrow(duration_ns: npt.NDArray[np.int64]) -> Durations:
    """The durations in 32 bits, which are parted in half the time, where they fit: none of 4.3 s or more."""
    fits = bool(duration_ns.min() >= 0 and duration_ns.max() < 1 << 32)
    return duration_ns.astype(np.uint32) if fits else duration_ns
