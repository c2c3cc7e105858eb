"""The board's counters of its storage medium: bytes written by any moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opjoule.attribution.activities import Intervals
from opjoule.attribution.overlap import overlap_s
from opjoule.energy.step_integral import NS
from opjoule.trace.power_trace import Float64Array, Int64Array


@dataclass(frozen=True)
class Counters:
    """Cumulative bytes written to the medium, from the board's counters."""

    board_ns: Int64Array
    """shape (m,), increasing"""
    written_bytes: Float64Array
    """Cumulative, shape (m,)."""

    def at(self, edge_board_ns: Int64Array) -> Float64Array:
        """Bytes written by each edge; constant before the first sample and after the last one."""
        moment_ns, written_bytes = self._knots()
        after_ns = (edge_board_ns - self.board_ns[0]).astype(np.float64)
        return np.asarray(np.interp(after_ns, moment_ns, written_bytes), np.float64)

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
    def sampled_s(self) -> float:
        """Usual distance of two samples [s]."""
        return float(np.median(np.diff(self.board_ns))) * NS if self.board_ns.size > 1 else 0.0

    @property
    def steepest_bytes_per_s(self) -> float:
        """Highest rate between two samples at the usual distance; the medium is at least this fast."""
        lasts_s = np.diff(self.board_ns) * NS
        usual = lasts_s > 0.5 * self.sampled_s
        rate = np.diff(self.written_bytes)[usual] / lasts_s[usual]
        return max(float(rate.max(initial=0.0)), 1.0)

    def _knots(self) -> tuple[Float64Array, Float64Array]:
        """Times between which bytes were written at a constant rate.

        Writing that begins or ends between two samples is assumed to have the rate of the adjacent full interval:
        it fills the time next to that interval, and the rest is a pause.
        """
        sampled_ns = (self.board_ns - self.board_ns[0]).astype(np.float64)
        length_ns, grown = np.diff(sampled_ns), np.diff(self.written_bytes)
        rate = grown / np.maximum(length_ns, 1.0)
        before, after = np.concatenate([[0.0], rate[:-1]]), np.concatenate([rate[1:], [0.0]])
        ends, begins = (before > rate) & (after == 0.0), (after > rate) & (before == 0.0)
        lasts_ns = np.where(
            ends | begins, grown / np.maximum(np.where(ends, before, after), 1e-300), length_ns
        )
        starts_ns = sampled_ns[:-1] + np.where(begins, length_ns - lasts_ns, 0.0)
        knots_ns = np.stack([starts_ns, starts_ns + lasts_ns], axis=1).ravel()
        written_bytes = np.stack([self.written_bytes[:-1], self.written_bytes[1:]], axis=1).ravel()
        return knots_ns, written_bytes


def joined(one_ns: Int64Array, other_ns: Int64Array) -> Int64Array:
    """Sorted union of two sorted arrays of times, without duplicates; numpy's own union hashes them first."""
    both_ns = np.sort(np.concatenate([one_ns, other_ns]), kind="stable")
    return both_ns[np.diff(both_ns, prepend=both_ns[0] - 1) > 0]
