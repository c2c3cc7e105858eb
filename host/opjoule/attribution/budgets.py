"""Uncertainty of a part that comes from the stated energies of its runs, in addition to the windows' scatter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.attribution.fit import Fit
from opjoule.base.units import Quantity
from opjoule.energy.baseline import MarginalEnergy
from opjoule.energy.trace.power_trace import Float64Array

SCALE: Final = "scale"
"""Name of the errors that all parts of an energy have in common in proportion to their size."""
PROPORTIONAL: Final = ("gain", "timebase")
"""Parts of an energy's budget that scale every share; the others act on the whole."""
_NOTHING_J: Final = 1e-12
"""Energy below which relative uncertainties are meaningless, and all of the budget acts on the whole [J]."""


@dataclass(frozen=True)
class SensorBudget:
    """Energy of some runs above idle from one sensor, and its uncertainty."""

    stated_j: float
    whole_u_j: float
    """Standard uncertainty from sources that act on the whole: offset, idle, noise, alignment."""
    scale_u: float
    """Relative standard uncertainty from sources that scale every share."""
    shared: Mapping[str, float]
    """Source -> relative contribution that other sensors may share, with sign."""

    @classmethod
    def of(cls, marginals: Sequence[MarginalEnergy]) -> SensorBudget:
        """Budget of the stated energies of some runs; their errors count as common to all runs."""
        stated_j = math.fsum(float(marginal.energy) for marginal in marginals)
        size_j = abs(stated_j)
        budgets = [marginal.budget for marginal in marginals]
        whole = [[u for name, u in budget.parts.items() if name not in PROPORTIONAL] for budget in budgets]
        scaling = [[budget.parts[name] for name in PROPORTIONAL] for budget in budgets]
        sources = sorted({source for budget in budgets for source in budget.shared})
        whole_u_j = math.fsum(math.hypot(*parts) for parts in whole)
        scaling_u_j = math.fsum(math.hypot(*parts) for parts in scaling)
        if size_j < _NOTHING_J:
            return cls(stated_j, whole_u_j + scaling_u_j, 0.0, {})
        sums = {name: math.fsum(budget.shared.get(name, 0.0) for budget in budgets) for name in sources}
        shared = {name: total / size_j for name, total in sums.items()}
        return cls(stated_j, whole_u_j, scaling_u_j / size_j, shared)

    @property
    def whole(self) -> Quantity:
        """The stated energy, with the errors that its parts have in common."""
        in_common_j = {"whole": self.whole_u_j, SCALE: self.scale_u * self.stated_j}
        return Quantity.from_standard(self.stated_j, math.hypot(*in_common_j.values()), "J", shared=in_common_j)

    def apart_u(self, other: SensorBudget) -> float:
        """Relative standard uncertainty of the ratio of two sensors' scales. Source: JCGM 100:2008, 5.2.2."""
        in_common = math.fsum(u * other.shared.get(source, 0.0) for source, u in self.shared.items())
        variance = self.scale_u**2 + other.scale_u**2 - 2.0 * in_common
        return math.sqrt(max(variance, (self.scale_u - other.scale_u) ** 2))


@dataclass(frozen=True)
class FitBudget:
    """Stated energy of the windows that a fit divides."""

    board: SensorBudget
    taken: SensorBudget | None
    """The medium's sensor, if its energy was subtracted from the board's."""
    windows_j: float
    """Sum of all windows [J]."""

    @property
    def stated(self) -> float:
        """Ratio of the stated energy to the windows' energies."""
        own_j = self.board.stated_j - (self.taken.stated_j if self.taken else 0.0)
        return own_j / self.windows_j if self.windows_j else 1.0

    def standard_u_j(self, fit: Fit) -> Float64Array:
        """Standard uncertainty of each part, shape (q,): scatter, share of the whole's error, and scale."""
        return np.hypot(fit.standard_u_j, np.hypot(*self.in_common_j(fit).values()))

    def in_common_j(self, fit: Fit) -> dict[str, Float64Array]:
        """Contributions of the errors that all parts have in common, with sign: source -> shape (q,)."""
        whole_u_j = math.hypot(self.board.whole_u_j, self.taken.whole_u_j if self.taken else 0.0)
        return {"whole": fit.shift_per_j * whole_u_j, SCALE: self.board.scale_u * fit.energy_j}


def sum_of_sensors(one: MarginalEnergy, other: MarginalEnergy) -> Quantity:
    """Sum of two sensors' energies; a reference that both were calibrated against moves them together."""
    in_common_j2 = math.fsum(u * other.budget.shared.get(source, 0.0) for source, u in one.budget.shared.items())
    variance_j2 = one.budget.standard_u**2 + other.budget.standard_u**2 + 2.0 * in_common_j2
    return Quantity.from_standard(float(one.energy) + float(other.energy), math.sqrt(max(variance_j2, 0.0)), "J")
