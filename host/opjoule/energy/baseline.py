"""Idle power before and after a run, and the marginal energy: the run's energy above idle."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opjoule.base.coverage import excess_kurtosis
from opjoule.base.errors import WindowError
from opjoule.base.units import Cause, Quantity
from opjoule.energy.budget import SQRT12, Budget, steps_u_w
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.repeats import long_block_errors
from opjoule.energy.systematic import Integrals, systematic
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import EnergyResult, Window, stated_energy, window_energy_j


@dataclass(frozen=True)
class IdlePower:
    """Mean power of the idle windows."""

    power: Quantity
    """[W], every source of uncertainty."""
    standard_u_w: float
    """Standard uncertainty from noise, ripple, lost samples and drift alone [W]."""
    noise_w_root_s: float
    """Idle noise and ripple [W s^0.5]. Over the root of a stretch's length: standard deviation of its mean power."""
    steps_u_w: float
    """Standard uncertainty from the converter's quantisation steps [W]."""
    mean: Integrals
    """Mean over the windows of each integral that an error of the sensor multiplies."""
    watt_per_ohm: float
    """Change of the power with the supply's resistance [W/ohm]; its error is common with the run's."""
    windows: tuple[Window, ...]
    clipped_samples: int = 0
    """Samples of the windows at the end of the meter's range; if there are any, the power is a lower bound."""


@dataclass(frozen=True)
class MarginalEnergy:
    """Energy of a window above idle power times its duration, or times a part of the duration."""

    energy: Quantity
    """[J], expanded; without an uncertainty if samples of the window or of idle are clipped."""
    budget: Budget


def idle_power(trace: PowerTrace | Cells, windows: Sequence[Window], sensor: ErrorBounds) -> IdlePower:
    """Mean idle power of one or two windows (before, after), in the same state as the run.

    The standard error of each mean includes the noise's autocorrelation (averages of long blocks). The difference
    between the windows enters as drift: idle power during the run may have had any value between them.

    Raises: WindowError, GapError: as `window_energy_j`, or windows other than one or two.
    """
    if len(windows) not in {1, 2}:
        raise WindowError(f"idle power needs one or two windows, got {len(windows)}")
    cells = trace if isinstance(trace, Cells) else Cells.of(trace)
    results = [window_energy_j(cells, window, sensor) for window in windows]
    count = len(results)
    powers_w = [result.mean_power_w for result in results]
    power_w, mean = float(np.mean(powers_w)), _mean(results)
    mean_u_w = _mean_u_w(cells, results)
    standard_u_w = math.hypot(
        *(u_w / count for u_w in mean_u_w),
        *(result.voltage.spread_u_j / result.window.duration_s / count for result in results),
        (powers_w[-1] - powers_w[0]) / SQRT12,  # the drift
    )
    steps_w = steps_u_w(cells, [(window.start_ns, window.end_ns) for window in windows], sensor)
    watt_per_ohm = float(np.mean([r.voltage.joule_per_ohm / r.window.duration_s for r in results]))
    shared = systematic(sensor, mean)
    resistance_w = watt_per_ohm * results[0].voltage.resistance_u_ohm
    noise_w = math.hypot(resistance_w, standard_u_w, steps_w)
    excess = excess_kurtosis(
        [(noise_w, 0.0), *((part, shared.excess.get(name, 0.0)) for name, part in shared.parts.items())]
    )
    strays = (u_w**2 * result.window.duration_s for u_w, result in zip(mean_u_w, results, strict=True))
    return IdlePower(
        power=Quantity.from_standard(power_w, math.hypot(*shared.parts.values(), noise_w), "W", excess, shared.shared),
        standard_u_w=standard_u_w,
        noise_w_root_s=math.sqrt(sum(strays) / count),
        steps_u_w=steps_w,
        mean=mean,
        watt_per_ohm=watt_per_ohm,
        windows=tuple(windows),
        clipped_samples=sum(result.clipped_samples for result in results),
    )


def marginal_energy(
    run: EnergyResult, idle: IdlePower, sensor: ErrorBounds, idle_s: float | None = None
) -> MarginalEnergy:
    """Energy of a window less idle power times `idle_s`: the window's duration (default), or a part of it.

    Errors common to run and idle act on their difference only: a gain on the energy above idle, an offset of the
    current on the change of the supply voltage, truncated codes of the voltage on the change of the current, and the
    supply's resistance. Idle power during the window differs from its mean as much as idle power varies.
    """
    duration_s = run.window.duration_s if idle_s is None else idle_s
    value_j = float(run.energy) - float(idle.power) * duration_s
    change = run.integrals.less(idle.mean, duration_s)
    shift_j = (run.voltage.joule_per_ohm - idle.watt_per_ohm * duration_s) * run.voltage.resistance_u_ohm
    parts = run.budget.parts
    shared = systematic(sensor, change)
    stray_j = idle.noise_w_root_s * math.sqrt(duration_s)
    budget = Budget(
        {
            **parts,
            **shared.parts,
            "quantisation": math.hypot(parts["quantisation"], idle.steps_u_w * duration_s),
            "voltage": math.hypot(run.voltage.spread_u_j, shift_j),
            "timebase": abs(value_j) * run.timebase.relative_u,
            "baseline": math.hypot(idle.standard_u_w * duration_s, stray_j),
        },
        {name: reason for name, reason in run.budget.absent.items() if name != "baseline"},
        shared.shared,
        shared.excess,
    )
    if idle.clipped_samples:
        reason = f"{idle.clipped_samples} samples of idle at the end of the meter's range"
        return MarginalEnergy(Quantity(value_j, None, "J", reason=reason, cause=Cause.CLIPPED), budget)
    return MarginalEnergy(stated_energy(budget, value_j, run.clipped_samples), budget)


def _mean_u_w(cells: Cells, results: Sequence[EnergyResult]) -> list[float]:
    """Standard error of the mean power of each window [W], from noise and lost samples."""
    inside = [cells.inside(result.window.start_ns, result.window.end_ns) for result in results]
    errors_a = long_block_errors([cells.of_samples(cells.current_a, some) for some in inside])
    return [
        math.hypot(error_a * abs(result.integrals.voltage_time_vs), result.budget.parts["loss"])
        / result.window.duration_s
        for error_a, result in zip(errors_a, results, strict=True)
    ]


def _mean(results: Sequence[EnergyResult]) -> Integrals:
    """Mean over windows of the integrals over each window's duration."""
    total = Integrals(0.0, 0.0, 0.0)
    for result in results:
        total = total.less(result.integrals, -1.0 / (result.window.duration_s * len(results)))
    return total
