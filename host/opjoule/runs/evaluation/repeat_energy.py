"""Energies of one repeat from aligned windows, as docs/method/energy.md defines them.

`run_energy_j` is the energy of the run's window. Of settle, with the medium's tail, only the energy above idle counts,
because waiting belongs to no operation. `energy_j` is the sum of both; `marginal_energy_j` is `energy_j` less idle
power times the run's duration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from opjoule.base.errors import DataFault
from opjoule.base.units import Cause, Quantity, missing
from opjoule.energy.baseline import IdlePower, idle_power, marginal_energy
from opjoule.runs.evaluation.alignment import AlignedTrace
from opjoule.runs.evaluation.quantities.definition import RepeatEnergy
from opjoule.runs.record.phases import Cycle, Phase, Role

HARNESS = "harness"
"""Control that runs the same operations without a database."""


def repeat_energy(aligned: AlignedTrace, phases: Sequence[Phase], repeat: int) -> RepeatEnergy:
    """Integrates one repeat. Raises: DataFault: its run is missing, outside the trace or mostly lost."""
    cycle = Cycle.of(phases, repeat)
    if cycle is None:
        raise DataFault(f"repeat {repeat} has no complete run")
    run, last = cycle.work, cycle.drain or cycle.work
    during, whole = aligned.energy(run, run), aligned.energy(run, last)
    idle = repeat_idle(aligned, cycle)
    if idle is None:
        return RepeatEnergy(during, whole, None, None, None, None)
    settle = aligned.energy(last, last) if cycle.drain else None
    settle_s = settle.window.duration_s if settle else 0.0
    return RepeatEnergy(
        during,
        whole,
        idle,
        energy=marginal_energy(whole, idle, aligned.sensor, settle_s),
        marginal=marginal_energy(whole, idle, aligned.sensor),
        write_back=marginal_energy(settle, idle, aligned.sensor) if settle else None,
    )


def repeat_idle(aligned: AlignedTrace, cycle: Cycle) -> IdlePower | None:
    """Idle power of one repeat; None if it was not measured.

    Raises: WindowError, GapError: an idle phase is outside the trace, or mostly lost.
    """
    idles = [phase.steady for phase in cycle.baselines]
    if not idles:
        return None
    return idle_power(aligned.cells, [aligned.window(idle, idle) for idle in idles], aligned.sensor)


@dataclass(frozen=True)
class Harness:
    """The control that runs the same operations without a database."""

    operations: int
    energy: Quantity
    """Energy above idle."""

    @classmethod
    def of(cls, aligned: AlignedTrace, phases: Sequence[Phase], idle: IdlePower | None) -> Self | Quantity:
        """The control of a measurement. Missing if its phase is outside the trace or mostly lost."""
        found = next((phase for phase in phases if phase.name == HARNESS and phase.role is Role.CONTROL), None)
        if found is None:
            return missing("the harness was not measured (--no-harness, or the run ended early)", "J")
        if idle is None:
            return missing(Cause.NO_IDLE, "J")
        if not found.operations:
            return missing("the harness executed no operation", "J")
        try:
            energy = aligned.energy(found, found)
        except DataFault as fault:
            return missing(str(fault), "J")
        above = marginal_energy(energy, idle, aligned.sensor).energy
        return cls(found.operations, replace(above, shared={}))

    def core_w(self, cpu_s: float | None) -> float | None:
        """Power above idle of a processor that the loader keeps busy [W]. None if it may be zero, or was not measured.

        Args:
            cpu_s: the loader's processor time in the control [s].
        """
        u_j = self.energy.u or 0.0
        return float(self.energy) / cpu_s if cpu_s and float(self.energy) > u_j else None

    def energy_of(self, operations: float) -> Quantity:
        """Energy of the loader itself for a number of operations [J].

        Noise and alignment limit the accuracy of a short phase; the uncertainty includes them.
        """
        return self.energy.scale(operations / self.operations)
