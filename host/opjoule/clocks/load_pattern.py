"""The load signature: a pseudo-random sequence of busy and idle that the board plays, and its place in a trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import AlignmentError
from opjoule.clocks.clock_map import Float64Array, Int64Array

TAPS: Final = {5: 0x12, 6: 0x21, 7: 0x41, 8: 0x8E, 9: 0x108, 10: 0x204, 11: 0x402}
"""Feedback masks of maximal-length shift registers (Galois form) by their order."""
STEPS_A_CHIP: Final = 4
PEAK_MIN: Final = 0.5
"""Least correlation that counts as the pattern."""
RIVAL_MAX: Final = 0.7
"""Fraction of the peak above which a second position makes the result ambiguous."""


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


@dataclass(frozen=True)
class Find:
    """Position of a pattern in a trace."""

    start_meter_ns: int
    """Time of the pattern's first change, within a step of the search."""
    step_ns: int
    peak: float
    """Normalised correlation there, 1 for a perfect copy."""
    rival: float
    """Greatest correlation elsewhere."""


def find_pattern(meter_ns: Int64Array, power_w: Float64Array, pattern: LoadPattern) -> Find:
    """The only position in a trace where the pattern was played.

    Args:
        meter_ns, power_w: samples, shape (n,), increasing, without lost samples.
    Raises: AlignmentError: the trace is too short, or contains the pattern not at all or more than once.
    """
    step_ns = max(pattern.chip_ns // STEPS_A_CHIP, 1)
    power = _resampled(meter_ns, power_w, step_ns)
    edges_s = np.asarray(np.arange(-(-pattern.duration_ns // step_ns) + 1) * step_ns * 1e-9, np.float64)
    template = np.diff(pattern.integral_s(edges_s))
    if power.size < template.size:
        raise AlignmentError(
            f"load signature of {pattern.duration_ns * 1e-9:.1f} s in a trace of "
            f"{power.size * step_ns * 1e-9:.1f} s: record longer"
        )
    likeness = _normalised_correlation(power, template)
    best = int(np.argmax(likeness))
    near = slice(max(best - 2 * STEPS_A_CHIP, 0), best + 2 * STEPS_A_CHIP + 1)
    others = likeness.copy()
    others[near] = -1.0
    peak = float(likeness[best])
    rival = max(float(others.max()), 0.0) if others.size > near.stop - near.start else 0.0
    if peak < PEAK_MIN:
        raise AlignmentError(
            f"load signature not found in the power trace: correlation {peak:.2f}, "
            f"at least {PEAK_MIN:g} is needed: was the board idle around it?"
        )
    if rival > RIVAL_MAX * peak:
        raise AlignmentError(
            f"load signature fits in more than one place of the trace (correlation {peak:.2f} and "
            f"{rival:.2f}): play each pattern once"
        )
    return Find(int(meter_ns[0]) + best * step_ns, step_ns, peak, rival)


def _resampled(meter_ns: Int64Array, power_w: Float64Array, step_ns: int) -> Float64Array:
    """Mean power in steps of equal length; steps without a sample repeat the preceding one."""
    place = (meter_ns - meter_ns[0]) // step_ns
    count = np.bincount(place)
    total = np.bincount(place, weights=power_w)
    filled = np.maximum.accumulate(np.where(count > 0, np.arange(count.size), 0))
    return np.asarray((total / np.maximum(count, 1))[filled], np.float64)


def _normalised_correlation(signal: Float64Array, template: Float64Array) -> Float64Array:
    """Pearson correlation of the template with each stretch of the signal of the same length."""
    size = template.size
    shape = template - template.mean()
    centred = signal - signal.mean()
    length = 1 << int(np.ceil(np.log2(signal.size + size)))
    product = np.fft.irfft(np.fft.rfft(centred, length) * np.conj(np.fft.rfft(shape, length)), length)
    running, squares = (np.concatenate([[0.0], np.cumsum(x)]) for x in (centred, centred**2))
    sums, sums_of_squares = running[size:] - running[:-size], squares[size:] - squares[:-size]
    variance = np.maximum(sums_of_squares - sums**2 / size, 0.0)
    floor = 1e-12 * float(np.max(variance, initial=0.0)) + 1e-300
    scale = np.sqrt(np.maximum(variance, floor) * (shape @ shape))
    return np.asarray(product[: sums.size] / scale, np.float64)
