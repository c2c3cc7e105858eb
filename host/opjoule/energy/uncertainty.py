"""Parts of the budget that come from the samples themselves: their steps, their spacing, the window's edges."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from opjoule.energy.cells import Cells
from opjoule.energy.sensor import SensorModel
from opjoule.energy.step_integral import NS
from opjoule.trace.power_trace import Float64Array

BLOCK_SAMPLES: Final = 64
"""Errors of neighbouring samples are summed over blocks of this length before they count as independent."""
NOISE_SAMPLES: Final = 16
"""Length of the stretches whose quietest quarter gives the noise of a constant current."""
SAMPLES_MIN: Final = 4 * BLOCK_SAMPLES
"""A shorter window takes its statistics from so many samples around it."""
SQRT12: Final = math.sqrt(12.0)


def quantisation_u_j(cells: Cells, start_ns: int, end_ns: int, sensor: SensorModel) -> float:
    """Standard uncertainty [J] from the converter's steps and from sampling instead of integrating.

    Steps: a quiet signal stays on one side of a step, so that the error of all samples is one and the same
    (LSB / sqrt(12)); noise of more than half a step spreads it out and it vanishes in the mean.
    Sampling: see `sampling_u_j`.
    """
    around = _around(cells, start_ns, end_ns)
    duration_s = (end_ns - start_ns) * NS
    current_a, voltage_v = cells.current_a[around], cells.voltage_v[around]
    current_u_a = step_u(current_a, sensor.current_lsb_a)
    voltage_u_v = step_u(voltage_v, sensor.bus_lsb_v)
    power_u_w = math.hypot(current_u_a * float(voltage_v.mean()), voltage_u_v * float(current_a.mean()))
    return math.hypot(power_u_w * duration_s, sampling_u_j(cells, start_ns, end_ns, sensor.seen_fraction))


def step_u(values: Float64Array, lsb: float) -> float:
    """Standard uncertainty of the mean of values that were rounded to steps of `lsb`.

    Gaussian noise of sigma before the rounding leaves a bias of at most lsb / pi * exp(-2 (pi sigma / lsb)^2).
    Sigma is that of the quietest quarter of the trace, less what the rounding alone can show (1/4 lsb^2).
    Source: Widrow and Kollar, Quantization Noise (2008), 4.3 (first term of the moment's error series).
    """
    if lsb <= 0:
        return 0.0
    variance = max(_quiet_variance(values) / lsb**2 - 0.25, 0.0)
    bias = lsb / math.pi / math.sqrt(2.0) * math.exp(-2.0 * math.pi**2 * variance)
    return min(lsb / SQRT12, math.hypot(bias, lsb / SQRT12 / math.sqrt(values.size)))


def sampling_u_j(cells: Cells, start_ns: int, end_ns: int, seen_fraction: float) -> float:
    """Standard uncertainty [J] of an integral that is made of samples.

    In shunt+bus mode the current is converted half of the time. How wrong that is shows in the trace itself:
    energies from even and from odd samples alone differ as two such halves would. Their differences are
    summed over blocks of 64 samples before they count as independent, so that errors of one sign add up.
    A load in step with the converter escapes this estimate: docs/method/energy.md, "What is not covered".
    """
    around = _around(cells, start_ns, end_ns)
    power_w = cells.sample_power_w(around)
    if power_w.size < 3:
        return 0.0
    cell_s = cells.period_ns * NS
    count = (end_ns - start_ns) / max(cells.period_ns, 1)
    halves_w2 = _halves_variance(power_w)
    unseen = 2.0 * (1.0 - seen_fraction)
    per_sample_w2 = 0.5 * unseen**2 * halves_w2 + _quiet_variance(power_w)
    return math.sqrt(count * per_sample_w2) * cell_s


def _halves_variance(power_w: Float64Array) -> float:
    """Variance a sample of (energy from even samples minus energy from odd ones) [W^2]."""
    even = power_w[1:-1:2]
    difference = even - (power_w[0:-2:2][: even.size] + power_w[2::2]) / 2
    independent = 4.0 / 3.0 * float(np.sum(difference**2))
    per_block = BLOCK_SAMPLES // 2
    starts = np.arange(0, difference.size, per_block)
    blocks = float(np.sum(np.add.reduceat(difference, starts) ** 2))
    return max(independent, blocks) / power_w.size


def _quiet_variance(values: Float64Array) -> float:
    """Variance within the quietest quarter of all stretches of 16 samples."""
    count = values.size // NOISE_SAMPLES
    if count == 0:
        return 0.0
    stretches = values[: count * NOISE_SAMPLES].reshape(count, NOISE_SAMPLES)
    return float(np.quantile(stretches.var(axis=1, ddof=1), 0.25))


def _around(cells: Cells, start_ns: int, end_ns: int) -> slice:
    """The window's cells, or at least 256 around a short window."""
    inside = cells.inside(start_ns, end_ns)
    missing = max(SAMPLES_MIN - (inside.stop - inside.start), 0)
    return slice(max(inside.start - missing // 2, 0), inside.stop + missing // 2)


def alignment_u_j(cells: Cells, start_ns: int, end_ns: int, u_ns: float, u_duration_ns: float) -> float:
    """Standard uncertainty [J] from not knowing exactly where the window lies.

    Place: the energy of the window moved both ways by k = 2 times its uncertainty, halved.
    Length: how far the power at the edges lies from the mean, times the uncertainty of the length. The seconds of the
    window do not come from the meter, so that a window placed too long changes its mean power alone.
    Resolution: a step of the load inside the sample that an edge cuts is known only to lie in that sample.
    """
    shift_ns = np.array([-1, 1], np.int64) * max(round(2 * u_ns), 1 if u_ns > 0 else 0)
    energy_j = cells.power.between(start_ns, end_ns)
    moved_j = cells.power.between(start_ns + shift_ns, end_ns + shift_ns)
    place_u_j = float(np.max(np.abs(moved_j - energy_j))) / 2
    edges = cells.power.cell_at([start_ns, end_ns])
    mean_w = energy_j / ((end_ns - start_ns) * NS)
    edge_w = float(np.max(np.abs(cells.power.values[edges] - mean_w)))
    return math.hypot(place_u_j, edge_w * u_duration_ns * NS, *_cut_sample_u_j(cells, edges.tolist()))


def _cut_sample_u_j(cells: Cells, edges: list[int]) -> list[float]:
    """For each edge: a quarter of the step across its sample, times the sample's length, rectangular."""
    power_w = cells.power.values
    found = []
    for edge in edges:
        step_w = float(power_w[min(edge + 1, power_w.size - 1)] - power_w[max(edge - 1, 0)])
        length_s = float(cells.bounds_ns[edge + 1] - cells.bounds_ns[edge]) * NS
        found.append(abs(step_w) * length_s / (4 * math.sqrt(3.0)))
    return found
