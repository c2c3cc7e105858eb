"""The uncertainty of a window's energy that comes from the voltage between two of its readings.

Three things: how far the readings stray from the load line (ripple, a current that changed while it was converted), the
line's resistance, and current that moves within one conversion, which the line cannot follow: what is taken off for it
(`energy/moving_current.py`) is the middle of what it can be. A meter that converts the voltage with every current
has none of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.energy.block_error import BLOCKS_MIN, standard_error
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import SQRT3
from opjoule.energy.step_integral import NS
from opjoule.trace.supply_line import SupplyLine

READINGS_MIN: Final = 64
"""A window with fewer readings takes their spread from this many around it."""
SURE_WEIGHT: Final = 0.25
"""A reading whose current is known worse than this carries nothing in the line, nor here."""
RIPPLE_U_V: Final = 0.018
"""Taken where fewer than 4 readings tell: 50 mV from crest to crest, what USB supplies may show at most."""


@dataclass(frozen=True)
class VoltageDoubt:
    """Doubt about the voltage of one window. Its parts are independent, but all windows share the resistance."""

    spread_u_j: float
    """Standard uncertainty [J] from the readings' spread about the line, and from currents that moved too fast."""
    joule_per_ohm: float
    """Change of the energy with the resistance, signed [J/ohm]."""
    resistance_u_ohm: float

    @property
    def standard_u_j(self) -> float:
        """All of it [J]."""
        return math.hypot(self.spread_u_j, self.joule_per_ohm * self.resistance_u_ohm)


NO_DOUBT: Final = VoltageDoubt(0.0, 0.0, 0.0)


def voltage_doubt(cells: Cells, start_ns: int, end_ns: int) -> VoltageDoubt:
    """The doubt about the voltage in one window [meter_ns]; in seconds of the meter."""
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
    """Standard uncertainty [V] of the mean of V0 over a window, by charge; block averages, for ripple that beats."""
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
    # Less the straight line through them: a source that warms up is followed by the load line.
    place = np.arange(stray_v.size) - (stray_v.size - 1) / 2
    slope = float(place @ stray_v) / float(place @ place)
    products_v = (stray_v - stray_v.mean() - slope * place) * (share / mean_a if mean_a > 0 else 1.0)
    of_all_v = float(products_v.std(ddof=2)) / math.sqrt(products_v.size)
    if products_v.size >= BLOCKS_MIN:
        of_all_v = standard_error(products_v)
    counted = max(inside * float(sure.mean()), 0.5)
    return of_all_v * math.sqrt(products_v.size / counted)
