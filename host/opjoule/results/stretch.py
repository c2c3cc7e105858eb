"""Energy of any stretch of a record: joules, joules above idle, joules per operation, mean power."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opjoule.base.units import Cause, Quantity, missing
from opjoule.energy.baseline import IdlePower, marginal_energy
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.window import Window, window_energy_j
from opjoule.runs.record.groups import ABOVE_IDLE, ENERGY, PER_OPERATION

NO_OPERATION = "no operation began in it"


@dataclass(frozen=True)
class StretchEnergy:
    """Energy between two moments; each number has its expanded uncertainty, or a reason why it has none."""

    duration_s: Quantity
    energy_j: Quantity
    """Energy [J], idle power included."""
    marginal_energy_j: Quantity
    """Energy above idle [J]: the idle power of the repeat that contains the stretch's middle is subtracted."""
    power_w: Quantity
    """Mean power [W]."""
    operations: int
    """Number of operations that began in the stretch."""
    energy_per_operation_j: Quantity
    marginal_energy_per_operation_j: Quantity


def stretch_energy(
    cells: Cells,
    sensor: ErrorBounds,
    window: Window,
    idle: IdlePower | None,
    operations: int,
    *,
    withheld: Mapping[str, str],
    why_unstated: str = "",
) -> StretchEnergy:
    """Energy, mean power and energy per operation of one window of a trace.

    Args:
        idle: idle power around the window, if known.
        withheld: group of figures -> the fault that makes them wrong, from run.json.
        why_unstated: reason why no uncertainty is stated; empty if it is.
    Raises: WindowError: the window is empty or reaches outside the trace. GapError: too much of it was lost.
    """
    result = window_energy_j(cells, window, sensor)
    above: Quantity = missing(Cause.NO_IDLE, "J")
    if idle is not None:
        above = marginal_energy(result, idle, sensor).energy
    seconds = Quantity.from_standard(window.duration_s, window.duration_s * result.timebase.relative_u, "s")
    energy = _withheld(result.energy, withheld, (ENERGY,))
    above = _withheld(above, withheld, (ENERGY, ABOVE_IDLE))
    figures = {
        "duration_s": seconds,
        "energy_j": energy,
        "marginal_energy_j": above,
        "power_w": _withheld(result.power, withheld, (ENERGY,)),
        "energy_per_operation_j": _withheld(energy.over(operations, NO_OPERATION), withheld, (PER_OPERATION,)),
        "marginal_energy_per_operation_j": _withheld(above.over(operations, NO_OPERATION), withheld, (PER_OPERATION,)),
    }
    if why_unstated:
        figures = {key: of.without_interval(why_unstated) for key, of in figures.items()}
    return StretchEnergy(operations=operations, **figures)


def _withheld(of: Quantity, withheld: Mapping[str, str], rests_on: Sequence[str]) -> Quantity:
    why = next((withheld[group] for group in rests_on if group in withheld), "")
    return missing(why, of.unit, Cause.WITHHELD) if why else of
