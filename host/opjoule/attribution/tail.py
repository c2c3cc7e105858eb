"""The medium's tail by the moments at which something is written: what settle shows and what the run only suggests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.trace.power_trace import BoolArray, Float64Array

_STILL_BYTES_PER_S: Final = 1.0


@dataclass(frozen=True)
class Writing:
    """Stretches of time in which something is written, and the pauses between them; every array has shape (n,)."""

    begins_s: Float64Array
    finishes_s: Float64Array
    writes: BoolArray
    between_s: Float64Array
    """Seconds of a stretch with writes in which the medium is not busy."""
    opens: BoolArray
    """A stretch with writes that lies within a sample of the counters from the pause before."""
    ended_s: Float64Array
    """End of the last stretch with a write; minus infinity before the first."""
    paused_s: Float64Array
    """Length of the pause before these writes; infinity before the first."""
    resumes_s: Float64Array
    """Begin of the next stretch with a write; infinity after the last."""

    @classmethod
    def of(
        cls, written_bytes: Float64Array, time_s: Float64Array, bytes_per_s: float, sampled_s: float
    ) -> Writing:
        """The stretches with the bytes that are written in each.

        Args:
            written_bytes: shape (n,).
            time_s: edges of the stretches, shape (n + 1,).
            bytes_per_s: rate of the medium while it is busy.
            sampled_s: distance of two samples of the counters.
        """
        begins_s, finishes_s = time_s[:-1], time_s[1:]
        lasts_s = finishes_s - begins_s
        writes = written_bytes > _STILL_BYTES_PER_S * lasts_s
        between_s = np.where(writes, np.maximum(lasts_s - written_bytes / bytes_per_s, 0.0), 0.0)
        ended_s = np.maximum.accumulate(np.where(writes, finishes_s, -np.inf))
        resumes_s = np.minimum.accumulate(np.where(writes, begins_s, np.inf)[::-1])[::-1]
        first = writes & ~np.append(False, writes[:-1])
        began = np.maximum.accumulate(np.where(first, np.arange(writes.size), 0))
        before_s = np.append(-np.inf, ended_s[:-1])[began]
        opens = writes & (begins_s < begins_s[began] + sampled_s)
        return cls(
            begins_s, finishes_s, writes, between_s, opens, ended_s, begins_s[began] - before_s, resumes_s
        )

    def tail_s(self, length_s: float, held: float, opening: float = 0.5) -> Float64Array:
        """Seconds of each stretch in which the tail goes on.

        A pause that lasts as long as the tail shows all of it. In a pause that is cut short, and between the writes of
        one stretch, the medium may hold the tail's power or not. Where writes follow on such a long pause, it is not
        known when in the first sample of the counters they came.

        Args:
            length_s: of the tail, from the last write on.
            held: part of the tail's power in pauses that are cut short, from 0 to 1.
            opening: part of that first sample, but for the time in which the medium is busy, after the first write.
        """
        ends_s = np.minimum(self.ended_s + length_s, self.finishes_s)
        inside_s = np.maximum(ends_s - self.begins_s, 0.0)
        whole = np.where(self.resumes_s >= self.ended_s + length_s, 1.0, held)
        between = np.where(self.opens & (self.paused_s >= length_s), opening, held)
        return np.where(self.writes, between * self.between_s, whole * inside_s)
