"""From aligned windows to the numbers of result.json.

Each repeat gives one energy, one idle power and one set of counts; the result is their mean. Definitions are those of
docs/method/energy.md: energy covers run plus settle, marginal energy takes away idle power times that duration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import IdlePower, MarginalEnergy, idle_power, marginal_energy
from opjoule.energy.budget import Budget
from opjoule.energy.cells import Cells
from opjoule.energy.repeats import repeat_standard_u
from opjoule.energy.sensor import SensorModel
from opjoule.energy.window import EnergyResult, Window, window_energy_j
from opjoule.errors import DataFault
from opjoule.measurement.phases import Phase, of_name
from opjoule.units import Measured, Missing, Quantity, exact


@dataclass(frozen=True)
class RepeatEnergy:
    """The energies of one repeat."""

    whole: EnergyResult
    """Run plus settle."""
    run: EnergyResult
    settle: EnergyResult | None
    idle: IdlePower | None
    marginal: MarginalEnergy | None


@dataclass(frozen=True)
class Placed:
    """What is needed to integrate a phase: the trace's cells, sensor, and the map onto their clock."""

    cells: Cells
    sensor: SensorModel
    board_to_meter: ClockMap

    def window(self, first: Phase, last: Phase) -> Window:
        """From the start of one phase to the end of another, on the meter clock."""
        return Window.on_meter(self.board_to_meter, first.start_board_ns, last.end_board_ns)

    def energy(self, first: Phase, last: Phase) -> EnergyResult:
        """Energy of that window."""
        return window_energy_j(self.cells, self.window(first, last), self.sensor)


def repeat_energy(placed: Placed, phases: Sequence[Phase], repeat: int) -> RepeatEnergy:
    """Integrates one repeat.

    Raises: DataFault: the run is missing, outside the trace or mostly lost.
    """
    runs = of_name(phases, "run", repeat)
    if not runs:
        raise DataFault(f"repeat {repeat} has no complete run")
    run = runs[0]
    settles = of_name(phases, "settle", repeat)
    last = settles[0] if settles else run
    idles = [phase for name in ("idle-before", "idle-after") for phase in of_name(phases, name, repeat)]
    whole = placed.energy(run, last)
    idle = (
        idle_power(placed.cells, [placed.window(each, each) for each in idles], placed.sensor)
        if idles
        else None
    )
    return RepeatEnergy(
        whole,
        placed.energy(run, run),
        placed.energy(last, last) if settles else None,
        idle,
        marginal_energy(whole, idle, placed.sensor) if idle else None,
    )


def harness_energy(
    placed: Placed, phases: Sequence[Phase], idle: IdlePower | None, operations: float
) -> Quantity:
    """What the loader itself costs for `operations`: the harness phase, less idle power, scaled by its own count.

    Nothing is smaller than what noise and alignment leave of a short phase; its uncertainty says so.
    """
    found = of_name(phases, "harness", 1)
    if not found:
        return Missing("the harness was not measured (--no-harness)", "J")
    if idle is None:
        return Missing("no idle baseline (--idle 0)", "J")
    if not found[0].operations:
        return Missing("the harness made no operation", "J")
    marginal = marginal_energy(placed.energy(found[0], found[0]), idle, placed.sensor)
    return marginal.energy.scale(operations / found[0].operations)


def mean_energy(results: Sequence[tuple[float, Budget]]) -> tuple[Measured, Budget]:
    """Mean over repeats [J]: the repeats share their systematic errors, and their spread is a part of its own."""
    values = [value for value, _ in results]
    budget = results[0][1]
    for name in budget.parts:
        budget = budget.with_part(name, fmean(each.parts.get(name, 0.0) for _, each in results))
    if len(values) > 1:
        budget = budget.with_part("repeats", repeat_standard_u(values))
    return budget.energy(fmean(values)), budget


def energies(repeats: Sequence[RepeatEnergy], operations: float) -> dict[str, Any]:
    """The energy, power and budget entries of result.json.

    Args:
        operations: mean operations a repeat.
    """
    energy, budget = mean_energy([(each.whole.energy.value, each.whole.budget) for each in repeats])
    run, _ = mean_energy([(each.run.energy.value, each.run.budget) for each in repeats])
    run_s = fmean(each.run.window.duration_s for each in repeats)
    settles = [each.settle for each in repeats if each.settle]
    marginals = [each.marginal for each in repeats if each.marginal]
    idles = [each.idle for each in repeats if each.idle]
    marginal: Quantity = Missing("no idle baseline (--idle 0)", "J")
    marginal_budget: Budget | None = None
    if marginals:
        marginal, marginal_budget = mean_energy([(each.energy.value, each.budget) for each in marginals])
    per_operation = 1.0 / operations if operations else 0.0
    return {
        "energy_j": energy,
        "marginal_energy_j": marginal,
        "energy_per_operation_j": _per(energy, per_operation),
        "marginal_energy_per_operation_j": _per(marginal, per_operation),
        "power_w": run.scale(1.0 / run_s, "W"),
        "idle_power_w": _mean_power(idles),
        "settle_energy_j": mean_energy([(each.energy.value, each.budget) for each in settles])[0]
        if settles
        else Missing("the run was not followed by a settle phase", "J"),
        "budget": budget.to_json(),
        "marginal_budget": marginal_budget.to_json() if marginal_budget else None,
        "lost_samples": exact(sum(each.whole.lost_samples for each in repeats), "1"),
    }


def _per(energy: Quantity, per_operation: float) -> Quantity:
    if isinstance(energy, Measured):
        if per_operation:
            return energy.scale(per_operation)
        return Missing("no operation ended", "J")
    return energy


def _mean_power(idles: Sequence[IdlePower]) -> Quantity:
    """Mean idle power [W]; its uncertainty is mostly the sensor's, which repeats share."""
    if not idles:
        return Missing("no idle baseline (--idle 0)", "W")
    return Measured(fmean(each.power.value for each in idles), fmean(each.power.u for each in idles), "W")
