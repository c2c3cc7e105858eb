"""How late the board's power follows its operations on the meter's clock."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from opjoule.attribution.least_squares import inverse
from opjoule.attribution.overlap import Waits, operations_in
from opjoule.operations.operation_table import OperationTable
from opjoule.trace.power_trace import Float64Array, Int64Array

STEP_NS: Final = 40_000
FARTHEST_NS: Final = 160_000
SUPPLY_U_NS: Final = 50_000.0
"""Standard uncertainty of what capacitors and regulators delay, before the data are asked."""
OPERATIONS: Final = 1 << 17
"""So many operations tell it."""
_NEAR: Final = 16


def delay_ns(
    edge_board_ns: Int64Array,
    above_j: Float64Array,
    operations: OperationTable,
    waits: Waits,
    map_u_ns: float,
) -> int:
    """The delay with which neighbouring windows agree best with what was done in them.

    Args:
        edge_board_ns: edges of the windows, shape (n + 1,).
        above_j: energy of each, shape (n,).
        map_u_ns: standard uncertainty of the clock map's offset.
    """
    first, last = _busiest(edge_board_ns, operations)
    edges_ns, energy_j = edge_board_ns[first : last + 1], above_j[first:last]
    some = slice(
        *np.searchsorted(operations.board_ns, [edges_ns[0] - FARTHEST_NS, edges_ns[-1] + FARTHEST_NS])
    )
    chosen = operations.select(some)
    if len(chosen) < 2 * _NEAR or energy_j.size < 4 * _NEAR:
        return 0
    tried_ns = np.arange(-FARTHEST_NS, FARTHEST_NS + 1, STEP_NS)
    left = np.array([_left(edges_ns - late_ns, energy_j, chosen, waits) for late_ns in tried_ns.tolist()])
    deviance = energy_j.size * np.log(left) + (tried_ns / math.hypot(SUPPLY_U_NS, map_u_ns)) ** 2
    return round(_lowest(tried_ns, deviance))


def _busiest(edge_board_ns: Int64Array, operations: OperationTable) -> tuple[int, int]:
    """First and last edge of a stretch in the middle that holds OPERATIONS, or of all windows."""
    begun = np.searchsorted(operations.board_ns, edge_board_ns)
    middle = (begun[0] + begun[-1]) // 2
    ends = np.searchsorted(begun, [middle - OPERATIONS // 2, middle + OPERATIONS // 2])
    return int(ends[0]), min(int(ends[1]), edge_board_ns.size - 1)


def _left(edges_ns: Int64Array, energy_j: Float64Array, operations: OperationTable, waits: Waits) -> float:
    """Mean square that counts and busy time leave of the differences between neighbouring windows."""
    count, busy_s = operations_in(edges_ns, operations, waits)
    used = np.flatnonzero(count.any(axis=0))
    rows = np.concatenate([count[:, used], busy_s[:, used], energy_j[:, None]], axis=1)
    near = rows[: len(rows) // _NEAR * _NEAR].reshape(-1, _NEAR, rows.shape[1])
    apart = (near - near.mean(axis=1, keepdims=True)).reshape(-1, rows.shape[1])
    scaled = apart[:, :-1] / np.maximum(np.sqrt(np.mean(apart[:, :-1] ** 2, axis=0)), 1e-300)
    moment = scaled.T @ apart[:, -1]
    square = float(apart[:, -1] @ apart[:, -1])
    return max((square - float(moment @ inverse(scaled.T @ scaled) @ moment)) / len(apart), 1e-300)


def _lowest(x: Int64Array, y: Float64Array) -> float:
    """Where a parabola through the least value and its neighbours is lowest."""
    at = int(np.argmin(y))
    if at in {0, y.size - 1}:
        return float(x[at])
    before, here, after = y[at - 1 : at + 2].tolist()
    bend = before - 2 * here + after
    return float(x[at]) + (STEP_NS * (before - after) / (2 * bend) if bend > 0 else 0.0)
