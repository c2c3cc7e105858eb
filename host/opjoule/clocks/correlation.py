"""Position of a load pattern in a trace by normalised correlation, and whether it is unique."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.clocks.clock_map import Float64Array, Int64Array
from opjoule.clocks.load_pattern import LoadPattern
from opjoule.errors import AlignmentError

STEPS_A_CHIP: Final = 4
PEAK_MIN: Final = 0.5
"""Least correlation that counts as the pattern."""
RIVAL_MAX: Final = 0.7
"""Fraction of the peak above which a second position makes the result ambiguous."""


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
