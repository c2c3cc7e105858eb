"""Voltage between two bus readings, from the current: the supply's load line.

Where the meter converts the current all the time it reads the voltage only now and then. A supply with its cable
is a voltage source behind a resistance, so the voltage follows the current: V = V_read - r * (I - I_read). Without
that, energy would be off by r times the variance of the current. The resistance is estimated from what the readings
themselves show: from one reading to the next, voltage change over current change.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]

RESISTANCE_MAX_OHM: Final = 2.0
"""A supply worse than this could not feed a board."""
MEMORY: Final = 500
"""Pairs of readings over which the resistance is averaged."""
QUIET_SHARE: Final = 0.05
QUIET_A: Final = 0.005
"""A reading counts for the resistance if the current before and after it agrees this well."""
LEAST_EVIDENCE_A2: Final = 0.01
"""Sum of squared current changes below which the resistance is taken as zero [A^2]."""


class LoadLine:
    """State between start and stop of one sensor."""

    def __init__(self) -> None:
        self._reading: tuple[float, float] | None = None
        self._quiet: tuple[float, float] | None = None
        self._squares = 0.0
        self._products = 0.0

    @property
    def resistance_ohm(self) -> float:
        """Series resistance of supply and cable, as far as the readings show it; 0 without evidence."""
        if self._squares < LEAST_EVIDENCE_A2:
            return 0.0
        return min(max(-self._products / self._squares, 0.0), RESISTANCE_MAX_OHM)

    def read(self, voltage_v: float, before_a: float, after_a: float) -> None:
        """A new bus reading [V], with the current just before and after it [A]."""
        current_a = (before_a + after_a) / 2
        if abs(after_a - before_a) <= QUIET_SHARE * abs(current_a) + QUIET_A:
            if self._quiet is not None:
                self._learn(current_a - self._quiet[0], voltage_v - self._quiet[1])
            self._quiet = current_a, voltage_v
        self._reading = current_a, voltage_v

    def _learn(self, step_a: float, step_v: float) -> None:
        keep = 1.0 - 1.0 / MEMORY
        self._squares = keep * self._squares + step_a * step_a
        self._products = keep * self._products + step_a * step_v

    def voltage_v(self, current_a: Float64Array, held_v: Float64Array) -> Float64Array:
        """Voltages [V] that belong to these currents [A], same shape; `held_v` before the first reading."""
        if self._reading is None:
            return held_v
        at_a, at_v = self._reading
        return at_v - self.resistance_ohm * (current_a - at_a)
