"""Is the board back at rest: the tail that a flash card, a drive or the engine draws after the last write.

The meter alone answers, so that nothing is done on the board to find out. At rest means that the power of the last five
seconds, second by second, lies within the noise of a reference that was taken at rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.energy.repeats import student_t
from opjoule.trace.power_history import BLOCK_NS, PowerHistory
from opjoule.trace.power_trace import Float64Array
from opjoule.units import COVERAGE_FACTOR

QUIET_S: Final = 5
"""Seconds in a row that have to be at rest."""
DEVIATIONS: Final = 3.0
"""Standard deviations of a second's mean that count as noise."""
FLOOR: Final = 5e-4
"""Share of the power below which a difference is not told from the steps of a 12-bit sensor."""
_PER_SECOND: Final = 1_000_000_000 // BLOCK_NS
_BLOCKS_MIN: Final = 3
_GROUPS_MIN: Final = 3


@dataclass(frozen=True)
class Rest:
    """Power at rest and its noise."""

    mean_w: float
    noise_w: float
    """Standard deviation of the mean of one second [W], widened where few seconds show it."""
    mean_u_w: float
    """Standard uncertainty of mean_w [W]."""

    @classmethod
    def of(cls, blocks_w: Float64Array) -> Rest | None:
        """The rest that some block means show, shape (m,); None for fewer than three."""
        if blocks_w.size < _BLOCKS_MIN:
            return None
        seconds = _seconds(blocks_w)
        widened = student_t(blocks_w.size - 1) / COVERAGE_FACTOR
        noise_w = widened * float(blocks_w.std(ddof=1)) / math.sqrt(_PER_SECOND)
        if seconds.size >= _GROUPS_MIN:
            widened = student_t(seconds.size - 1) / COVERAGE_FACTOR
            noise_w = max(noise_w, float(seconds.std(ddof=1)) * widened)
        return cls(
            float(blocks_w.mean()), noise_w, noise_w / math.sqrt(max(blocks_w.size / _PER_SECOND, 1.0))
        )

    @property
    def tolerance_w(self) -> float:
        """How far the mean of a second at rest may lie from mean_w [W]."""
        return max(DEVIATIONS * math.hypot(self.noise_w, self.mean_u_w), FLOOR * abs(self.mean_w))


@dataclass(frozen=True)
class Calm:
    """How the newest five seconds compare with rest."""

    quiet: bool
    """Every second is within the noise of rest."""
    above_w: float
    """Mean of the five seconds less that of rest [W]."""
    steady: bool
    """The five seconds do not change among themselves: another level, and no longer a tail that falls."""


def calm(history: PowerHistory, rest: Rest, since_meter_ns: int) -> Calm | None:
    """The newest five seconds of a trace against rest; None while fewer than five have passed since a time."""
    end_ns = history.end_ns
    start_ns = end_ns - QUIET_S * 1_000_000_000
    if start_ns < since_meter_ns:
        return None
    seconds = _seconds(history.blocks_w(start_ns, end_ns))
    if seconds.size < QUIET_S:
        return None
    off = np.abs(seconds - rest.mean_w)
    half = QUIET_S // 2
    moved_w = abs(float(seconds[-half:].mean() - seconds[:half].mean()))
    return Calm(
        bool(np.all(off <= rest.tolerance_w)),
        float(seconds.mean()) - rest.mean_w,
        moved_w <= rest.tolerance_w,
    )


def _seconds(blocks_w: Float64Array) -> Float64Array:
    """Means of whole seconds, from the newest back."""
    whole = blocks_w.size // _PER_SECOND
    newest = blocks_w[blocks_w.size - whole * _PER_SECOND :]
    return np.asarray(newest.reshape(whole, _PER_SECOND).mean(axis=1), np.float64)
