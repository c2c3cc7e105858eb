"""Latency of operations: mean, percentiles and the worst."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from opjoule.operations.operation_table import KINDS, OperationTable


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
    """Latency of the operations with these durations; None without any.

    Percentiles are nearest-rank: the least latency that p percent of the operations do not exceed.
    """
    count = duration_ns.size
    if count == 0:
        return None
    ranks = [max(math.ceil(count * percent / 100), 1) - 1 for percent in (50, 95, 99, 100)]
    ordered = np.partition(duration_ns, ranks)
    p50, p95, p99, worst = (float(ordered[rank]) * 1e-9 for rank in ranks)
    return Latency(float(duration_ns.mean()) * 1e-9, p50, p95, p99, worst)


def latency_by_kind_s(operations: OperationTable) -> dict[str, Latency]:
    """Latency of each kind that occurs."""
    found = {
        name: latency_s(operations.duration_ns[operations.kind == code]) for code, name in enumerate(KINDS)
    }
    return {name: latency for name, latency in found.items() if latency is not None}
