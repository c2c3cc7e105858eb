"""Latency of operations: mean, percentiles and the worst."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from opjoule.operations.operation_table import OperationTable


@dataclass(frozen=True)
class Latency:
    """Latencies [s] of some operations."""

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
    return Latency(
        mean_s(duration_ns), *(percentile_s(duration_ns, percent) for percent in (50, 95, 99, 100))
    )


def mean_s(duration_ns: npt.NDArray[np.int64]) -> float:
    """Mean of some durations, shape (n,), n > 0 [s]."""
    return float(duration_ns.mean()) * 1e-9


def percentile_s(duration_ns: npt.NDArray[np.int64], percent: float) -> float:
    """The least of some durations, shape (n,), n > 0, that `percent` of them do not exceed (nearest rank) [s]."""
    rank = max(math.ceil(duration_ns.size * percent / 100), 1) - 1
    return float(np.partition(duration_ns, rank)[rank]) * 1e-9


def latency_by_kind_s(operations: OperationTable) -> dict[str, Latency]:
    """Latency of each kind that occurs."""
    found = {
        name: latency_s(operations.duration_ns[operations.of_kind(name)]) for name in operations.counts()
    }
    return {name: latency for name, latency in found.items() if latency is not None}
