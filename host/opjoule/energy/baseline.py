"""Idle power before and after a run, and the marginal energy that is left when it is taken away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opjoule.energy.budget import Budget
from opjoule.energy.cells import Cells
from opjoule.energy.sensor import SensorModel
from opjoule.energy.uncertainty import SQRT12
from opjoule.energy.window import EnergyResult, Window, stated_energy, window_energy_j
from opjoule.errors import WindowError
from opjoule.trace.power_trace import Float64Array, PowerTrace
from opjoule.units import Measured, Unstated

BLOCKS_MIN = 16
"""Fewest block averages from which a standard error is taken."""


@dataclass(frozen=True)
class IdlePower:
    """Mean power of the idle windows."""

    power: Measured
    """[W], k = 2, every source of uncertainty."""
    standard_u_w: float
    """Standard uncertainty from noise, lost samples and drift alone [W]."""
    quantisation_u_w: float
    """Standard uncertainty from the converter's steps [W]."""
    drift_w: float
    """Power after minus power before [W]."""
    voltage_v: float
    """Mean voltage while idle [V]."""
    windows: tuple[Window, ...]
    clipped_samples: int = 0
    """Samples of the windows at the end of the meter's range: the power is then a lower bound."""


@dataclass(frozen=True)
class MarginalEnergy:
    """Energy of a window beyond idle power times its duration, or times a part of it."""

    energy: Measured | Unstated
    """[J], k = 2; without an uncertainty if samples of the window or of idle are clipped."""
    budget: Budget


def idle_power(trace: PowerTrace | Cells, windows: Sequence[Window], sensor: SensorModel) -> IdlePower:
    """Mean idle power of one or two windows (before, after), in the same state as the run.

    The standard error of each mean respects the noise's autocorrelation (block averages); the difference
    between the windows enters as drift: idle power during the run lay anywhere between them.

    Raises: WindowError, GapError: as `window_energy_j`, or windows other than one or two.
    """
    if len(windows) not in {1, 2}:
        raise WindowError(f"idle power needs one or two windows, got {len(windows)}")
    cells = trace if isinstance(trace, Cells) else Cells.of(trace)
    results = [window_energy_j(cells, window, sensor) for window in windows]
    powers_w = [result.mean_power_w for result in results]
    power_w, voltage_v = float(np.mean(powers_w)), _mean_voltage_v(results)
    drift_w = powers_w[-1] - powers_w[0]
    errors_w = [_mean_u_w(cells, result) for result in results]
    standard_u_w = math.hypot(math.hypot(*errors_w) / len(errors_w), drift_w / SQRT12)
    quantisation_u_w = max(r.budget.parts["quantisation"] / r.window.duration_s for r in results)
    systematic_w = math.hypot(power_w * sensor.power_gain_u, voltage_v * sensor.current_offset_u_a)
    return IdlePower(
        power=Measured.from_standard(power_w, math.hypot(systematic_w, standard_u_w, quantisation_u_w), "W"),
        standard_u_w=standard_u_w,
        quantisation_u_w=quantisation_u_w,
        drift_w=drift_w,
        voltage_v=voltage_v,
        windows=tuple(windows),
        clipped_samples=sum(result.clipped_samples for result in results),
    )


def marginal_energy(
    run: EnergyResult, idle: IdlePower, sensor: SensorModel, idle_s: float | None = None
) -> MarginalEnergy:
    """Energy of a window less idle power times `idle_s`: the window's whole duration, or a part of it.

    Gain errors scale the difference; the current's offset cancels up to the change of the supply voltage, as far as
    idle power is taken away.
    """
    duration_s = run.window.duration_s if idle_s is None else idle_s
    value_j = run.energy.value - idle.power.value * duration_s
    voltage_change_vs = run.voltage_time_vs - idle.voltage_v * duration_s
    parts = run.budget.parts
    budget = Budget(
        {
            **parts,
            "gain": abs(value_j) * sensor.power_gain_u,
            "timebase": abs(value_j) * run.timebase.relative_u,
            "offset": abs(voltage_change_vs) * sensor.current_offset_u_a,
            "quantisation": math.hypot(parts["quantisation"], idle.quantisation_u_w * duration_s),
            "baseline": idle.standard_u_w * duration_s,
        },
        {name: reason for name, reason in run.budget.absent.items() if name != "baseline"},
    )
    if idle.clipped_samples:
        reason = f"{idle.clipped_samples} samples of idle at the end of the meter's range"
        return MarginalEnergy(Unstated(value_j, "J", reason), budget)
    return MarginalEnergy(stated_energy(budget, value_j, run.clipped_samples), budget)


def standard_error(values: Float64Array) -> float:
    """Standard error of the mean of autocorrelated values: the greatest over block lengths 1, 2, 4, ...

    Blocks longer than the correlation are independent; of every block length that leaves 16 blocks or more
    the greatest error counts. 0 for fewer than 16 values.
    Source: Flyvbjerg and Petersen, J. Chem. Phys. 91, 461 (1989).
    """
    error, blocks = 0.0, values
    while blocks.size >= BLOCKS_MIN:
        error = max(error, float(blocks.std(ddof=1)) / math.sqrt(blocks.size))
        even = blocks[: blocks.size // 2 * 2]
        blocks = (even[0::2] + even[1::2]) / 2
    return error


def _mean_u_w(cells: Cells, result: EnergyResult) -> float:
    """Standard error of a window's mean power [W]: noise, and what was lost."""
    window = result.window
    power_w = cells.sample_power_w(cells.inside(window.start_ns, window.end_ns))
    return math.hypot(standard_error(power_w), result.budget.parts["loss"] / window.duration_s)


def _mean_voltage_v(results: Sequence[EnergyResult]) -> float:
    return float(np.mean([result.voltage_time_vs / result.window.duration_s for result in results]))
