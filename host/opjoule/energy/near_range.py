"""Warns of bursts shorter than a conversion that may have exceeded the meter's range, which no sample shows.

A converter clips such a burst at every moment, so the conversion's mean is too small although it is inside the range.
The burst's peak is estimated as two standard deviations of the unseen variation above the mean, as for a burst that is
on for a fifth of the time.
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

PEAK: Final = 2.0
"""Standard deviations between a conversion's mean and its estimated peak."""
SHARE_MIN: Final = 0.001
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
    if near_ns < SHARE_MIN * whole_ns:
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
