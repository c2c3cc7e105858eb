"""Parts of the budget that come from the samples: their steps, what they leave unseen, the window's edges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from opjoule.energy.cells import Cells, stretch_variances
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.step_integral import NS
from opjoule.energy.supply_voltage import SURE_WEIGHT, mean_spread_u_v
from opjoule.trace.power_trace import Float64Array

PART_SAMPLES: Final = 1 << 14
BLOCK_SAMPLES: Final = 64
"""Errors of neighbouring samples are summed over blocks of this length before they count as independent."""
NOISE_SAMPLES: Final = 16
"""Length of the stretches that tell the noise of a constant current or voltage."""
SAMPLES_MIN: Final = 4 * BLOCK_SAMPLES
"""A shorter window takes its statistics from this many samples around it."""
SLOT_PERIODS: Final = 1.3
"""Two samples farther apart than this have a stretch between them that was not converted."""
SQRT12: Final = math.sqrt(12.0)
HARMONICS: Final = 32
LEVELS_MAX: Final = 1 << 20
"""Levels that are counted in a table; more are sorted."""
ROUNDING_2: Final = 0.25
"""Most that rounding alone can show as variance of a constant value, in squared steps: it rests between two codes."""

Spans = Sequence[tuple[int, int]]


def steps_u_w(cells: Cells, spans: Spans, sensor: ErrorBounds) -> float:
    """Standard uncertainty [W] of the mean power of windows together, from the steps of both converters."""
    some = [_around(cells, *span) for span in spans]
    current_a = _joined([cells.current_a[each] for each in some])
    converted = [_converted(cells, span, each) for span, each in zip(spans, some, strict=True)]
    voltage_v, share_a, noise_v2 = (_joined(parts) for parts in zip(*converted, strict=True))
    current_u_a = step_u(current_a, sensor.current_step_a, cells.noise_a**2)
    voltage_u_v = step_u(voltage_v, sensor.voltage_step_v, float(noise_v2.min()), share_a)
    return math.hypot(current_u_a * float(voltage_v.mean()), voltage_u_v * float(current_a.mean()))


def _joined(parts: Sequence[Float64Array]) -> Float64Array:
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def current_step_u_a(cells: Cells, span: tuple[int, int], sensor: ErrorBounds) -> float:
    """Standard uncertainty [A] of a window's mean current from the steps of its codes."""
    return step_u(cells.current_a[_around(cells, *span)], sensor.current_step_a, cells.noise_a**2)


def voltage_step_u_v(cells: Cells, span: tuple[int, int], sensor: ErrorBounds) -> float:
    """Standard uncertainty [V] of a window's mean voltage from the steps of its codes."""
    voltage_v, share_a, noise_v2 = _converted(cells, span, _around(cells, *span))
    return step_u(voltage_v, sensor.voltage_step_v, float(noise_v2[0]), share_a)


def mean_voltage_u_v(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Standard uncertainty [V] of a window's mean voltage: gain, cut or rounded codes, steps, the readings' spread."""
    span = start_ns, end_ns
    sensor_u_v = sensor.voltage_u_v(float(np.mean(cells.voltage_v[_around(cells, *span)])))
    return math.hypot(sensor_u_v, voltage_step_u_v(cells, span, sensor), mean_spread_u_v(cells.supply, *span))


def _converted(
    cells: Cells, span: tuple[int, int], some: slice
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Voltages as they were converted, of the bus readings or of every sample; currents there; their noise [V^2]."""
    if cells.supply is None:
        voltage_v = cells.voltage_v[some]
        return voltage_v, cells.current_a[some], np.array([_quiet_variance(voltage_v)])
    first, last = np.searchsorted(cells.supply.meter_ns, span).tolist()
    missing = max(NOISE_SAMPLES - (last - first), 0)
    near = slice(max(first - missing, 0), last + missing)
    stray_v = cells.supply.source_v[near][cells.supply.weight[near] >= SURE_WEIGHT]
    noise_v2 = np.array([_quiet_variance(stray_v)])
    return cells.supply.reading_v[near], cells.supply.current_a[near], noise_v2


def step_u(values: Float64Array, lsb: float, noise_2: float, share: Float64Array | None = None) -> float:
    """Standard uncertainty of the mean of values that came in steps of `lsb`.

    Gaussian noise of sigma before the rounding leaves of the error of a value that could lie anywhere within a step
    lsb / pi sqrt(1/2 sum_k exp(-(2 pi k sigma / lsb)^2) / k^2); without noise that is lsb / sqrt(12).
    Values that rest on several levels have an error of its own on each.

    Args:
        noise_2: variance of the values about what they would be without noise, the rounding's own in it.
        share: each value weighs as much as this is large, shape as `values`; None: the same for all.
    Source: Widrow and Kollar, Quantization Noise (2008), 4.3 (the moment's error series).
    """
    if lsb <= 0 or values.size == 0:
        return 0.0
    variance = max(noise_2 / lsb**2 - ROUNDING_2, 0.0)
    k = np.arange(1, HARMONICS + 1)
    series = float(np.sum(np.exp(-((2 * math.pi * k) ** 2) * variance) / k**2))
    bias = min(lsb / math.pi * math.sqrt(series / 2), lsb / SQRT12) if variance > 0 else lsb / SQRT12
    shared = bias * math.sqrt(_same_level(values, lsb * (1 + math.ceil(4 * math.sqrt(variance))), share))
    return min(lsb / SQRT12, math.hypot(shared, lsb / SQRT12 / math.sqrt(values.size)))


def _same_level(values: Float64Array, width: float, share: Float64Array | None) -> float:
    """Probability that two of the values lie on the same level of this width."""
    lowest, highest = np.floor(np.array([values.min(), values.max()]) / width + 0.5).tolist()
    if highest - lowest < LEVELS_MAX:
        counts = np.zeros(int(highest - lowest) + 1)
        for some in _parts(values.size):
            level = (np.floor(values[some] / width + 0.5) - lowest).astype(np.int64)
            counts += np.bincount(level, None if share is None else np.abs(share[some]), counts.size)
    else:
        _, numbered = np.unique(np.floor(values / width + 0.5), return_inverse=True)
        counts = np.bincount(numbered, None if share is None else np.abs(share)).astype(np.float64)
    total = float(counts.sum())
    return float(np.sum((counts / total) ** 2)) if total > 0 else 1.0


def sampling_u_j(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Standard uncertainty [J] of an integral that is made of samples: what they did not see, and the sensor's noise.

    Within the period of a sample (shunt+bus mode: half of it) what was not seen shows in the trace itself: energies
    from even and from odd samples alone differ as two such halves would. Their differences are summed over blocks of
    64 samples before they count as independent, so that errors of one sign add up. Between periods (the slots of bus
    readings) it shows in how well each sample is foretold by its neighbours.
    A load in step with the converter escapes this estimate: docs/method/energy.md, "What is not covered".
    """
    power_w = cells.sample_power_w(_around(cells, start_ns, end_ns))
    if power_w.size < 3:
        return 0.0
    cell_s = cells.period_ns * NS
    count = (end_ns - start_ns) / max(cells.period_ns, 1)
    unseen = 2.0 * (1.0 - sensor.seen_fraction)
    noise_w = cells.noise_a * float(np.mean(cells.voltage_v[_around(cells, start_ns, end_ns)]))
    per_sample_w2 = noise_w**2 + (0.5 * unseen**2 * _halves_variance(power_w) if unseen > 0 else 0.0)
    foretold_w = math.sqrt(_foretold_w2(power_w))
    return math.hypot(
        math.sqrt(count * per_sample_w2) * cell_s, foretold_w * _slots_s(cells, start_ns, end_ns)
    )


def seen_share(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Part of a window in which the current was converted, by the samples that came."""
    inside = cells.inside(start_ns, end_ns)
    samples = int(inside.stop - inside.start) - int(cells.lost_cells(inside).size)
    length_ns = float(cells.bounds_ns[inside.stop] - cells.bounds_ns[inside.start])
    return min(sensor.seen_fraction * samples * cells.period_ns / length_ns, sensor.seen_fraction)


def _slots_s(cells: Cells, start_ns: int, end_ns: int) -> float:
    """Root of the summed squares of the lengths that were not converted between two samples [s]."""
    inside = cells.inside(start_ns, end_ns)
    # a slot widens the cells on both sides of it by half of what it is too long
    shortest_ns = (1 + (SLOT_PERIODS - 1) / 2) * cells.period_ns
    wide = []
    for some in _parts(inside.stop - inside.start):
        of_all = slice(inside.start + some.start, inside.start + some.stop)
        lengths_ns = np.diff(cells.bounds_ns[of_all.start : of_all.stop + 1])
        lengths_ns = np.delete(lengths_ns, cells.lost_cells(of_all))
        wide.append(lengths_ns[lengths_ns > shortest_ns] - cells.period_ns)
    return float(np.sqrt(2 * np.sum(np.concatenate(wide).astype(np.float64) ** 2))) * NS


def _halves_variance(power_w: Float64Array) -> float:
    """Variance a sample of (energy from even samples minus energy from odd ones) [W^2]."""
    independent = blocks = 0.0
    for some in _parts(power_w.size - 2):
        own_w = power_w[some.start : some.stop + 2]
        even = own_w[1:-1:2]
        difference = even - (own_w[0:-2:2][: even.size] + own_w[2::2]) / 2
        independent += 4.0 / 3.0 * float(np.sum(difference**2))
        starts = np.arange(0, difference.size, BLOCK_SAMPLES // 2)
        blocks += float(np.sum(np.add.reduceat(difference, starts) ** 2))
    return max(independent, blocks) / power_w.size


def _foretold_w2(power_w: Float64Array) -> float:
    """Mean square of each sample less the mean of its two neighbours [W^2]."""
    total_w2 = 0.0
    for some in _parts(power_w.size - 2):
        own_w = power_w[some.start : some.stop + 2]
        total_w2 += float(np.sum((own_w[1:-1] - (own_w[:-2] + own_w[2:]) / 2) ** 2))
    return total_w2 / (power_w.size - 2)


def _parts(count: int) -> Iterator[slice]:
    """So many values in parts whose arrays stay in the processor's cache; each of whole blocks of samples."""
    return (slice(at, min(at + PART_SAMPLES, count)) for at in range(0, count, PART_SAMPLES))


def _quiet_variance(values: Float64Array) -> float:
    """Variance within the quietest quarter of all stretches of 16 values."""
    count = values.size // NOISE_SAMPLES
    if count == 0:
        return 0.0
    variance = stretch_variances(values[: count * NOISE_SAMPLES], NOISE_SAMPLES)
    return float(np.quantile(variance, 0.25, overwrite_input=True))


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
    edge_w = float(np.max(np.abs(cells.power.values(edges) - mean_w)))
    return math.hypot(place_u_j, edge_w * u_duration_ns * NS, *_cut_sample_u_j(cells, edges.tolist()))


def _cut_sample_u_j(cells: Cells, edges: list[int]) -> list[float]:
    """For each edge: a quarter of the step across its sample, times the sample's length, rectangular."""
    found = []
    for edge in edges:
        before_w, after_w = cells.power.values(
            np.array([max(edge - 1, 0), min(edge + 1, cells.current_a.size - 1)])
        )
        step_w = float(after_w - before_w)
        length_s = float(cells.bounds_ns[edge + 1] - cells.bounds_ns[edge]) * NS
        found.append(abs(step_w) * length_s / (4 * math.sqrt(3.0)))
    return found
