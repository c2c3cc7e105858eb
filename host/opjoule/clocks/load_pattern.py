"""The load signature: a pseudo-random sequence of busy and idle that the board plays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.clocks.clock_map import Float64Array, Int64Array

TAPS: Final = {5: 0x12, 6: 0x21, 7: 0x41, 8: 0x8E, 9: 0x108, 10: 0x204, 11: 0x402}
"""Feedback masks of maximal-length shift registers (Galois form) by their order."""


def maximal_sequence(order: int) -> npt.NDArray[np.int8]:
    """One period of a maximal-length sequence: chips of 0 or 1, shape (2^order - 1,).

    Source: Golomb, Shift Register Sequences (1967); the autocorrelation is -1/(2^order - 1) off its peak.
    """
    state, chips = 1, np.empty((1 << order) - 1, np.int8)
    for index in range(chips.size):
        chips[index] = state & 1
        state = (state >> 1) ^ (TAPS[order] if state & 1 else 0)
    return chips


def signature_chips(number: int, order: int = 8) -> npt.NDArray[np.int8]:
    """A sequence by its number, from a family with little cross-correlation: chips, shape (2^order - 1,).

    Each pattern of a run has its own number, so that its position in the trace is unique.
    Source: Gold, IEEE Trans. Inf. Theory 13, 619 (1967), here with a sequence and its own reverse.
    """
    sequence = maximal_sequence(order)
    return sequence ^ np.roll(sequence[::-1], number)


@dataclass(frozen=True)
class LoadPattern:
    """Busy and idle stretches as the board played them.

    The first change goes to busy; before it and after the last one the board is idle.
    """

    change_ns: Int64Array
    """Times of the changes on the board's clock, shape (n,), n even, increasing."""

    def __post_init__(self) -> None:
        if self.change_ns.size % 2 or self.change_ns.size < 2 or bool(np.any(np.diff(self.change_ns) <= 0)):
            raise ValueError("a load pattern needs an even number of changes, in order")

    @classmethod
    def of_chips(cls, chips: npt.NDArray[np.int8], chip_ns: int, start_ns: int) -> LoadPattern:
        """The pattern that plays chips of equal length, shape (n,), 1 for busy."""
        steps = np.diff(chips, prepend=0, append=0)
        return cls((start_ns + chip_ns * np.flatnonzero(steps)).astype(np.int64))

    @property
    def start_ns(self) -> int:
        """First change [board_ns]."""
        return int(self.change_ns[0])

    @property
    def duration_ns(self) -> int:
        """Time from the first change to the last."""
        return int(self.change_ns[-1] - self.change_ns[0])

    @property
    def chip_ns(self) -> int:
        """Length of a chip, from half of a maximal sequence's stretches, so that a few late changes have no effect."""
        return int(np.quantile(np.diff(self.change_ns), 0.25))

    @cached_property
    def _change_s(self) -> Float64Array:
        return np.asarray((self.change_ns - self.start_ns) * 1e-9, np.float64)

    def integral_s(self, time_s: Float64Array, lag_s: float = 0.0) -> Float64Array:
        """Integral of the load (0 idle, 1 busy) up to times after the pattern's start [s].

        `lag_s`: time constant with which the supply current follows the load; 0 for no lag.
        """
        at_change, value = self._states(lag_s)
        latest = np.searchsorted(self._change_s, time_s, side="right") - 1
        inside = latest >= 0
        latest = np.where(inside, latest, 0)
        since = np.maximum(time_s - self._change_s[latest], 0.0)
        level = np.asarray(1 - latest % 2, np.float64)
        integral = at_change[latest] + _follow(level, value[latest], since, lag_s)
        return np.where(inside, integral, 0.0)

    def _states(self, lag_s: float) -> tuple[Float64Array, Float64Array]:
        """Integral and value of the load at each change."""
        integral, value = np.zeros(self.change_ns.size), np.zeros(self.change_ns.size)
        spans = np.diff(self._change_s)
        kept = np.exp(-spans / lag_s) if lag_s > 0 else np.zeros(spans.size)
        for index, span in enumerate(spans.tolist()):
            level = 1.0 - index % 2
            value[index + 1] = level + (value[index] - level) * kept[index]
            lagging = (value[index] - level) * lag_s * (1 - kept[index])
            integral[index + 1] = integral[index] + level * span + lagging
        return integral, value


def _follow(level: Float64Array, value: Float64Array, since: Float64Array, lag_s: float) -> Float64Array:
    """Integral since a change of a first-order step from `value` to `level`."""
    if lag_s <= 0:
        return level * since
    return np.asarray(level * since + (value - level) * lag_s * -np.expm1(-since / lag_s), np.float64)
