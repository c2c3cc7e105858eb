"""Latency of operations: mean, percentiles and the worst."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.operations.operation_table import OperationTable

PERCENTILES: Final = (50, 95, 99, 100)
"""In the order of Latency's fields."""


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
    ranks = [max(math.ceil(duration_ns.size * percent / 100), 1) - 1 for percent in PERCENTILES]
    found_ns = np.partition(duration_ns, ranks)[ranks]
    return Latency(float(duration_ns.mean()) * 1e-9, *(float(each) * 1e-9 for each in found_ns))


def latency_by_kind_s(operations: OperationTable) -> dict[str, Latency]:
    """Latency of each kind that occurs."""
    found = {
        name: latency_s(operations.duration_ns[operations.of_kind(name)]) for name in operations.counts()
    }
    return {name: latency for name, latency in found.items() if latency is not None}
