"""Warnings of what the samples of a current do not show: a load in step with them, bursts shorter than a conversion.

In step: a load that is periodic at nearly the rate of the conversions shows as a slow, regular wave: each conversion
meets a slightly later part of its period. A real slow wave gives the same samples, so the spectrum can only raise the
doubt. If it is a beat, a mean over a few of its cycles is wrong by up to the wave's amplitude over pi times the cycles.

Bursts: a converter clips a burst that exceeds the range at every moment, so the conversion's mean is too small although
it is inside the range. The burst's peak is estimated as two standard deviations of the unseen variation above the mean,
as for a burst that is on for a fifth of the time.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.moving_current import AROUND, TOGETHER, most_fast_a2, moving_current
from opjoule.energy.step_integral import pieces
from opjoule.energy.trace.power_trace import Float64Array

SEEN_MOST: Final = 0.9
"""Least part of the time in which the current is converted for which there is no such doubt."""
WAVE_SHARE_MIN: Final = 0.8
"""Least part of the current's variance in the wave and its overtones; a triangle or square wave has nearly all."""
CYCLES_MIN: Final = 1.5
"""Fewer cycles cannot be told from a drift."""
OVERTONES: Final = 9
WIDTH: Final = 2
"""Bins of the spectrum on either side of a line that belong to it (Hann window)."""
ERROR_MIN: Final = 0.01
"""Least possible error of the mean current, relative, for a warning."""
SAMPLES_MIN: Final = 256


def in_step_notices(cells: Cells, sensor: ErrorBounds, spans: Sequence[tuple[int, int]]) -> list[Notice]:
    """One notice if the current of a span of the meter's clock [ns] is a slow regular wave; else none.

    It gives the greatest possible error among the spans.
    """
    if sensor.seen_fraction >= SEEN_MOST:
        return []
    found = [_wave(cells.current_a[cells.inside(*span)]) for span in spans]
    error, cycles, samples = max(found, default=(0.0, 0.0, 1))
    if error < ERROR_MIN:
        return []
    beat_hz = cycles / (samples * cells.period_ns * 1e-9)
    line = (
        f"the current rises and falls regularly, {beat_hz:.2g} times a second. The meter sees it for "
        f"{100 * sensor.seen_fraction:.0f} % of the time, and a load in step with its {1e9 / cells.period_ns:.0f} "
        f"conversions a second looks the same: then the energy is wrong by up to {100 * error:.2g} %"
    )
    return [
        Notice(NoticeKind.IN_STEP, line, "measure once in the meter's mode `shunts`, or with another rate, and compare")
    ]


def _wave(current_a: Float64Array) -> tuple[float, float, int]:
    """Possible relative error of the mean, cycles and number of samples of a regular wave; error 0 if there is none."""
    count = current_a.size
    if count < SAMPLES_MIN or not current_a.mean() > 0:
        return 0.0, 0.0, 1
    place = np.linspace(-1.0, 1.0, count)
    moved_a = current_a - np.polynomial.polynomial.polyval(place, np.polynomial.polynomial.polyfit(place, current_a, 1))
    power = np.abs(np.fft.rfft(moved_a * np.hanning(count))) ** 2
    power[0] = 0.0
    peak = int(power.argmax())
    line = power[max(peak - 1, 0) : peak + 2]
    cycles = float(np.average(np.arange(max(peak - 1, 0), max(peak - 1, 0) + line.size), weights=line)) if peak else 0.0
    if cycles < CYCLES_MIN:
        return 0.0, cycles, count
    centres = np.rint(cycles * np.arange(1, OVERTONES + 1)).astype(int)
    of_wave = np.unique((centres[:, None] + np.arange(-WIDTH, WIDTH + 1)).ravel())
    share = power[of_wave[of_wave < power.size]].sum() / power.sum()
    if share < WAVE_SHARE_MIN:
        return 0.0, cycles, count
    amplitude_a = math.sqrt(2.0) * float(moved_a.std())
    return amplitude_a / (math.pi * cycles) / float(current_a.mean()), cycles, count


PEAK: Final = 2.0
"""Standard deviations between a conversion's mean and its estimated peak."""
NEAR_SHARE_MIN: Final = 0.001
"""Least share of the time for a warning; a smaller one does not affect a figure."""


def near_range_notices(cells: Cells, sensor: ErrorBounds, spans: Sequence[tuple[int, int]]) -> list[Notice]:
    """One notice if unseen peaks may have been clipped in some stretches of the meter's clock [ns]; else none."""
    if not any(
        _may_reach(cells.current_a, sensor.current_max_a, some) for some in pieces(cells.current_a.size, TOGETHER)
    ):
        return []
    moving = moving_current(cells.current_a, cells.period_ns)
    peak_a = cells.current_a + PEAK * np.sqrt(moving.a2 + moving.half_a2)
    near = (peak_a >= sensor.current_max_a) & ~cells.clipped
    length_ns = np.diff(cells.bounds_ns)
    some = [cells.inside(*span) for span in spans]
    near_ns = sum(int(length_ns[cells_of_span][near[cells_of_span]].sum()) for cells_of_span in some)
    whole_ns = max(sum(int(length_ns[cells_of_span].sum()) for cells_of_span in some), 1)
    if near_ns < NEAR_SHARE_MIN * whole_ns:
        return []
    line = (
        f"bursts shorter than a conversion may have exceeded the meter's range of {sensor.current_max_a:.3g} "
        f"A for {near_ns * 1e-9:.2g} s. No sample shows them, and energies may be too low"
    )
    return [Notice(NoticeKind.NEAR_RANGE, line, "use a smaller shunt or a larger range")]


def _may_reach(current_a: Float64Array, limit_a: float, some: slice) -> bool:
    """Whether an estimated peak in a piece may reach a limit [A]: a bound from the piece's extremes alone."""
    around_a = current_a[max(some.start - AROUND, 0) : some.stop + AROUND]
    least_a, greatest_a = float(around_a.min()), float(around_a.max())
    half_a2 = (greatest_a - least_a) ** 2 / 4 + float(most_fast_a2(greatest_a)) / 2
    return greatest_a + PEAK * math.sqrt(2 * half_a2) >= limit_a
