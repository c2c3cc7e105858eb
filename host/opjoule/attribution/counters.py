"""The board's counters: bytes that its medium wrote and read by any moment, and processor time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from opjoule.attribution.activities import Intervals
from opjoule.attribution.overlap import overlap_s
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import Float64Array, Int64Array


class Rates(NamedTuple):
    """Rates of a medium while it is busy."""

    write_bytes_per_s: float
    read_bytes_per_s: float

    def busy_s(self, written_bytes: Float64Array, read_bytes: Float64Array) -> Float64Array:
        """Time that the medium takes for these bytes."""
        return written_bytes / self.write_bytes_per_s + read_bytes / self.read_bytes_per_s


IN_NO_TIME: Final = Rates(np.inf, np.inf)


@dataclass(frozen=True)
class Counters:
    """Cumulative bytes written to the medium and read from it, and processor time, from the board's counters."""

    board_ns: Int64Array
    """shape (m,), increasing"""
    written_bytes: Float64Array
    """Cumulative, shape (m,)."""
    read_bytes: Float64Array
    """Cumulative, shape (m,)."""
    cpu_s: Float64Array
    """Processor time of the measured processes, cumulative, shape (m,); constant if it is not known."""

    def at(self, edge_board_ns: Int64Array) -> Float64Array:
        """Bytes written by each edge; constant before the first sample and after the last one."""
        return self._interpolated(self.written_bytes, self.rates.write_bytes_per_s, edge_board_ns)

    def read_at(self, edge_board_ns: Int64Array) -> Float64Array:
        """Bytes read by each edge, like `at`."""
        return self._interpolated(self.read_bytes, self.rates.read_bytes_per_s, edge_board_ns)

    def beside(self, edge_board_ns: Int64Array, work: Intervals) -> Float64Array:
        """Like `at`, but with all bytes between two samples written during an activity, where there was any."""
        moment_ns = joined(edge_board_ns, self.board_ns)
        evenly = self.at(moment_ns)
        grown, work_s = np.diff(evenly), overlap_s(moment_ns, work.start_ns, work.end_ns)
        interval = np.searchsorted(self.board_ns, moment_ns[:-1], "right")
        of_interval_s = np.bincount(interval, work_s)[interval]
        of_work = np.bincount(interval, grown)[interval] * work_s / np.maximum(of_interval_s, 1e-12)
        by_moment = np.cumsum(np.where(of_interval_s > 0, of_work, grown))
        placed = evenly[0] + np.append(0.0, by_moment)
        return np.asarray(placed[np.searchsorted(moment_ns, edge_board_ns)], np.float64)

    @property
    def changes_ns(self) -> Int64Array:
        """Times at which the counters were read, and at which they show a transfer to begin or end [board_ns]."""
        pairs = zip((self.written_bytes, self.read_bytes), self.rates, strict=True)
        knots_ns = [self._knots(moved_bytes, rate * NS)[0] for moved_bytes, rate in pairs]
        return joined(self.board_ns, self.board_ns[0] + np.rint(np.concatenate(knots_ns)).astype(np.int64))

    @property
    def moving_s(self) -> Float64Array:
        """Time that the medium takes for the bytes between successive samples, at the highest rates, shape (m - 1,)."""
        return self.rates.busy_s(np.diff(self.written_bytes), np.diff(self.read_bytes))

    @property
    def sampled_s(self) -> float:
        """Usual distance of two samples [s]."""
        return float(np.median(np.diff(self.board_ns))) * NS if self.board_ns.size > 1 else 0.0

    @property
    def rates(self) -> Rates:
        """Highest rates between two samples at the usual distance; the medium is at least this fast.

        A medium that is seldom read shows no rate. It is taken to read at least as fast as it writes, as every medium
        of study S1 does.
        """
        write = self._steepest(self.written_bytes)
        return Rates(write, max(write, self._steepest(self.read_bytes)))

    def _steepest(self, moved_bytes: Float64Array) -> float:
        lasts_s = np.diff(self.board_ns) * NS
        usual = lasts_s > 0.5 * self.sampled_s
        rate = np.diff(moved_bytes)[usual] / lasts_s[usual]
        return max(float(rate.max(initial=0.0)), 1.0)

    def _interpolated(self, moved_bytes: Float64Array, bytes_per_s: float, edge_board_ns: Int64Array) -> Float64Array:
        moment_ns, knots_bytes = self._knots(moved_bytes, bytes_per_s * NS)
        after_ns = (edge_board_ns - self.board_ns[0]).astype(np.float64)
        return np.asarray(np.interp(after_ns, moment_ns, knots_bytes), np.float64)

    def _knots(self, moved_bytes: Float64Array, bytes_per_ns: float) -> tuple[Float64Array, Float64Array]:
        """Times between which bytes moved at a constant rate, and the cumulative bytes.

        A transfer that begins or ends between two samples is assumed to have the rate of the adjacent full interval:
        it fills the time next to that interval, and the rest is a pause. One that lies between two samples, with a
        pause before and after, has the medium's rate and is assumed in the middle of them.
        """
        sampled_ns = (self.board_ns - self.board_ns[0]).astype(np.float64)
        length_ns, grown = np.diff(sampled_ns), np.diff(moved_bytes)
        rate = grown / np.maximum(length_ns, 1.0)
        before, after = np.concatenate([[0.0], rate[:-1]]), np.concatenate([rate[1:], [0.0]])
        ends, begins = (before > rate) & (after == 0.0), (after > rate) & (before == 0.0)
        alone = (rate > 0.0) & (before == 0.0) & (after == 0.0)
        assumed = np.where(alone, np.maximum(bytes_per_ns, rate), np.where(ends, before, after))
        lasts_ns = np.where(ends | begins | alone, grown / np.maximum(assumed, 1e-300), length_ns)
        pause_before = np.where(begins, 1.0, np.where(alone, 0.5, 0.0))
        starts_ns = sampled_ns[:-1] + pause_before * (length_ns - lasts_ns)
        knots_ns = np.stack([starts_ns, starts_ns + lasts_ns], axis=1).ravel()
        return knots_ns, np.stack([moved_bytes[:-1], moved_bytes[1:]], axis=1).ravel()


def joined(one_ns: Int64Array, other_ns: Int64Array) -> Int64Array:
    """Sorted union of two sorted arrays of times, without duplicates; numpy's own union hashes them first."""
    both_ns = np.sort(np.concatenate([one_ns, other_ns]), kind="stable")
    return both_ns[np.diff(both_ns, prepend=both_ns[0] - 1) > 0]
