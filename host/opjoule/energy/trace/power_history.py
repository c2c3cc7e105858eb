"""Mean power of the trace so far in blocks of 0.1 s, for decisions during the recording."""

from array import array
from typing import Final

import numpy as np

from opjoule.energy.trace.power_trace import Float64Array, Int64Array

BLOCK_NS: Final = 100_000_000
BLOCKS_PER_SECOND: Final = 1_000_000_000 // BLOCK_NS


class PowerHistory:
    """Block means of the power, updated as samples arrive.

    One thread adds samples; any other may read, as only complete blocks are returned.
    """

    def __init__(self) -> None:
        self._first_block = 0
        self._mean_w = array("d")  # a list of numbers takes four times as much, in a run of days
        self._block = -1
        self._sum_w = 0.0
        self._count = 0

    def add(self, meter_ns: Int64Array, power_w: Float64Array) -> None:
        """Takes samples in order of time; `meter_ns` and `power_w` have shape (n,)."""
        if meter_ns.size == 0:
            return
        blocks = meter_ns // BLOCK_NS
        starts = np.flatnonzero(np.diff(blocks, prepend=blocks[0] - 1))
        sums_w = np.add.reduceat(power_w, starts)
        for start, end, sum_w in zip(starts, [*starts[1:], blocks.size], sums_w, strict=True):
            self._to_block(int(blocks[start]))
            self._sum_w += float(sum_w)
            self._count += int(end - start)

    def _to_block(self, block: int) -> None:
        """Completes the blocks before `block`; blocks without a sample are NaN."""
        if block == self._block:
            return
        if self._block < 0:
            self._first_block = block
        else:
            mean_w = self._sum_w / self._count if self._count else float("nan")
            self._mean_w.extend([mean_w, *[float("nan")] * (block - self._block - 1)])
        self._block, self._sum_w, self._count = block, 0.0, 0

    @property
    def end_ns(self) -> int:
        """End of the newest complete block [meter_ns]; 0 before the first."""
        return (self._first_block + len(self._mean_w)) * BLOCK_NS if self._mean_w else 0

    def blocks_w(self, start_meter_ns: int, end_meter_ns: int) -> Float64Array:
        """Means [W] of the complete blocks inside a stretch, without empty blocks; shape (m,)."""
        blocks = self._all_blocks_w(start_meter_ns, end_meter_ns)
        return blocks[np.isfinite(blocks)]

    def seconds_w(self, start_meter_ns: int, end_meter_ns: int) -> Float64Array:
        """Means [W] of the whole seconds inside a stretch, counted back from its end; shape (s,).

        Empty blocks, as from a slow meter, are left out of the mean. A second with only empty blocks is NaN.
        """
        blocks_w = self._all_blocks_w(start_meter_ns, end_meter_ns)
        whole = blocks_w.size // BLOCKS_PER_SECOND
        seconds = blocks_w[blocks_w.size - whole * BLOCKS_PER_SECOND :].reshape(whole, BLOCKS_PER_SECOND)
        seen = np.isfinite(seconds)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(seen, seconds, 0.0).sum(axis=1) / seen.sum(axis=1), np.float64)

    def _all_blocks_w(self, start_meter_ns: int, end_meter_ns: int) -> Float64Array:
        """Means [W] of the complete blocks inside a stretch, NaN for one without a sample; shape (m,)."""
        first = max(-(-start_meter_ns // BLOCK_NS) - self._first_block, 0)
        last = max(end_meter_ns // BLOCK_NS - self._first_block, 0)
        return np.array(self._mean_w[first:last], np.float64)
