"""Quantities of a phase that the work marked inside its own. A new one is one row of `PHASES`.

Its formula computes it from a `MarkedPhase`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from opjoule.base.errors import DataFault
from opjoule.base.units import Cause, Quantity, exact, missing
from opjoule.energy.baseline import IdlePower, marginal_energy
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, SQRT3
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.window import EnergyResult
from opjoule.runs.evaluation.aligned_trace import AlignedTrace
from opjoule.runs.evaluation.quantities.definition import FIRST, Definition, Quantities, Topic
from opjoule.runs.evaluation.quantities.figures import Figures, over_repeats
from opjoule.runs.record.groups import ABOVE_IDLE, ENERGY
from opjoule.runs.record.phases import Phase

_NO_OPERATION: Final = "no operation was marked in this phase"
_BOARD_CLOCK_U: Final = CRYSTAL_ERROR_MAX / SQRT3
"""Relative standard uncertainty of the board's seconds."""


@dataclass(frozen=True)
class MarkedPhase:
    """All stretches of one name in one repeat together, and what was measured in that repeat."""

    aligned: AlignedTrace
    stretches: Sequence[Phase]
    idle: IdlePower | None
    """None if it was not measured."""
    operation_table: OperationTable

    @property
    def energy(self) -> Quantity:
        """Energy in all; missing if a stretch is outside the trace, or mostly lost."""
        return _together([energy if isinstance(energy, Quantity) else energy.energy for energy in self._energies])

    @property
    def above_idle(self) -> Quantity:
        """Energy above idle; missing as `energy`, and without idle power."""
        return _together([self._above_idle(energy) for energy in self._energies])

    @property
    def duration(self) -> Quantity:
        """Length of all stretches by the board's clock."""
        lengths_s = [phase.duration_s for phase in self.stretches]
        return _together([Quantity.from_standard(length_s, _BOARD_CLOCK_U * length_s, "s") for length_s in lengths_s])

    @property
    def operations(self) -> float:
        """Number of operations that began in them."""
        started_in = self.operation_table.started_in
        return float(sum(len(started_in(phase.start_board_ns, phase.end_board_ns)) for phase in self.stretches))

    @cached_property
    def _energies(self) -> list[EnergyResult | Quantity]:
        """Energy of each stretch, or the reason why it is missing."""
        return [self._energy(phase) for phase in self.stretches]

    def _energy(self, phase: Phase) -> EnergyResult | Quantity:
        try:
            return self.aligned.energy(phase, phase)
        except DataFault as fault:
            return missing(str(fault), "J")

    def _above_idle(self, energy: EnergyResult | Quantity) -> Quantity:
        if isinstance(energy, Quantity):
            return energy
        if self.idle is None:
            return missing(Cause.NO_IDLE, "J")
        return marginal_energy(energy, self.idle, self.aligned.sensor).energy


def _together(parts: Sequence[Quantity]) -> Quantity:
    """Sum of quantities whose systematic errors are common: the standard uncertainties add up, and so do the shared
    errors, with their signs."""
    if lacking := next((part for part in parts if part.value is None), None):
        return lacking
    value, unit = sum(map(float, parts)), parts[0].unit
    if without := [part for part in parts if part.u is None]:
        return replace(next((part for part in without if part.unbounded), without[0]), value=value)
    names = dict.fromkeys(name for part in parts for name in part.shared)
    shared = {name: sum(part.shared.get(name, 0.0) for part in parts) for name in names}
    excess = max(part.excess for part in parts)
    return Quantity.from_standard(value, sum(part.standard_u for part in parts), unit, excess, shared)


PHASES: Final = (
    Definition(
        "by_phase.*.energy_j", "J", Topic.PART, "energy", "energy of a phase that the command marked",
        lambda phase: phase.energy, rests_on=(ENERGY,), required=False, column="in all",
    ),
    Definition(
        "by_phase.*.marginal_energy_j", "J", Topic.PART, "energy above idle",
        "the same less idle power times the phase's duration",
        lambda phase: phase.above_idle, rests_on=(ENERGY, ABOVE_IDLE), required=False,
        column="above idle", rank={"column": FIRST},
    ),
    Definition(
        "by_phase.*.duration_s", "s", Topic.PART, "time", "its duration",
        lambda phase: phase.duration, required=False, column="time",
    ),
    Definition(
        "by_phase.*.operations", "1", Topic.PART, "operations", "operations marked in it",
        lambda phase: exact(phase.operations, "1"), required=False, column="operations",
    ),
    Definition(
        "by_phase.*.energy_per_operation_j", "J", Topic.PART, "energy per operation", "its energy over them",
        lambda phase: phase.energy.over(phase.operations, _NO_OPERATION), rests_on=(ENERGY,), required=False,
    ),
    Definition(
        "by_phase.*.marginal_energy_per_operation_j", "J", Topic.PART, "energy above idle per operation",
        "its energy above idle over them",
        lambda phase: phase.above_idle.over(phase.operations, _NO_OPERATION), rests_on=(ENERGY, ABOVE_IDLE),
        required=False, column="per operation",
    ),
)  # fmt: skip
"""One row a quantity, in the order of result.json."""


def phase_columns() -> list[Definition]:
    """The quantities that a table of phases shows, in its order."""
    return Quantities(PHASES).shown("column")


def figures_of(phases: Mapping[str, MarkedPhase]) -> Figures:
    """Figures of one repeat's phases, each by its path in result.json; `phases`: by name."""
    return {_path(of, name): of.formula(phase) for name, phase in phases.items() for of in PHASES if of.formula}


def _path(of: Definition, name: str) -> str:
    return of.key.replace("*", name)


def by_phase(names: Sequence[str], repeats: Sequence[Figures]) -> dict[str, Mapping[str, Quantity]]:
    """`by_phase` of result.json: each figure's mean over the repeats; missing if a repeat lacks it."""
    none = missing("the phase was not marked")
    return {
        name: {
            of.key.rpartition(".")[2]: over_repeats([figures.get(_path(of, name), none) for figures in repeats])
            for of in PHASES
        }
        for name in dict.fromkeys(names)
    }
