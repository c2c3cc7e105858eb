"""Energies of sync, write-back and tail from a sensor in the medium's supply, each with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from opjoule.attribution.activities import SYNC
from opjoule.attribution.budgets import SensorBudget
from opjoule.attribution.columns import TAIL, WRITE_BACK
from opjoule.attribution.fit import Fit
from opjoule.attribution.sensed_medium import Range, SensedMedium
from opjoule.attribution.verdict import identifiable_u_j
from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.units import Cause, Quantity, missing


@dataclass(frozen=True)
class SensedParts:
    """The medium's energy above idle, by mode."""

    waited: Quantity
    """The medium's energy during syncs."""
    write_back: Quantity
    tail: Quantity
    alone: Quantity
    """Write-back and tail together."""

    @classmethod
    def of(cls, medium: SensedMedium, budget: SensorBudget) -> SensedParts:
        """Energies of the windows by mode, scaled to the sensor's stated energy; a range counts as its middle."""
        windows_j = float(medium.drawn_j.sum())
        stated = budget.stated_j / windows_j if windows_j else 1.0
        waited_j, waited_u_j = _middle(medium.waited_range_j)
        tail_j, tail_u_j = _middle(medium.tail_range_j)
        bound_u_j = math.hypot(waited_u_j, tail_u_j)

        def share(energy_j: float, own_u_j: float, part: float = 1.0) -> Quantity:
            scale_u_j = budget.scale_u * energy_j
            u_j = math.hypot(own_u_j, budget.whole_u_j * part, scale_u_j)
            return Quantity.from_standard(energy_j * stated, u_j, "J", shared={"the medium's scale": scale_u_j})

        return cls(
            share(waited_j, waited_u_j, medium.waited_part),
            share(windows_j - waited_j - tail_j, bound_u_j),
            share(tail_j, bound_u_j),
            share(windows_j - waited_j, waited_u_j),
        )

    def added_to(self, names: tuple[str, ...], fit: Fit) -> Fit:
        """Fit of the energy without the medium's, with the medium's part of the sync added."""
        is_sync = np.array([name == SYNC for name in names])
        u_j = is_sync * self.waited.standard_u
        return replace(
            fit,
            energy_j=fit.energy_j + is_sync * float(self.waited),
            standard_u_j=np.hypot(fit.standard_u_j, u_j),
            model_u_j=np.hypot(fit.model_u_j, u_j),
        )

    def reasons(self, rest_j: float) -> dict[str, Quantity | None]:
        """Why write-back and tail are not identifiable, given the energy of all other parts; else None."""
        whole_j = abs(rest_j) + float(self.waited) + float(self.alone)
        return {
            name: _reason(name, share, self.alone, whole_j)
            for name, share in ((WRITE_BACK, self.write_back), (TAIL, self.tail))
        }

    def joined_with(
        self, shares: Mapping[str, Quantity], reasons: Mapping[str, Quantity | None]
    ) -> dict[str, Quantity]:
        """Shares of a fit without the medium's energy, combined with the medium's shares."""
        joined = dict(shares)
        if SYNC in joined:
            sync = joined[SYNC]
            joined[SYNC] = Quantity.sum_of([sync, self.waited]).because(sync)
        medium = {WRITE_BACK: self.write_back, TAIL: self.tail}
        return joined | {name: share.because(reasons[name]) for name, share in medium.items()}


def _middle(bounds_j: Range) -> tuple[float, float]:
    return (bounds_j[0] + bounds_j[1]) / 2, (bounds_j[1] - bounds_j[0]) / math.sqrt(12.0)


def _reason(name: str, share: Quantity, alone: Quantity, whole_j: float) -> Quantity | None:
    energy_j, u_j = float(share), COVERAGE_FACTOR * share.standard_u
    if energy_j <= 0.0:
        return missing(f"{name} drew less than {max(energy_j + u_j, 0.0):.2g} J, if anything", "J", Cause.NOT_FOUND)
    if u_j <= identifiable_u_j(energy_j, whole_j, kind=False):
        return None
    drew = (
        f"{name} drew {max(energy_j - u_j, 0.0):.3g} to "
        f"{energy_j + u_j:.3g} J, depending on when bytes went to the medium between two readings; "
        f"write-back and tail together drew {alone.value:.3g} ± {COVERAGE_FACTOR * alone.standard_u:.2g} J"
    )
    return missing(drew, "J", Cause.TOO_COARSE)
