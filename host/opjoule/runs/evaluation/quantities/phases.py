"""Quantities of a phase that the work marked inside its own. A new one is one row of `PHASES`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from opjoule.base.units import Quantity, exact, missing
from opjoule.runs.evaluation.quantities.definition import FIRST, Definition, Quantities, Topic
from opjoule.runs.evaluation.quantities.figures import Figures, over_repeats
from opjoule.runs.record.groups import ABOVE_IDLE, ENERGY

_NO_OPERATION: Final = "no operation was marked in this phase"


@dataclass(frozen=True)
class MarkedPhase:
    """All stretches of one name in one repeat together."""

    energy: Quantity
    above_idle: Quantity
    duration: Quantity
    operations: float
    """Number of operations that began in them."""


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
