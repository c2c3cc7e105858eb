"""What operations of several kinds that write cost all told, from runs whose mixes differ.

The energy of a run above idle, less that of its reads, is the sum of the kinds' counts times their costs. The repeats
and the runs in other mixes are more equations than there are kinds. docs/method/attribution.md, "Several kinds that
write".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR, student_t
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Quantity
from opjoule.energy.repeats import student_probability
from opjoule.energy.trace.power_trace import Float64Array

ALPHA: Final = 0.01
"""Probability with which costs that are additive may be called not additive."""
MATERIAL: Final = 0.05
"""Least relative deviation from additive costs that is stated."""


@dataclass(frozen=True)
class WrittenRun:
    """Operations that write in one run with its settle, and their energy."""

    counts: Mapping[str, int]
    energy: Quantity
    """Energy above idle [J], with the errors that it has in common with the other runs."""
    own_u_j: float = 0.0
    """Standard uncertainty from errors that the run has of its own [J]."""


@dataclass(frozen=True)
class WriteCosts:
    """What one operation of each kind that writes costs all told; the costs add up to the repeats' mean energy."""

    kinds: tuple[str, ...]
    cost_j: Float64Array
    """Shape (k,)."""
    scatter_u_j: Float64Array
    """Standard uncertainty from the scatter of the runs, widened by Student's t, shape (k,)."""
    common_j: Mapping[str, Float64Array]
    """Source of the errors that the runs have in common -> contribution of one standard uncertainty, shape (k,)."""
    off: float
    """Energy of the repeats as the runs in other mixes alone predict it, over their own, less one; 0 if there are too
    few."""
    chance: float
    """p-value of `off` if costs are additive; 1 if it cannot be told."""

    @classmethod
    def of(cls, repeats: Sequence[WrittenRun], mixes: Sequence[WrittenRun]) -> Self | None:
        """The costs by least squares; None if there are too few runs, or their mixes are too much alike.

        Errors in common, such as the sensor's gain, do not change which costs fit best, since they change all runs as
        other costs would. They count in the interval.
        Source: JCGM 102:2011, 6.2 (propagation by the matrix of sensitivities).
        """
        runs = [*repeats, *mixes]
        kinds = tuple(dict.fromkeys(kind for run in repeats for kind in run.counts))
        count = np.array([[float(run.counts.get(kind, 0)) for kind in kinds] for run in runs])
        energy_j, own_u_j = np.array([(float(run.energy), run.own_u_j) for run in runs]).T
        freedom = len(runs) - len(kinds)
        if freedom < 1 or len(mixes) < len(kinds) - 1 or not _apart(count):
            return None
        solution = np.linalg.pinv(count)
        fitted_j = solution @ energy_j
        mean = np.where(np.arange(len(runs)) < len(repeats), 1.0 / len(repeats), 0.0)
        usual = mean @ count
        fitted_mean_j, mean_j = float(usual @ fitted_j), float(mean @ energy_j)
        if min(fitted_mean_j, mean_j) <= 0.0:
            return None
        scale = mean_j / fitted_mean_j
        residual_j = energy_j - count @ fitted_j
        additive = _Additivity.of(count, energy_j, own_u_j, len(repeats))
        variance = max(float(residual_j @ residual_j) / freedom, additive.variance)
        # Sensitivities of the scaled costs to the energy of each run, shape (k, runs).
        sensitivity = scale * solution + np.outer(fitted_j, mean - scale * (usual @ solution)) / fitted_mean_j
        scatter_u_j = np.sqrt(sensitivity**2 @ np.maximum(variance, own_u_j**2))
        return cls(
            kinds,
            scale * fitted_j,
            scatter_u_j * student_t(freedom) / COVERAGE_FACTOR,
            {source: sensitivity @ of_runs_j for source, of_runs_j in _in_common(runs).items()},
            additive.off_j / mean_j,
            additive.chance,
        )

    def shares(self, left: Quantity, counts: Mapping[str, int]) -> dict[str, Quantity]:
        """The energy of a repeat's writes, divided by kind in proportion to count times cost [J]."""
        count = np.array([float(counts.get(kind, 0)) for kind in self.kinds])
        part_j = count * self.cost_j
        part_j *= float(left) / part_j.sum()
        shares = {}
        for at, kind in enumerate(self.kinds):
            common_j = {source: float(count[at] * u_j[at]) for source, u_j in self.common_j.items()}
            u_j = math.hypot(count[at] * self.scatter_u_j[at], *common_j.values())
            shared = {source: u_j for source, u_j in common_j.items() if source != READING}
            shares[kind] = Quantity.from_standard(float(part_j[at]), u_j, "J", shared=shared)
        return shares

    @property
    def notices(self) -> list[Notice]:
        """One notice if the costs are not additive."""
        if abs(self.off) < MATERIAL or self.chance >= ALPHA:
            return []
        more = "more" if self.off > 0 else "less"
        line = (
            f"costs are not additive: by the runs in other mixes, the operations that write would draw "
            f"{100 * abs(self.off):.0f} % {more} than they did in the repeats. The intervals of their costs all told "
            "include that"
        )
        return [Notice(NoticeKind.NOT_ADDITIVE, line)]


READING: Final = "reading"
"""Name of the error of what the reads draw."""
_ALIKE: Final = 1e-3
"""Counts, over the highest of all, whose differences do not tell kinds apart."""


def _in_common(runs: Sequence[WrittenRun]) -> dict[str, Float64Array]:
    """Source of the errors that the runs have in common -> contribution to the energy of each, shape (runs,)."""
    sources = sorted({source for run in runs for source in run.energy.shared})
    shared_j = {source: np.array([run.energy.shared.get(source, 0.0) for run in runs]) for source in sources}
    return {**shared_j, READING: np.array([run.energy.own_u for run in runs])}


def _apart(count: Float64Array) -> bool:
    """Whether counts of runs, shape (runs, k), tell the kinds apart."""
    return bool(np.linalg.matrix_rank(count, tol=_ALIKE * count.max()) == count.shape[1])


@dataclass(frozen=True)
class _Additivity:
    """The repeats' energy as the runs in other mixes alone predict it, against their own."""

    off_j: float = 0.0
    variance: float = 0.0
    """Variance of a run's energy that this difference shows, with one degree of freedom [J^2]."""
    chance: float = 1.0

    @classmethod
    def of(cls, count: Float64Array, energy_j: Float64Array, own_u_j: Float64Array, repeats: int) -> Self:
        """No difference with fewer runs in other mixes than kinds, or with a single repeat.

        Args:
            count: counts of all runs, the repeats first, shape (runs, k); the others likewise.
            own_u_j: standard uncertainties of the runs' own errors.
        """
        mixes = count[repeats:]
        if repeats < 2 or not _apart(mixes):
            return cls()
        weight = count[:repeats].mean(axis=0) @ np.linalg.pinv(mixes)
        own_j = energy_j[:repeats]
        off_j = float(weight @ energy_j[repeats:] - own_j.mean())
        times = float(weight @ weight) + 1.0 / repeats
        scatter = max(float(own_j.var(ddof=1)), float(np.mean(own_u_j**2)))
        chance = student_probability(off_j / math.sqrt(scatter * times), repeats - 1) if scatter else 0.0
        return cls(off_j, off_j**2 / times, chance)
