"""Uncertainty of a window's energy from the unknown voltage between two voltage readings.

It has three sources: the scatter of the readings about the load line (ripple, a current that changed during the
conversion), the line's resistance, and current that moves within one conversion, which the line cannot follow. The
correction for the last (`energy/moving_current.py`) is the middle of its range. A meter that converts the voltage with
every current has none of these.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import SQRT3
from opjoule.energy.repeats import BLOCKS_MIN, standard_error
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.supply_line import SupplyLine

READINGS_MIN: Final = 64
"""A window with fewer readings takes their scatter from this many readings around it."""
SURE_WEIGHT: Final = 0.25
"""Least weight of a reading in the line and here: below it, the reading's current is too uncertain."""
RIPPLE_U_V: Final = 0.018
"""Assumed if there are fewer than 4 readings: 50 mV peak to peak, the most that USB supplies may show."""


@dataclass(frozen=True)
class VoltageDoubt:
    """Uncertainty of the voltage of one window. Its parts are independent, but all windows share the resistance."""

    spread_u_j: float
    """Standard uncertainty [J] from the readings' scatter about the line, and from current too fast for it."""
    joule_per_ohm: float
    """Change of the energy with the resistance, signed [J/ohm]."""
    resistance_u_ohm: float

    @property
    def standard_u_j(self) -> float:
        """Combined standard uncertainty [J]."""
        return math.hypot(self.spread_u_j, self.joule_per_ohm * self.resistance_u_ohm)


NO_DOUBT: Final = VoltageDoubt(0.0, 0.0, 0.0)


def voltage_doubt(cells: Cells, start_ns: int, end_ns: int) -> VoltageDoubt:
    """Uncertainty of the voltage in one window [meter_ns], in seconds of the meter."""
    supply = cells.supply
    if supply is None:
        return NO_DOUBT
    charge_c = abs(float(cells.current.between(start_ns, end_ns)))
    spread_u_j = charge_c * mean_spread_u_v(supply, start_ns, end_ns)
    moving_w = float(np.mean(cells.moving.half_a2[cells.inside(start_ns, end_ns)])) * supply.resistance_ohm
    moving_u_j = moving_w / SQRT3 * (end_ns - start_ns) * NS
    sensitivity = float(cells.line_shift.between(start_ns, end_ns))
    return VoltageDoubt(math.hypot(spread_u_j, moving_u_j), sensitivity, supply.resistance_u_ohm)


def mean_spread_u_v(supply: SupplyLine | None, start_ns: int, end_ns: int) -> float:
    """Standard uncertainty [V] of V0's mean over a window, weighted by charge; block averages, as ripple may beat."""
    if supply is None:
        return 0.0
    first, last = np.searchsorted(supply.meter_ns, [start_ns, end_ns]).tolist()
    inside = last - first
    missing = max(READINGS_MIN - inside, 0)
    some = slice(max(first - (missing + 1) // 2, 0), last + (missing + 1) // 2)
    sure = supply.weight[some] >= SURE_WEIGHT
    stray_v = supply.source_v[some][sure]
    if stray_v.size < 4:
        return RIPPLE_U_V
    share = np.abs(supply.current_a[some][sure])
    mean_a = float(share.mean())
    # Less the straight line through them: the load line follows a source that warms up.
    place = np.arange(stray_v.size) - (stray_v.size - 1) / 2
    slope = float(place @ stray_v) / float(place @ place)
    products_v = (stray_v - stray_v.mean() - slope * place) * (share / mean_a if mean_a > 0 else 1.0)
    of_all_v = float(products_v.std(ddof=2)) / math.sqrt(products_v.size)
    if products_v.size >= BLOCKS_MIN:
        of_all_v = standard_error(products_v)
    counted = max(inside * float(sure.mean()), 0.5)
    return of_all_v * math.sqrt(products_v.size / counted)
