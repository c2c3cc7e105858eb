"""Parts of the budget that come from the samples: quantisation steps, unsampled time, and the window's edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from opjoule.energy.cells import Cells, stretch_variances, without
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.step_integral import NS
from opjoule.energy.supply_voltage import SURE_WEIGHT, mean_spread_u_v
from opjoule.trace.power_trace import Float64Array

BLOCK_SAMPLES: Final = 64
"""Length of the blocks over which errors of neighbouring samples are summed before they count as independent."""
NOISE_SAMPLES: Final = 16
"""Length of the stretches that give the noise of a constant current or voltage."""
SAMPLES_MIN: Final = 4 * BLOCK_SAMPLES
"""A shorter window takes its statistics from this many samples around it."""
SLOT_PERIODS: Final = 1.3
"""Distance of two samples, in periods, above which part of the time between them was not converted."""
SQRT12: Final = math.sqrt(12.0)
HARMONICS: Final = 32
ROUNDING_2: Final = 0.25
"""Greatest variance, in squared steps, that rounding alone can give a constant value: one between two codes."""
PART_SAMPLES: Final = 1 << 14
LEVELS_MAX: Final = 1 << 20
"""Greatest number of levels that are counted in a table; more are sorted."""

Spans = Sequence[tuple[int, int]]


def parts(count: int, first: int = 0) -> Iterator[slice]:
    """Slices of values whose arrays fit in the processor's cache, each a whole number of blocks of samples."""
    return (slice(at, min(at + PART_SAMPLES, count)) for at in range(first, count, PART_SAMPLES))


@dataclass(frozen=True)
class LevelCounts:
    """Histogram of values by level."""

    lowest: int
    """The first level."""
    counts: Float64Array
    """Values, or the sum of their shares, per level from the lowest on, shape (levels,)."""
    in_whole_parts: Float64Array
    """Counts of whole parts only, from which counting resumes, shape (levels,)."""
    values: int
    """Number of values counted; 0 if there are too many levels to resume."""

    @classmethod
    def of(cls, values: Float64Array, width: float, share: Float64Array | None = None) -> LevelCounts:
        """Histogram of values on levels of a width, each value weighted by its `share`, or by 1."""
        nothing = np.zeros(0)
        return cls(0, nothing, nothing, 0).grown(values, width, share)

    def grown(self, values: Float64Array, width: float, share: Float64Array | None = None) -> LevelCounts:
        """Histogram of all values, if this is the histogram of the first ones: only the others are counted."""
        if self.values > values.size:
            return LevelCounts.of(values, width, share)
        if self.values == values.size and values.size:
            return self
        whole_parts = self.values // PART_SAMPLES * PART_SAMPLES
        rest = values[whole_parts:]
        ends = np.floor(np.array([rest.min(), rest.max()]) / width + 0.5).tolist()
        lowest, highest = int(ends[0]), int(ends[1])
        if self.values:
            lowest, highest = min(lowest, self.lowest), max(highest, self.lowest + self.counts.size - 1)
        if highest - lowest >= LEVELS_MAX:
            _, numbered = np.unique(np.floor(values / width + 0.5), return_inverse=True)
            counts = np.bincount(numbered, None if share is None else np.abs(share)).astype(np.float64)
            return LevelCounts(lowest, counts, counts, 0)
        counts = np.zeros(highest - lowest + 1)
        if self.values:
            counts[self.lowest - lowest :][: self.counts.size] = self.in_whole_parts
        in_whole_parts = counts.copy()
        for some in parts(values.size, whole_parts):
            level = values[some] / width
            level += 0.5
            np.floor(level, out=level)
            level -= lowest
            weights = None if share is None else np.abs(share[some])
            counts += np.bincount(level.astype(np.int64), weights, counts.size)
            if some.stop == values.size // PART_SAMPLES * PART_SAMPLES:
                in_whole_parts = counts.copy()
        return LevelCounts(lowest, counts, in_whole_parts, values.size)

    @property
    def same(self) -> float:
        """Probability that two of the values are on the same level."""
        total = float(self.counts.sum())
        return float(np.sum((self.counts / total) ** 2)) if total > 0 else 1.0


def steps_u_w(cells: Cells, spans: Spans, sensor: ErrorBounds) -> float:
    """Standard uncertainty [W] of the mean power of windows together, from the steps of both converters."""
    some = [_around(cells, *span) for span in spans]
    current_a = _joined([cells.current_a[samples] for samples in some])
    converted = [_converted(cells, span, samples) for span, samples in zip(spans, some, strict=True)]
    voltage_v, share_a, noise_v2 = (_joined(parts) for parts in zip(*converted, strict=True))
    of_current = of_voltage = LevelCounts.of
    if len(spans) == 1:
        of_current = _counted(cells, some[0].start, "current")
        of_voltage = _counted(cells, some[0].start, "voltage") if cells.supply is None else of_voltage
    current_u_a = step_u(current_a, sensor.current_step_a, cells.noise_a**2, counts=of_current)
    voltage_u_v = step_u(voltage_v, sensor.voltage_step_v, float(noise_v2.min()), share_a, of_voltage)
    return math.hypot(current_u_a * float(voltage_v.mean()), voltage_u_v * float(current_a.mean()))


def _joined(parts: Sequence[Float64Array]) -> Float64Array:
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _counted(cells: Cells, first: int, name: str) -> Callable[..., LevelCounts]:
    """Function that counts levels of cells from `first` on, once for all windows that begin there."""

    def counts(values: Float64Array, width: float, share: Float64Array | None) -> LevelCounts:
        key = (name, first, width)
        known = cells.kept.get(key)
        grown = known.grown(values, width, share) if known else LevelCounts.of(values, width, share)
        cells.kept[key] = grown
        return grown

    return counts


def current_step_u_a(cells: Cells, span: tuple[int, int], sensor: ErrorBounds) -> float:
    """Standard uncertainty [A] of a window's mean current from quantisation."""
    return step_u(cells.current_a[_around(cells, *span)], sensor.current_step_a, cells.noise_a**2)


def voltage_step_u_v(cells: Cells, span: tuple[int, int], sensor: ErrorBounds) -> float:
    """Standard uncertainty [V] of a window's mean voltage from quantisation."""
    voltage_v, share_a, noise_v2 = _converted(cells, span, _around(cells, *span))
    return step_u(voltage_v, sensor.voltage_step_v, float(noise_v2[0]), share_a)


def mean_voltage_u_v(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Standard uncertainty [V] of a window's mean voltage: gain, truncated or rounded codes, steps, scatter."""
    span = start_ns, end_ns
    sensor_u_v = sensor.voltage_u_v(float(np.mean(cells.voltage_v[_around(cells, *span)])))
    return math.hypot(sensor_u_v, voltage_step_u_v(cells, span, sensor), mean_spread_u_v(cells.supply, *span))


def _converted(
    cells: Cells, span: tuple[int, int], some: slice
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Voltages as converted (bus readings, or every sample), currents at the same times, and their noise [V^2]."""
    if cells.supply is None:
        voltage_v = cells.voltage_v[some]
        variance_v2 = _grown_variances(cells, voltage_v, some.start)
        return voltage_v, cells.current_a[some], np.array([_quiet(variance_v2.copy())])
    first, last = np.searchsorted(cells.supply.meter_ns, span).tolist()
    missing = max(NOISE_SAMPLES - (last - first), 0)
    near = slice(max(first - missing, 0), last + missing)
    stray_v = cells.supply.source_v[near][cells.supply.weight[near] >= SURE_WEIGHT]
    whole = stray_v.size // NOISE_SAMPLES * NOISE_SAMPLES
    noise_v2 = np.array([_quiet(stretch_variances(stray_v[:whole], NOISE_SAMPLES))])
    return cells.supply.reading_v[near], cells.supply.current_a[near], noise_v2


def step_u(
    values: Float64Array,
    lsb: float,
    noise_2: float,
    share: Float64Array | None = None,
    counts: Callable[[Float64Array, float, Float64Array | None], LevelCounts] = LevelCounts.of,
) -> float:
    """Standard uncertainty of the mean of values quantised in steps of `lsb`.

    With Gaussian noise of sigma before the rounding, the error of a value that could be anywhere within a step is
    lsb / pi sqrt(1/2 sum_k exp(-(2 pi k sigma / lsb)^2) / k^2); without noise it is lsb / sqrt(12).
    Values on several levels have an independent error on each level.

    Args:
        noise_2: variance of the values about their noise-free values, rounding included.
        share: weight of each value, shape as `values`; None: equal weights.
        counts: gives the values on levels of a width, possibly from earlier counts.
    Source: Widrow and Kollar, Quantization Noise (2008), 4.3 (the moment's error series).
    """
    if lsb <= 0 or values.size == 0:
        return 0.0
    variance = max(noise_2 / lsb**2 - ROUNDING_2, 0.0)
    k = np.arange(1, HARMONICS + 1)
    series = float(np.sum(np.exp(-((2 * math.pi * k) ** 2) * variance) / k**2))
    bias = min(lsb / math.pi * math.sqrt(series / 2), lsb / SQRT12) if variance > 0 else lsb / SQRT12
    width = lsb * (1 + math.ceil(4 * math.sqrt(variance)))
    shared = bias * math.sqrt(counts(values, width, share).same)
    return min(lsb / SQRT12, math.hypot(shared, lsb / SQRT12 / math.sqrt(values.size)))


def sampling_u_j(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Standard uncertainty [J] of an integral of samples: from unsampled time and from the sensor's noise.

    The unsampled part of a sample's period (shunt+bus mode: half of it) shows in the trace itself: the energies from
    even and from odd samples alone differ as two such halves would. Their differences are summed over blocks of 64
    samples before they count as independent, so that errors of one sign add up. Unsampled time between periods (the
    slots of bus readings) shows in the error with which neighbours predict each sample.
    A load in step with the converter escapes this estimate: docs/method/energy.md, "What is not covered".
    """
    some = _around(cells, start_ns, end_ns)
    power = _SamplePower(
        cells.of_samples(cells.current_a, some),
        cells.of_samples(cells.voltage_v, some),
        cells.kept.setdefault(("neighbours", some.start), {}),
    )
    if power.size < 3:
        return 0.0
    cell_s = cells.period_ns * NS
    count = (end_ns - start_ns) / max(cells.period_ns, 1)
    unseen = 2.0 * (1.0 - sensor.seen_fraction)
    noise_w = cells.noise_a * float(np.mean(cells.voltage_v[some]))
    per_sample_w2 = noise_w**2 + (0.5 * unseen**2 * _halves_variance(power) if unseen > 0 else 0.0)
    slots_j = math.sqrt(_predicted_w2(power)) * _slots_s(cells, start_ns, end_ns)
    return math.hypot(math.sqrt(count * per_sample_w2) * cell_s, slots_j)


def seen_share(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Part of a window in which the current was converted, according to the samples that arrived."""
    inside = cells.inside(start_ns, end_ns)
    samples = int(inside.stop - inside.start) - int(cells.lost_cells(inside).size)
    length_ns = float(cells.bounds_ns[inside.stop] - cells.bounds_ns[inside.start])
    return min(sensor.seen_fraction * samples * cells.period_ns / length_ns, sensor.seen_fraction)


def _slots_s(cells: Cells, start_ns: int, end_ns: int) -> float:
    """Root of the summed squares of the unconverted times between two samples [s]."""
    inside = cells.inside(start_ns, end_ns)
    # a slot widens the cells on both sides of it by half of its excess length
    shortest_ns = (1 + (SLOT_PERIODS - 1) / 2) * cells.period_ns
    wide = []
    for some in parts(inside.stop - inside.start):
        of_all = slice(inside.start + some.start, inside.start + some.stop)
        key = ("slots", of_all.start, of_all.stop)
        if key not in cells.kept:
            lengths_ns = np.diff(cells.bounds_ns[of_all.start : of_all.stop + 1])
            lengths_ns = without(lengths_ns, cells.lost_cells(of_all))
            cells.kept[key] = lengths_ns[lengths_ns > shortest_ns] - cells.period_ns
        wide.append(cells.kept[key])
    return float(np.sqrt(2 * np.sum(np.concatenate(wide).astype(np.float64) ** 2))) * NS


class _Neighbours(NamedTuple):
    """Squared differences between a part's samples and their neighbours, summed over the part [W^2]."""

    independent: float
    """Every second sample less the mean of its neighbours, squared: twice the variance of a half."""
    blocks: float
    """Like `independent`, with the differences summed over each block of samples before squaring."""
    predicted: float
    """Every sample less the mean of its neighbours, squared."""


@dataclass(frozen=True)
class _SamplePower:
    """Power of samples, computed a part at a time."""

    current_a: Float64Array
    """shape (n,)"""
    voltage_v: Float64Array
    known: dict[tuple[int, int], _Neighbours]
    """Cached results of parts, reused by windows with the same first sample."""

    @property
    def size(self) -> int:
        """n"""
        return int(self.current_a.size)

    def neighbours(self) -> Iterator[_Neighbours]:
        """Results for all parts in order; together they cover every sample that has both neighbours."""
        for some in parts(self.size - 2):
            key = some.start, some.stop
            if key not in self.known:
                around = slice(some.start, some.stop + 2)
                self.known[key] = _neighbours(self.current_a[around] * self.voltage_v[around])
            yield self.known[key]


def _neighbours(own_w: Float64Array) -> _Neighbours:
    beside = own_w[1:-1] - (own_w[:-2] + own_w[2:]) / 2
    difference = beside[::2]
    starts = np.arange(0, difference.size, BLOCK_SAMPLES // 2)
    return _Neighbours(
        4.0 / 3.0 * float(np.sum(difference**2)),
        float(np.sum(np.add.reduceat(difference, starts) ** 2)),
        float(np.sum(beside**2)),
    )


def _halves_variance(power: _SamplePower) -> float:
    """Variance per sample of (energy from even samples minus energy from odd ones) [W^2]."""
    independent = blocks = 0.0
    for neighbour in power.neighbours():
        independent += neighbour.independent
        blocks += neighbour.blocks
    return max(independent, blocks) / power.size


def _predicted_w2(power: _SamplePower) -> float:
    """Mean square of each sample less the mean of its two neighbours [W^2]."""
    total_w2 = 0.0
    for neighbour in power.neighbours():
        total_w2 += neighbour.predicted
    return total_w2 / (power.size - 2)


def _quiet(variance: Float64Array) -> float:
    """Lower quartile of the variances of stretches, which are reordered in place; 0 if there are none."""
    return float(np.quantile(variance, 0.25, overwrite_input=True)) if variance.size else 0.0


def _grown_variances(cells: Cells, voltage_v: Float64Array, first: int) -> Float64Array:
    """Variance within each stretch of 16 voltages from a cell on; reuses those of a shorter earlier window."""
    known = cells.kept.get(("variances", first), np.zeros(0))[: voltage_v.size // NOISE_SAMPLES]
    rest = voltage_v[known.size * NOISE_SAMPLES : voltage_v.size // NOISE_SAMPLES * NOISE_SAMPLES]
    variances = np.concatenate([known, stretch_variances(rest, NOISE_SAMPLES)])
    cells.kept["variances", first] = variances
    return variances


def _around(cells: Cells, start_ns: int, end_ns: int) -> slice:
    """The window's cells, or at least 256 around a short window."""
    inside = cells.inside(start_ns, end_ns)
    missing = max(SAMPLES_MIN - (inside.stop - inside.start), 0)
    return slice(max(inside.start - missing // 2, 0), inside.stop + missing // 2)
