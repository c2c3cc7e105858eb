"""Joules as they add up over a stretch of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opjoule.errors import DataFault
from opjoule.opened.run import OpenedRun
from opjoule.trace.power_trace import Float64Array
from opjoule.units import Missing


@dataclass(frozen=True)
class RunningEnergy:
    """Energy from the beginning of a stretch to each of some moments in it."""

    time_s: Float64Array
    """Since the stretch began [s], shape (n,); the first is 0."""
    energy_j: Float64Array
    """All of it [J], shape (n,); the last is what `OpenedRun.energy` gives for the stretch."""
    marginal_energy_j: Float64Array | None
    """Less idle power times the time so far [J]; None where idle power is not known."""


def running_energy(run: OpenedRun, start_s: float, end_s: float, moments: int) -> RunningEnergy:
    """How a stretch's joules add up, at equally spaced moments.

    Args:
        start_s, end_s: on the run's time axis [s].
        moments: at least 2.
    Raises: BadInput: no stretch. WindowError: it reaches outside the trace. GapError: too much of it was lost.
        DataFault: its energy is withheld.
    """
    stretch = run.energy(start_s, end_s)
    if isinstance(stretch.energy_j, Missing):
        raise DataFault(stretch.energy_j.reason)
    edge_ns = np.linspace(run.meter_ns(start_s), run.meter_ns(end_s), max(moments, 2)).astype(np.int64)
    steps_j = run.cells.power.between_edges(edge_ns)
    # On the meter's seconds; the whole is on the best clock's.
    energy_j = np.concatenate(([0.0], np.cumsum(steps_j)))
    energy_j *= stretch.energy_j.value / energy_j[-1] if energy_j[-1] else 1.0
    share = np.linspace(0.0, 1.0, edge_ns.size)
    above_j = stretch.marginal_energy_j
    marginal = None
    if not isinstance(above_j, Missing):
        marginal = energy_j - share * (stretch.energy_j.value - above_j.value)
    return RunningEnergy(share * (end_s - start_s), energy_j, marginal)
