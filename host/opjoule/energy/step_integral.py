"""Integral of a step function of time, exact at any edge and free of cancellation over hours."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.trace.power_trace import Float64Array, Int64Array

BLOCK: Final = 256
NS: Final = 1e-9


class StepIntegral:
    """Integral of values that hold between bounds.

    Sums run inside blocks of 256 cells; the blocks' totals are summed with their rounding errors kept
    (Knuth's two-sum), so that a millisecond after ten hours is as exact as one at the start. Times stay
    int64; only differences inside a cell become floating point.

    Args:
        bounds_ns: int64, shape (m + 1,), strictly increasing.
        values: float64, shape (m,), for example [W].
    """

    def __init__(self, bounds_ns: Int64Array, values: Float64Array) -> None:
        self.bounds_ns = bounds_ns
        self.values = values
        area = values * np.diff(bounds_ns) * NS
        blocks = -(-area.size // BLOCK)
        padded = np.zeros(blocks * BLOCK)
        padded[: area.size] = area
        running = np.cumsum(padded.reshape(blocks, BLOCK), axis=1)
        before = np.zeros_like(running)
        before[:, 1:] = running[:, :-1]
        self._inside = before.reshape(-1)
        self._head, self._tail = _exact_prefix_sums(running[:, -1] if area.size else np.zeros(0))

    def between(self, start_ns: npt.ArrayLike, end_ns: npt.ArrayLike) -> Float64Array:
        """Integral from start to end, for one window or arrays of them, for example [J] from [W].

        Times outside the bounds are taken as the nearest bound.
        """
        start_block, start_inside = self._place(np.asarray(start_ns, np.int64))
        end_block, end_inside = self._place(np.asarray(end_ns, np.int64))
        whole = self._head[end_block] - self._head[start_block]
        rest = self._tail[end_block] - self._tail[start_block]
        return np.asarray(whole + (rest + (end_inside - start_inside)), np.float64)

    def cell_at(self, time_ns: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Index of the cell that holds each time, in the shape of `time_ns`."""
        cell = np.searchsorted(self.bounds_ns, np.asarray(time_ns, np.int64), side="right") - 1
        return np.clip(cell, 0, self.values.size - 1)

    def _place(self, time_ns: Int64Array) -> tuple[npt.NDArray[np.intp], Float64Array]:
        """Block of each time, and the integral from the block's start to it."""
        clipped = np.clip(time_ns, self.bounds_ns[0], self.bounds_ns[-1])
        cell = self.cell_at(clipped)
        partial = self.values[cell] * ((clipped - self.bounds_ns[cell]) * NS)
        return cell // BLOCK, self._inside[cell] + partial


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
