"""Model of a storage medium with known energies: busy, in its tail, or idle, depending on dirtied bytes. SIMULATED.

The medium draws its active power while it serves bytes or a cache flush, and its tail power for a fixed time after the
last busy instant or read. Dirty pages wait in a page cache, as in a kernel. The medium's counters give the completed
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from opjoule.attribution.activities import Intervals
from opjoule.attribution.overlap import overlap_s
from opjoule.bench.simulation.parts import Float64Array

LATE_S: Final = 0.5
"""Delay after the last write at which a medium that tidies up only when idle begins to do so."""
PAGE_BYTES: Final = 4096.0
"""Bytes of one read."""
EXPIRES_S: Final = (0.1, 0.5, 1.0, 5.0)
"""Periods at which dirty pages may be written to the medium, one of which is drawn."""


@dataclass(frozen=True)
class Medium:
    """One storage medium and the page cache in front of it."""

    write_bytes_per_s: float
    flush_s: float
    """Time for which the medium is busy at the end of each sync."""
    active_w: float
    tail_w: float
    tail_s: float
    chunk_bytes: float
    """Size of the pieces in which pages are written to the medium."""
    expire_s: float
    """Period at which dirty pages are written; a sync writes them at once."""
    late: bool = False
    """Alternative to the state machine: the tail begins LATE_S after the last write, if nothing is written before."""

    @classmethod
    def draw(
        cls, rng: np.random.Generator, bytes_per_s: float, least_bytes_per_s: float, *, late: bool = False
    ) -> Medium:
        """Draws a medium that can take a load of bytes_per_s; tail power 0 to 1 W, tail length 0.05 to 5 s.

        Args:
            least_bytes_per_s: lower limit of its write rate.
        """
        rate = bytes_per_s * float(np.exp(rng.uniform(np.log(1.5), np.log(20.0))))
        return cls(
            max(rate, least_bytes_per_s),
            float(rng.uniform(0.0, 5e-3)),
            float(np.exp(rng.uniform(np.log(0.1), np.log(2.0)))),
            float(rng.uniform(0.0, 1.0)),
            float(np.exp(rng.uniform(np.log(0.05), np.log(5.0)))),
            float(rng.choice([4096.0, 131072.0, 1048576.0])),
            float(rng.choice(EXPIRES_S)),
            late,
        )

    def course(
        self,
        grid_s: Float64Array,
        dirtied: Float64Array,
        synced_s: Float64Array,
        read_s: Float64Array | None = None,
    ) -> MediumCourse:
        """State of the medium in each step of a grid.

        Args:
            grid_s: starts of the steps, evenly spaced, shape (n,).
            dirtied: bytes written to the page cache by the end of each step, shape (n,).
            synced_s: times at which syncs asked for the dirty pages.
            read_s: times at which a page is read. That takes no time and no energy, but a tail follows.
        """
        step_s = float(grid_s[1] - grid_s[0])
        at_sync = np.unique(np.clip(np.searchsorted(grid_s, synced_s) - 1, 0, grid_s.size - 1))
        released = np.zeros(grid_s.size, np.bool_)
        released[:: max(round(self.expire_s / step_s), 1)] = True
        released[at_sync] = True
        due = dirtied[np.maximum.accumulate(np.where(released, np.arange(grid_s.size), 0))]
        whole = np.floor(due / self.chunk_bytes) * self.chunk_bytes
        due = np.where(due >= dirtied[-1], dirtied[-1], whole)
        moved_bytes = drained(due - due[0], self.write_bytes_per_s, step_s)
        served_s = np.diff(moved_bytes, prepend=0.0) / self.write_bytes_per_s
        busy_s = np.minimum(served_s + self._flushing_s(at_sync, due, step_s), step_s)
        reads = np.histogram(np.zeros(0) if read_s is None else read_s, np.append(grid_s, grid_s[-1] + step_s))[0]
        at_work_s = np.where(reads > 0, np.maximum(busy_s, 1e-9), busy_s)  # an instant of reading begins a tail
        tail_s = in_tail_s(at_work_s, step_s, self.tail_s, LATE_S if self.late else 0.0)
        return MediumCourse(
            moved_bytes,
            np.cumsum(reads) * PAGE_BYTES,
            busy_s * self.active_w / step_s,
            tail_s * self.tail_w / step_s,
        )

    def _flushing_s(self, at_sync: npt.NDArray[np.intp], due: Float64Array, step_s: float) -> Float64Array:
        """Seconds of each step in which the cache is flushed, which follows each sync that found dirty pages."""
        flushes_s = np.zeros(due.size)
        flushes_s[at_sync] = self.flush_s * (np.diff(due[at_sync], prepend=due[0]) > 0)
        return np.diff(drained(np.cumsum(flushes_s), 1.0, step_s), prepend=0.0)


@dataclass(frozen=True)
class MediumCourse:
    """Bytes and powers of a medium in each step of a grid, shape (n,) each."""

    written_bytes: Float64Array
    """Bytes completed by the end of each step."""
    read_bytes: Float64Array
    """Bytes read by the end of each step."""
    write_back_w: Float64Array
    tail_w: Float64Array


def waited_part(grid_s: Float64Array, begin_s: Float64Array, finish_s: Float64Array) -> Float64Array:
    """Part of each step of an even grid in which a sync is waited for; the medium's energy then belongs to the sync.

    Args:
        begin_s, finish_s: start and end of the syncs, in any order; syncs may overlap.
    """
    if not begin_s.size:
        return np.zeros(grid_s.size)
    step_s = float(grid_s[1] - grid_s[0])
    syncs = Intervals.of(*(np.rint(moments_s * 1e9).astype(np.int64) for moments_s in (begin_s, finish_s))).merged
    edges_ns = np.rint(np.append(grid_s, grid_s[-1] + step_s) * 1e9).astype(np.int64)
    return overlap_s(edges_ns, syncs.start_ns, syncs.end_ns) / (np.diff(edges_ns) * 1e-9)


def drained(due: Float64Array, rate: float, step_s: float) -> Float64Array:
    """Amount served by each step of a grid, given the amount due by each step and a maximum rate [1/s]."""
    time_s = np.arange(due.size) * step_s
    gone = np.minimum(np.minimum.accumulate(due - rate * time_s) + rate * time_s, due)
    return np.where(due - gone < 1e-6 * rate * step_s, due, gone)  # a rounding residue is not work


def in_tail_s(busy_s: Float64Array, step_s: float, length_s: float, begins_s: float = 0.0) -> Float64Array:
    """Seconds of each step of a grid that lie in the tail, shape (n,).

    Args:
        busy_s: seconds of each step in which the medium is busy, shape (n,).
        begins_s: time from the last busy instant to the start of the tail.
    """
    place = np.arange(busy_s.size)
    last = np.maximum.accumulate(np.where(busy_s > 0, place, -(10**9)))
    since_s = (place - last) * step_s
    whole = np.clip((length_s - since_s) / step_s + 1.0, 0.0, 1.0) * (since_s > begins_s - step_s / 2)
    return np.asarray(
        np.where(busy_s > 0, min(1.0, length_s / step_s) if not begins_s else 0.0, whole) * (step_s - busy_s)
    )
