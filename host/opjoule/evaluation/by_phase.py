"""The energy of each phase that the work has marked inside its own: whole, above idle, per operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opjoule.energy.baseline import IdlePower, marginal_energy
from opjoule.evaluation.quantities.figures import Figure, Figures, over_repeats
from opjoule.evaluation.quantities.repeat import NO_IDLE
from opjoule.evaluation.repeat_energy import AlignedTrace
from opjoule.operations.operation_table import OperationTable
from opjoule.record.phases import Phase
from opjoule.units import Missing, Quantity

NO_OPERATION = "no operation was marked in this phase"


def phase_figures(
    aligned: AlignedTrace, marked: Sequence[Phase], idle: IdlePower | None, operations: OperationTable
) -> dict[str, Figures]:
    """Figures of one repeat's marked phases by their name; of a name that comes several times, the sum.

    Args:
        marked: of one repeat, in order of their start.
        operations: of that repeat.
    """
    parts: dict[str, list[dict[str, Figure | Missing]]] = {}
    for phase in marked:
        parts.setdefault(phase.name, []).append(_one(aligned, phase, idle, operations))
    return {name: _sum(each) for name, each in parts.items()}


def by_phase(repeats: Sequence[Mapping[str, Figures]]) -> dict[str, dict[str, Quantity]]:
    """`by_phase` of result.json: each figure's mean over the repeats; one that a repeat lacks is missing."""
    names = dict.fromkeys(name for each in repeats for name in each)
    lacking: dict[str, Figure | Missing] = {}
    made = {}
    for name in names:
        found = [each.get(name, lacking) for each in repeats]
        keys = next(each for each in found if each)
        none = Missing("the phase was not marked")
        made[name] = {key: over_repeats([each.get(key, none) for each in found]) for key in keys}
    return made


def _one(
    aligned: AlignedTrace, phase: Phase, idle: IdlePower | None, operations: OperationTable
) -> dict[str, Figure | Missing]:
    energy = aligned.energy(phase, phase)
    count = len(operations.started_in(phase.start_board_ns, phase.end_board_ns))
    clock_u = energy.timebase.relative_u
    above = marginal_energy(energy, idle, aligned.sensor).energy if idle else None
    return {
        "energy_j": Figure.energy(energy.energy),
        "marginal_energy_j": Figure.energy(above) if above else Missing(NO_IDLE, "J"),
        "duration_s": Figure(phase.duration_s, "s", clock_u * phase.duration_s),
        "operations": Figure(float(count), "1", 0.0),
    }


def _sum(parts: Sequence[Mapping[str, Figure | Missing]]) -> dict[str, Figure | Missing]:
    """The parts share their systematic errors: their standard uncertainties add up."""
    total: dict[str, Figure | Missing] = {}
    for key in parts[0]:
        figures = [each[key] for each in parts]
        missing = next((each for each in figures if isinstance(each, Missing)), None)
        known = [each for each in figures if isinstance(each, Figure)]
        if missing:
            total[key] = missing
            continue
        us = [each.standard_u for each in known if each.standard_u is not None]
        bound = next((each for each in known if each.lower_bound), known[0])
        value, u = sum(each.value for each in known), sum(us) if len(us) == len(known) else None
        excess = max(each.excess for each in known)
        total[key] = Figure(value, bound.unit, u, bound.reason, bound.lower_bound, excess=excess)
    count = total["operations"]
    for key, of in (
        ("energy_per_operation_j", "energy_j"),
        ("marginal_energy_per_operation_j", "marginal_energy_j"),
    ):
        whole = total[of]
        if isinstance(whole, Missing) or isinstance(count, Missing):
            total[key] = whole
        else:
            total[key] = whole.scale(1.0 / count.value) if count.value else Missing(NO_OPERATION, "J")
    return total
