"""Integral of a step function of time, exact at any edge, without cancellation over hours."""

from collections.abc import Iterator
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.energy.trace.power_trace import Float64Array, Int64Array

BLOCK: Final = 256
PART: Final = 64 * BLOCK
"""Cells per step of the calculation: the arrays stay in the processor's cache."""
NS: Final = 1e-9
_Place = tuple[npt.NDArray[np.intp], Float64Array]


def pieces(count: int, length: int) -> Iterator[slice]:
    """Slices of `count` values, of a length with which their arrays stay in the processor's cache."""
    return (slice(at, min(at + length, count)) for at in range(0, count, length))


class StepIntegral:
    """Integral of values that are constant between bounds.

    Sums run inside blocks of 256 cells; the blocks' totals are summed with their rounding errors kept
    (Knuth's two-sum), so that a millisecond after ten hours is as exact as one at the start. Times stay
    int64; only differences inside a cell become floating point. Only the sums of blocks are stored. The sums inside the
    blocks at a window's edges are recomputed.

    Args:
        bounds_ns: int64, shape (m + 1,), strictly increasing.
        factors: the values are their product, for example [W]; float64, shape (m,) each.
    """

    def __init__(self, bounds_ns: Int64Array, *factors: Float64Array) -> None:
        self._bounds_ns = bounds_ns
        self._factors = factors
        cells = bounds_ns.size - 1
        totals = [self._totals(some) for some in pieces(cells, PART)]
        self._head, self._tail = _exact_prefix_sums(np.concatenate([np.zeros(0), *totals]))

    def between(self, start_ns: npt.ArrayLike, end_ns: npt.ArrayLike) -> Float64Array:
        """Integral from start to end, for one window or arrays of them, for example [J] from [W].

        Times outside the bounds count as the nearest bound.
        """
        return self._from_to(*(self._place(np.asarray(edge_ns, np.int64)) for edge_ns in (start_ns, end_ns)))

    def between_edges(self, edge_ns: Int64Array) -> Float64Array:
        """Integral of each window between adjacent edges, shape (n + 1,) to (n,): `between` in half the time."""
        block, inside = self._place(edge_ns)
        return self._from_to((block[:-1], inside[:-1]), (block[1:], inside[1:]))

    def _from_to(self, start: _Place, end: _Place) -> Float64Array:
        whole = self._head[end[0]] - self._head[start[0]]
        rest = self._tail[end[0]] - self._tail[start[0]]
        return np.asarray(whole + (rest + (end[1] - start[1])), np.float64)

    def cell_at(self, time_ns: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Index of the cell that contains each time, in the shape of `time_ns`."""
        cell = np.searchsorted(self._bounds_ns, np.asarray(time_ns, np.int64), side="right") - 1
        return np.clip(cell, 0, self._bounds_ns.size - 2)

    def values(self, cells: npt.NDArray[np.intp] | slice) -> Float64Array:
        """The values of some cells."""
        return np.asarray(reduce(np.multiply, (factor[cells] for factor in self._factors)), np.float64)

    def _place(self, time_ns: Int64Array) -> _Place:
        """Block of each time, and the integral from the block's start to that time."""
        clipped = np.clip(time_ns, self._bounds_ns[0], self._bounds_ns[-1])
        cell = self.cell_at(clipped)
        partial = self.values(cell) * ((clipped - self._bounds_ns[cell]) * NS)
        return cell // BLOCK, self._before(cell.ravel()).reshape(cell.shape) + partial

    def _before(self, cell: npt.NDArray[np.intp]) -> Float64Array:
        """Integral from the start of the block to the start of each cell, shape (k,)."""
        before = np.zeros(cell.size)
        wanted = np.flatnonzero(cell % BLOCK)
        wanted = wanted[np.argsort(cell[wanted], kind="stable")]
        parts, starts = np.unique(cell[wanted] // PART, return_index=True)
        for part, places in zip(parts.tolist(), np.split(wanted, starts[1:]), strict=False):
            before[places] = self._running(part).reshape(-1)[cell[places] - 1 - part * PART]
        return before

    def _running(self, part: int) -> Float64Array:
        """Sums from the start of each block of a part to the end of each of its cells, shape (blocks, BLOCK)."""
        some = slice(part * PART, (part + 1) * PART)
        return np.cumsum(_blocks(self.values(some) * self._lengths_s(some)), axis=1)

    def _totals(self, some: slice) -> Float64Array:
        """Integral over each block of some cells, which begin with a block."""
        return np.asarray(np.vecdot(_blocks(self.values(some)), _blocks(self._lengths_s(some))), np.float64)

    def _lengths_s(self, some: slice) -> Float64Array:
        return np.diff(self._bounds_ns[some.start : some.stop + 1]) * NS


def _blocks(values: Float64Array) -> Float64Array:
    """Values of cells by block, shape (blocks, BLOCK), with zeros at the end."""
    missing = -values.size % BLOCK
    return (np.append(values, np.zeros(missing)) if missing else values).reshape(-1, BLOCK)


def _exact_prefix_sums(totals: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Sum of all totals before each one, as an unevaluated head + tail.

    Source: Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.
    """
    heads, tails = np.zeros(totals.size + 1), np.zeros(totals.size + 1)
    head = tail = 0.0
    for index, term in enumerate(totals.tolist(), start=1):
        total = head + term
        shown = total - head
        tail += (head - (total - shown)) + (term - shown)
        head = total
        heads[index], tails[index] = head, tail
    return heads, tails
