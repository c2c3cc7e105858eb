"""Quantities of a phase that the work marked inside its own. A new one is one row of `PHASES`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from msgspec.structs import replace

from opjoule.base.errors import DataFault
from opjoule.base.units import Cause, Quantity, exact, missing
from opjoule.energy.baseline import IdlePower, marginal_energy
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, SQRT3
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.runs.evaluation.quantities.definition import FIRST, Definition, Quantities, Topic
from opjoule.runs.evaluation.quantities.figures import Figures, over_repeats
from opjoule.runs.evaluation.repeat_energy import AlignedTrace
from opjoule.runs.record.groups import ABOVE_IDLE, ENERGY
from opjoule.runs.record.phases import Phase

_NO_OPERATION: Final = "no operation was marked in this phase"
_BOARD_CLOCK_U: Final = CRYSTAL_ERROR_MAX / SQRT3
"""Relative standard uncertainty of the board's seconds."""


@dataclass(frozen=True)
class MarkedPhase:
    """All stretches of one name in one repeat together."""

    energy: Quantity
    above_idle: Quantity
    duration: Quantity
    operations: float
    """Number of operations that began in them."""

    @classmethod
    def of(
        cls, aligned: AlignedTrace, stretches: Sequence[Phase], idle: IdlePower | None, operations: OperationTable
    ) -> Self:
        """Sums over the stretches."""
        energies, above = zip(*(_energies(aligned, phase, idle) for phase in stretches), strict=True)
        lengths_s = [phase.duration_s for phase in stretches]
        counts = [len(operations.started_in(phase.start_board_ns, phase.end_board_ns)) for phase in stretches]
        return cls(
            _together(energies),
            _together(above),
            _together([Quantity.from_standard(length_s, _BOARD_CLOCK_U * length_s, "s") for length_s in lengths_s]),
            float(sum(counts)),
        )


def _energies(aligned: AlignedTrace, phase: Phase, idle: IdlePower | None) -> tuple[Quantity, Quantity]:
    """Energy in all and above idle of one stretch; missing if it is outside the trace, or mostly lost."""
    try:
        energy = aligned.energy(phase, phase)
    except DataFault as fault:
        return (missing(str(fault), "J"),) * 2
    above = marginal_energy(energy, idle, aligned.sensor).energy if idle else missing(Cause.NO_IDLE, "J")
    return energy.energy, above


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


def phase_figures(
    aligned: AlignedTrace, marked: Sequence[Phase], idle: IdlePower | None, operations: OperationTable
) -> Figures:
    """Figures of one repeat's marked phases by path; phases of the same name are summed."""
    stretches: dict[str, list[Phase]] = {}
    for phase in marked:
        stretches.setdefault(phase.name, []).append(phase)
    phases = {name: MarkedPhase.of(aligned, named, idle, operations) for name, named in stretches.items()}
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
