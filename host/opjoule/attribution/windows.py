"""A stretch of the trace cut into many short windows with their edges between samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.cells import Cells
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array

PERIODS_MIN: Final = 10
"""Shortest window, in sample periods: supply capacitors and clock errors then move about a hundredth of its energy
across its edges."""
LATENCIES_MIN: Final = 8
"""Shortest window, in typical latencies: the energy of one operation need not be spread evenly over it."""
BLOCK_MIN_S: Final = 0.02
"""Shortest mix block: it contains many operations, however fast the meter is."""
BLOCKS_WANTED: Final = 50
"""Number of mix blocks that makes kinds identifiable."""
_NOWHERE: Final = np.zeros(0, np.int64)
WINDOWS_WANTED: Final = 1 << 16
"""Number of windows of a run above which they are lengthened."""


@dataclass(frozen=True)
class Windows:
    """n contiguous windows."""

    edge_board_ns: Int64Array
    """shape (n + 1,)"""
    energy_j: Float64Array
    """Energy of each window including idle [J], shape (n,)."""
    duration_s: Float64Array
    """Length by the board's clock [s], shape (n,)."""
    sound: BoolArray
    """False where samples were lost without a known charge, shape (n,)."""

    def __len__(self) -> int:
        return int(self.energy_j.size)

    @classmethod
    def cut(
        cls,
        cells: Cells,
        board_to_meter: ClockMap,
        start_board_ns: int,
        end_board_ns: int,
        length_ns: int,
        also_at_ns: Int64Array = _NOWHERE,
    ) -> Windows:
        """Windows of about one length; all edges but the outermost are at the bounds of cells.

        A converter integrates over its conversion, so a window of whole conversions contains their exact energy. An
        edge inside a conversion would split it evenly and blur the difference between both sides. There are additional
        edges at the moments `also_at_ns`, at each of which something changed.
        """
        start_ns, end_ns = (board_to_meter.to_target(board_ns) for board_ns in (start_board_ns, end_board_ns))
        count = max(round((end_ns - start_ns) / max(length_ns, 1)), 1)
        even_ns = start_ns + (np.arange(1, count) * ((end_ns - start_ns) / count)).astype(np.int64)
        wanted_ns = np.concatenate([even_ns, board_to_meter.to_target(also_at_ns)])
        inner_ns = np.unique(cells.bounds_ns[_nearest(cells.bounds_ns, wanted_ns)])
        edge_ns = np.concatenate([[start_ns], inner_ns[(inner_ns > start_ns) & (inner_ns < end_ns)], [end_ns]]).astype(
            np.int64
        )
        edge_board_ns = board_to_meter.inverse().to_target(edge_ns)
        edge_board_ns[0], edge_board_ns[-1] = start_board_ns, end_board_ns
        duration_s = np.diff(edge_board_ns) * NS
        rate = duration_s / (np.diff(edge_ns) * NS)
        energy_j = cells.power.between_edges(edge_ns) * rate
        return cls(edge_board_ns, energy_j, duration_s, _sound(cells, edge_ns))


def window_ns(period_ns: int, latency_ns: float, span_ns: int) -> int:
    """Length of a window [ns]; `latency_ns`: latency of a typical operation, 0 without operations."""
    return round(max(PERIODS_MIN * period_ns, LATENCIES_MIN * latency_ns, span_ns / WINDOWS_WANTED))


def block_length_s(period_s: float) -> float:
    """Length of the blocks of a changing mix [s] for a sample period: as for a window, rounded up to two digits."""
    length_s = max(PERIODS_MIN * period_s, BLOCK_MIN_S)
    step_s = 10.0 ** (math.floor(math.log10(length_s)) - 1)
    return float(f"{math.ceil(length_s / step_s - 1e-9) * step_s:.2g}")


def _nearest(bounds_ns: Int64Array, wanted_ns: Int64Array) -> Int64Array:
    after = np.clip(np.searchsorted(bounds_ns, wanted_ns), 1, bounds_ns.size - 1)
    nearer = wanted_ns - bounds_ns[after - 1] < bounds_ns[after] - wanted_ns
    return np.asarray(after - nearer, np.int64)


def _sound(cells: Cells, edge_ns: Int64Array) -> BoolArray:
    sound = np.ones(edge_ns.size - 1, np.bool_)
    for lost in cells.lost:
        if lost.gap.charge_c is None:
            first = int(np.searchsorted(edge_ns, lost.gap.start_meter_ns, "right")) - 1
            last = int(np.searchsorted(edge_ns, lost.gap.end_meter_ns, "left"))
            sound[max(first, 0) : max(last, 0)] = False
    return sound
