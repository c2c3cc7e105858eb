"""The uncertainty budget of an energy: one standard uncertainty for each named source.

The parts that come from the samples are computed here: quantisation steps, unsampled time, and the unknown voltage
between two voltage readings. The last has three sources: the scatter of the readings about the load line (ripple, a
current that changed during the conversion), the line's resistance, and current that moves within one conversion, which
the line cannot follow. The correction for it (`energy/moving_current.py`) is the middle of its range. A meter that
converts the voltage with every current has none of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from opjoule.base.coverage import coverage_factor, excess_kurtosis
from opjoule.base.units import Quantity
from opjoule.energy.cells import Cells, quantile, stretch_variances, without
from opjoule.energy.error_bounds import SQRT3, ErrorBounds
from opjoule.energy.repeats import BLOCKS_MIN, standard_error
from opjoule.energy.step_integral import NS, pieces
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.energy.trace.supply_line import SupplyLine

PARTS = (
    *("gain", "offset", "heating", "wire", "quantisation", "voltage", "timebase", "alignment", "loss"),
    *("baseline", "repeats"),
)


@dataclass(frozen=True)
class Budget:
    """Standard uncertainties (k = 1) [J] by part, and the reason for each part that is absent.

    The parts are independent of each other and add in quadrature (JCGM 100:2008, 5.1.2).
    """

    parts: Mapping[str, float]
    absent: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    shared: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Contributions of the sources that other figures of the same sensor or reference share, such as its gain and
    offset: source -> contribution of one standard uncertainty [J], with sign."""
    excess: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Excess kurtosis by part: below 0 where rectangular bounds dominate; the other parts count as normal."""

    def __post_init__(self) -> None:
        unknown = set(self.parts) | set(self.absent)
        if unknown != set(PARTS):
            raise ValueError(f"budget must name {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")

    @property
    def standard_u(self) -> float:
        """Combined standard uncertainty [J]."""
        return math.hypot(*self.parts.values())

    @property
    def k(self) -> float:
        """Coverage factor for 95.45 %, from the kurtosis of the sum of the parts."""
        return coverage_factor(self._excess)

    @property
    def _excess(self) -> float:
        return excess_kurtosis((part, self.excess.get(name, 0.0)) for name, part in self.parts.items())

    def with_part(self, name: str, standard_u: float) -> Budget:
        """The budget with one part set."""
        absent = {part: reason for part, reason in self.absent.items() if part != name}
        return replace(self, parts={**self.parts, name: standard_u}, absent=absent)

    def scaled(self, factor: float) -> Budget:
        """The budget of the energy times an exact factor."""
        parts = {name: abs(factor) * part for name, part in self.parts.items()}
        shared = {name: factor * part for name, part in self.shared.items()}
        return replace(self, parts=parts, shared=shared)

    def energy(self, value_j: float) -> Quantity:
        """The energy [J] with the budget's expanded uncertainty and shared errors."""
        return Quantity.from_standard(value_j, self.standard_u, "J", self._excess, self.shared)

    def stated(self) -> dict[str, Any]:
        """The budget as in result.json: each part's contribution to u [J] and its share of the variance."""
        variance, k = self.standard_u**2, self.k
        entries: dict[str, Any] = {}
        for name in PARTS:
            if name in self.parts:
                part = self.parts[name]
                share = part**2 / variance if variance > 0 else 0.0
                reason = f"itself an expanded uncertainty (k = {k:.3g})"
                entries[name] = {"value": k * part, "u": None, "unit": "J", "share": share, "reason": reason}
            else:
                entries[name] = {"value": None, "u": None, "unit": "J", "reason": self.absent[name]}
        return entries


READINGS_MIN: Final = 64
"""A window with fewer readings takes their scatter from this many readings around it."""
SURE_WEIGHT: Final = 0.25
"""Least weight of a reading in the line and here: below it, the reading's current is too uncertain."""
RIPPLE_U_V: Final = 0.018
"""Assumed if there are fewer than 4 readings: 50 mV peak to peak, the most that USB supplies may show."""


@dataclass(frozen=True)
class VoltageDoubt:
    """Uncertainty of the voltage of one window. Its parts are independent, but all windows share the resistance."""

    spread_u_j: float
    """Standard uncertainty [J] from the readings' scatter about the line, and from current too fast for it."""
    joule_per_ohm: float
    """Change of the energy with the resistance, signed [J/ohm]."""
    resistance_u_ohm: float

    @property
    def standard_u_j(self) -> float:
        """Combined standard uncertainty [J]."""
        return math.hypot(self.spread_u_j, self.joule_per_ohm * self.resistance_u_ohm)


NO_DOUBT: Final = VoltageDoubt(0.0, 0.0, 0.0)


def voltage_doubt(cells: Cells, start_ns: int, end_ns: int) -> VoltageDoubt:
    """Uncertainty of the voltage in one window [meter_ns], in seconds of the meter."""
    supply = cells.supply
    if supply is None:
        return NO_DOUBT
    charge_c = abs(float(cells.current.between(start_ns, end_ns)))
    spread_u_j = charge_c * mean_spread_u_v(supply, start_ns, end_ns)
    moving_w = float(np.mean(cells.moving.half_a2[cells.inside(start_ns, end_ns)])) * supply.resistance_ohm
    moving_u_j = moving_w / SQRT3 * (end_ns - start_ns) * NS
    sensitivity = float(cells.line_shift.between(start_ns, end_ns))
    return VoltageDoubt(math.hypot(spread_u_j, moving_u_j), sensitivity, supply.resistance_u_ohm)


def mean_spread_u_v(supply: SupplyLine | None, start_ns: int, end_ns: int) -> float:
    """Standard uncertainty [V] of V0's mean over a window, weighted by charge; block averages, as ripple may beat."""
    if supply is None:
        return 0.0
    first, last = np.searchsorted(supply.meter_ns, [start_ns, end_ns]).tolist()
    inside = last - first
    missing = max(READINGS_MIN - inside, 0)
    some = slice(max(first - (missing + 1) // 2, 0), last + (missing + 1) // 2)
    sure = supply.weight[some] >= SURE_WEIGHT
    stray_v = supply.source_v[some][sure]
    if stray_v.size < 4:
        return RIPPLE_U_V
    share = np.abs(supply.current_a[some][sure])
    mean_a = float(share.mean())
    # Less the straight line through them: the load line follows a source that warms up.
    place = np.arange(stray_v.size) - (stray_v.size - 1) / 2
    slope = float(place @ stray_v) / float(place @ place)
    products_v = (stray_v - stray_v.mean() - slope * place) * (share / mean_a if mean_a > 0 else 1.0)
    of_all_v = float(products_v.std(ddof=2)) / math.sqrt(products_v.size)
    if products_v.size >= BLOCKS_MIN:
        of_all_v = standard_error(products_v)
    counted = max(inside * float(sure.mean()), 0.5)
    return of_all_v * math.sqrt(products_v.size / counted)


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
"""Samples per step of the calculation, a whole number of blocks."""
NEGLIGIBLE: Final = 1e-4
"""Part of an independent error up to which one in common changes nothing."""
LEVELS_MAX: Final = 1 << 20
"""Greatest number of levels that are counted in a table; more are sorted."""

Spans = Sequence[tuple[int, int]]


class _Levels(NamedTuple):
    """How often values are on each level of a width; levels that do not occur may be left out."""

    levels: Float64Array
    counts: Float64Array
    """Number of values, or sum of their weights."""

    @classmethod
    def of(cls, values: Float64Array, width: float, share: Float64Array | None) -> _Levels:
        """Levels of some values, each weighted by the size of its `share`, or by 1."""
        lowest, highest = (math.floor(float(end) / width + 0.5) for end in (values.min(), values.max()))
        weight = None if share is None else np.abs(share)
        if highest == lowest:
            total = values.size if weight is None else weight.sum()
            return cls(np.array([lowest], np.float64), np.array([total], np.float64))
        above = np.asarray(values / width, np.float64)
        above -= lowest - 0.5
        place = above.astype(np.int64)
        if highest - lowest >= LEVELS_MAX:
            occurring, place = np.unique(place, return_inverse=True)
        else:
            occurring = np.arange(highest - lowest + 1)
        return cls(lowest + occurring.astype(np.float64), np.bincount(place, weight).astype(np.float64))


def _same_level(parts: Sequence[_Levels]) -> float:
    """Probability that two values of all parts are on the same level."""
    levels, of_parts = (np.concatenate(column) for column in zip(*parts, strict=True))
    counts = np.bincount(np.unique(levels, return_inverse=True)[1], of_parts)
    total = float(counts.sum())
    return float(np.sum((counts / total) ** 2)) if total > 0 else 1.0


def steps_u_w(cells: Cells, spans: Spans, sensor: ErrorBounds) -> float:
    """Standard uncertainty [W] of the mean power of windows together, from the steps of both converters."""
    current, voltage = _currents(cells, spans), _voltages(cells, spans)
    current_u_a = current.step_u(sensor.current_step_a)
    voltage_u_v = voltage.step_u(sensor.voltage_step_v)
    return math.hypot(current_u_a * voltage.mean, voltage_u_v * current.mean)


def current_step_u_a(cells: Cells, span: tuple[int, int], sensor: ErrorBounds) -> float:
    """Standard uncertainty [A] of a window's mean current from quantisation."""
    return _currents(cells, [span]).step_u(sensor.current_step_a)


def voltage_step_u_v(cells: Cells, span: tuple[int, int], sensor: ErrorBounds) -> float:
    """Standard uncertainty [V] of a window's mean voltage from quantisation."""
    return _voltages(cells, [span]).step_u(sensor.voltage_step_v)


def mean_voltage_u_v(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Standard uncertainty [V] of a window's mean voltage: gain, truncated or rounded codes, steps, scatter."""
    span = start_ns, end_ns
    sensor_u_v = sensor.voltage_u_v(float(np.mean(cells.voltage_v[_around(cells, *span)])))
    return math.hypot(sensor_u_v, voltage_step_u_v(cells, span, sensor), mean_spread_u_v(cells.supply, *span))


@dataclass(frozen=True)
class _Converted:
    """What one converter gave in the stretches of some windows."""

    cells: Cells
    name: str
    first: Sequence[int]
    """Number of each stretch's first value."""
    values: Sequence[Float64Array]
    shares: Sequence[Float64Array | None]
    """Weights of the values."""
    noise_2: float
    """Variance of the values about their noise-free values."""

    @property
    def mean(self) -> float:
        """Mean of all values."""
        return float(sum(np.sum(values) for values in self.values)) / sum(values.size for values in self.values)

    def step_u(self, lsb: float) -> float:
        """Standard uncertainty of the mean from steps of `lsb`."""
        return _step_u(sum(values.size for values in self.values), lsb, self.noise_2, self._levels)

    def _levels(self, width: float) -> list[_Levels]:
        return [
            self.cells.once(
                ("levels", self.name, width, first + some.start, some.stop - some.start),
                lambda values=values, share=share, some=some: _Levels.of(  # type: ignore[misc]
                    values[some], width, None if share is None else share[some]
                ),
            )
            for first, values, share in zip(self.first, self.values, self.shares, strict=True)
            for some in pieces(values.size, PART_SAMPLES)
        ]


def _currents(cells: Cells, spans: Spans) -> _Converted:
    some = [_around(cells, *span) for span in spans]
    values = [cells.current_a[samples] for samples in some]
    return _Converted(
        cells, "current", [samples.start for samples in some], values, [None] * len(some), cells.noise_a**2
    )


def _voltages(cells: Cells, spans: Spans) -> _Converted:
    """Voltages as converted (bus readings, or every sample), weighted by the currents at the same times."""
    supply = cells.supply
    if supply is None:
        some = [_around(cells, *span) for span in spans]
        voltage_v, current_a = cells.voltage_v, cells.current_a
        noise_v2 = [_quiet_variance(cells, "voltage", voltage_v[samples], samples.start) for samples in some]
    else:
        some = [_readings(supply, *span) for span in spans]
        voltage_v, current_a = supply.reading_v, supply.current_a
        strays = [supply.source_v[near][supply.weight[near] >= SURE_WEIGHT] for near in some]
        noise_v2 = [
            _quiet_variance(cells, "source", stray_v, near.start) for stray_v, near in zip(strays, some, strict=True)
        ]
    values, shares = [voltage_v[one] for one in some], [current_a[one] for one in some]
    return _Converted(cells, "voltage", [one.start for one in some], values, shares, min(noise_v2))


def _readings(supply: SupplyLine, start_ns: int, end_ns: int) -> slice:
    """Readings of the voltage in a window, or a few around a short window."""
    first, last = np.searchsorted(supply.meter_ns, [start_ns, end_ns]).tolist()
    missing = max(NOISE_SAMPLES - (last - first), 0)
    return slice(max(first - missing, 0), last + missing)


def step_u(values: Float64Array, lsb: float, noise_2: float, share: Float64Array | None = None) -> float:
    """Standard uncertainty of the mean of values quantised in steps of `lsb`.

    With Gaussian noise of sigma before the rounding, the error of a value that could be anywhere within a step is
    lsb / pi sqrt(1/2 sum_k exp(-(2 pi k sigma / lsb)^2) / k^2); without noise it is lsb / sqrt(12).
    Values on several levels have an independent error on each level.

    Args:
        noise_2: variance of the values about their noise-free values, rounding included.
        share: weight of each value, shape as `values`; None: equal weights.
    Source: Widrow and Kollar, Quantization Noise (2008), 4.3 (the moment's error series).
    """
    parts = pieces(values.size, PART_SAMPLES)
    shares = (None if share is None else share[some] for some in pieces(values.size, PART_SAMPLES))
    return _step_u(
        values.size,
        lsb,
        noise_2,
        lambda width: [_Levels.of(values[some], width, own) for some, own in zip(parts, shares, strict=True)],
    )


def _step_u(count: int, lsb: float, noise_2: float, levels: Callable[[float], Sequence[_Levels]]) -> float:
    """Standard uncertainty as from `step_u`, of `count` values, whose `levels` are counted for a width."""
    if lsb <= 0 or count == 0:
        return 0.0
    variance = max(noise_2 / lsb**2 - ROUNDING_2, 0.0)
    k = np.arange(1, HARMONICS + 1)
    series = float(np.sum(np.exp(-((2 * math.pi * k) ** 2) * variance) / k**2))
    bias = min(lsb / math.pi * math.sqrt(series / 2), lsb / SQRT12) if variance > 0 else lsb / SQRT12
    independent = lsb / SQRT12 / math.sqrt(count)
    if bias <= NEGLIGIBLE * independent:
        return independent
    width = lsb * (1 + math.ceil(4 * math.sqrt(variance)))
    return min(lsb / SQRT12, math.hypot(bias * math.sqrt(_same_level(levels(width))), independent))


def sampling_u_j(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Standard uncertainty [J] of an integral of samples: from unsampled time and from the sensor's noise.

    The unsampled part of a sample's period (shunt+bus mode: half of it) shows in the trace itself: the energies from
    even and from odd samples alone differ as two such halves would. Their differences are summed over blocks of 64
    samples before they count as independent, so that errors of one sign add up. Unsampled time between periods (the
    slots of bus readings) shows in the error with which neighbours predict each sample.
    A load in step with the converter escapes this estimate: docs/method/energy.md, "What is not covered".
    """
    some = _around(cells, start_ns, end_ns)
    current_a, voltage_v = cells.of_samples(cells.current_a, some), cells.of_samples(cells.voltage_v, some)
    if current_a.size < 3:
        return 0.0
    near = _all_neighbours(cells, some.start, current_a, voltage_v)
    cell_s = cells.period_ns * NS
    count = (end_ns - start_ns) / max(cells.period_ns, 1)
    unseen = 2.0 * (1.0 - sensor.seen_fraction)
    noise_w = cells.noise_a * float(np.mean(cells.voltage_v[some]))
    per_sample_w2 = noise_w**2 + (0.5 * unseen**2 * near.halves_w2(current_a.size) if unseen > 0 else 0.0)
    slots_s = math.sqrt(2.0) * float(np.linalg.norm(half_slots_s(cells, start_ns, end_ns)))
    slots_j = math.sqrt(near.predicted / (current_a.size - 2)) * slots_s
    return math.hypot(math.sqrt(count * per_sample_w2) * cell_s, slots_j)


def seen_share(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> float:
    """Part of a window in which the current was converted, according to the samples that arrived."""
    inside = cells.inside(start_ns, end_ns)
    samples = int(inside.stop - inside.start) - int(cells.lost_cells(inside).size)
    length_ns = float(cells.bounds_ns[inside.stop] - cells.bounds_ns[inside.start])
    return min(sensor.seen_fraction * samples * cells.period_ns / length_ns, sensor.seen_fraction)


def half_slots_s(cells: Cells, start_ns: int, end_ns: int) -> Float64Array:
    """Halves of the unconverted times between two samples [s]: each such time widens two cells, by a half each.

    If the stamps are at uneven distances, a conversion took at most the shortest of them.
    """
    inside = cells.inside(start_ns, end_ns)
    # a slot widens the cells on both sides of it by half of its excess length
    least_ns = (1 + (SLOT_PERIODS - 1) / 2) * cells.shortest_ns
    wide = []
    for some in pieces(inside.stop - inside.start, PART_SAMPLES):
        of_all = slice(inside.start + some.start, inside.start + some.stop)
        lengths_ns = np.diff(cells.bounds_ns[of_all.start : of_all.stop + 1])
        lengths_ns = without(lengths_ns, cells.lost_cells(of_all))
        if lengths_ns.max(initial=0) > least_ns:
            wide.append(lengths_ns[lengths_ns > least_ns] - cells.shortest_ns)
    return np.asarray(np.concatenate([*wide, np.zeros(0)]) * NS, np.float64)


class _Neighbours(NamedTuple):
    """Squared differences between samples and their neighbours, summed over all samples that have both [W^2]."""

    independent: float
    """Every second sample less the mean of its neighbours, squared: twice the variance of a half."""
    blocks: float
    """Like `independent`, with the differences summed over each block of samples before squaring."""
    predicted: float
    """Every sample less the mean of its neighbours, squared."""

    def halves_w2(self, samples: int) -> float:
        """Variance per sample of (energy from even samples minus energy from odd ones) [W^2]."""
        return max(self.independent, self.blocks) / samples


def _all_neighbours(cells: Cells, first: int, current_a: Float64Array, voltage_v: Float64Array) -> _Neighbours:
    """Differences of the power of samples from cell `first` on, shape (n,), computed a part at a time."""

    def of(some: slice) -> _Neighbours:
        around = slice(some.start, some.stop + 2)
        own_w = current_a[around] * voltage_v[around]
        beside = own_w[1:-1] - (own_w[:-2] + own_w[2:]) / 2
        difference = np.ascontiguousarray(beside[::2])
        blocks = np.add.reduceat(difference, np.arange(0, difference.size, BLOCK_SAMPLES // 2))
        independent, in_blocks, predicted = (float(one @ one) for one in (difference, blocks, beside))
        return _Neighbours(4.0 / 3.0 * independent, in_blocks, predicted)

    parts = [
        cells.once(("neighbours", first, some.start, some.stop), lambda some=some: of(some))  # type: ignore[misc]
        for some in pieces(current_a.size - 2, PART_SAMPLES)
    ]
    return _Neighbours(*(math.fsum(column) for column in zip(*parts, strict=True)))


def _quiet_variance(cells: Cells, name: str, values: Float64Array, first: int) -> float:
    """Lower quartile of the variances within stretches of 16 values; 0 if there are none.

    `name`, `first`: what the values are, and the number of the first one.
    """
    whole = values.size // NOISE_SAMPLES * NOISE_SAMPLES
    parts = [
        cells.once(
            ("variances", name, first + some.start, some.stop - some.start),
            lambda some=some: stretch_variances(values[some], NOISE_SAMPLES),  # type: ignore[misc]
        )
        for some in pieces(whole, PART_SAMPLES)
    ]
    return quantile(np.concatenate(parts), 0.25) if parts else 0.0


def _around(cells: Cells, start_ns: int, end_ns: int) -> slice:
    """The window's cells, or at least 256 around a short window."""
    inside = cells.inside(start_ns, end_ns)
    missing = max(SAMPLES_MIN - (inside.stop - inside.start), 0)
    return slice(max(inside.start - missing // 2, 0), inside.stop + missing // 2)
