"""Quantities over time for the report: cells with a value each, on one time axis.

A cell is the stretch over which one sample counts (half-way to its neighbours, as in the energy integral). A cell
without a value is a lost stretch and stays empty; nothing is drawn across it.

`pack_values` and `pack_times` make short texts of columns, which the page unpacks with assets/packing.js. A column
becomes integers, their bytes are sorted by significance (all lowest bytes first), deflated and written as base64: about
two bytes a sample for a noisy current, a few hundred bytes for evenly spaced times.

    values    code = round((value - offset) / step), uint16; 65535 means "not known" (NaN)
    times     difference to the previous time in microseconds, uint32; the first one from 0
"""

import base64
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

UNKNOWN = 65535
STEPS = 65534

Floats = npt.NDArray[np.float64]

MAX_CELLS = 500_000
"""Maximum number of cells: 3 to 5 MB of page for a noisy trace. Longer traces become lowest, mean and highest."""
ENVELOPES = ("power_w",)
PART = 1 << 15
"""Number of samples that are processed together, so that their arrays stay in the processor's cache."""
HOLE_PERIODS = 1.5  # a sample counts for at most this many median periods on either side; the rest is a hole


@dataclass(frozen=True)
class Track:
    """Quantities that share their cells.

    bounds_s: edges of the cells since the record's start [s], rising, shape (n + 1,).
    mean: quantity name (unit last) -> means, shape (n,), NaN if unknown.
    lowest, highest: the same for some quantities if a cell joins several samples; empty if each cell is one sample.
    samples_per_cell: 1 for full resolution.
    """

    bounds_s: Floats
    mean: Mapping[str, Floats]
    lowest: Mapping[str, Floats] = field(default_factory=dict)
    highest: Mapping[str, Floats] = field(default_factory=dict)
    samples_per_cell: int = 1

    def __len__(self) -> int:
        return len(self.bounds_s) - 1

    def inside(self, start_s: float, end_s: float) -> Self:
        """The cells that a stretch touches, or else the nearest one."""
        first = int(np.clip(np.searchsorted(self.bounds_s, start_s, side="right") - 1, 0, len(self) - 1))
        last = max(min(int(np.searchsorted(self.bounds_s, end_s, side="left")), len(self)), first + 1)

        def of(columns: Mapping[str, Floats]) -> dict[str, Floats]:
            return {name: column[first:last] for name, column in columns.items()}

        bounds_s = self.bounds_s[first : last + 1]
        return replace(self, bounds_s=bounds_s, mean=of(self.mean), lowest=of(self.lowest), highest=of(self.highest))

    def extremes(self, name: str) -> tuple[Floats, Floats]:
        """Lowest and highest value of a quantity in each cell, shape (n,) each."""
        return self.lowest.get(name, self.mean[name]), self.highest.get(name, self.mean[name])

    @cached_property
    def packed(self) -> dict[str, Any]:
        """The packed form for assets/packing.js."""
        return {
            "bounds_s": pack_times(self.bounds_s),
            "samples_per_cell": self.samples_per_cell,
            "mean": {name: pack_values(column) for name, column in self.mean.items()},
            "lowest": {name: pack_values(column) for name, column in self.lowest.items()},
            "highest": {name: pack_values(column) for name, column in self.highest.items()},
        }


@dataclass(frozen=True)
class SampleParts:
    """Samples of some quantities in parts, so that whole columns need not be in memory."""

    count: int
    """number of samples n, at least 2"""
    part: Callable[[slice], tuple[Floats, Mapping[str, Floats]]]
    """Returns (times of some samples [s], rising; values by name, NaN for a lost sample)."""

    @classmethod
    def of(cls, centre_s: Floats, columns: Mapping[str, Floats]) -> Self:
        """Parts of whole columns, shape (n,)."""

        def part(some: slice) -> tuple[Floats, Mapping[str, Floats]]:
            return centre_s[some], {name: column[some] for name, column in columns.items()}

        return cls(len(centre_s), part)


def sampled_track(samples: SampleParts, period_s: float, max_cells: int = MAX_CELLS) -> Track:
    """Cells around the samples; a stretch far from any sample becomes a cell without a value.

    `period_s`: median distance of the samples. More than `max_cells` samples are joined; each cell then keeps its
    lowest and highest sample.
    """
    group = -(-samples.count // max_cells)
    length = max(PART // group, 1) * group
    parts = []
    for at in range(0, samples.count, length):
        some = slice(at, min(at + length, samples.count))
        parts.append(grouped(sample_cells(samples, period_s, some), group))

    def whole(of: str) -> dict[str, Floats]:
        columns = [getattr(part, of) for part in parts]
        return {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}

    bounds_s = np.concatenate([*(part.bounds_s[:-1] for part in parts), parts[-1].bounds_s[-1:]])
    return Track(bounds_s, whole("mean"), whole("lowest"), whole("highest"), group)


def sample_cells(samples: SampleParts, period_s: float, some: slice) -> Track:
    """The cells of some of the samples and of the holes after them."""
    before, behind = int(some.start > 0), int(some.stop < samples.count)
    centre_s, columns = samples.part(slice(some.start - before, some.stop + behind))
    half_s = np.diff(centre_s) / 2
    half_s = np.concatenate((half_s[: 1 - before], half_s, half_s[len(half_s) - 1 + behind :]))
    far = float(half_s.max()) > HOLE_PERIODS * period_s
    if far:
        np.minimum(half_s, HOLE_PERIODS * period_s, out=half_s)
    inner = slice(before, len(centre_s) - behind)
    after_s = centre_s[-1] - half_s[-1] if behind else centre_s[-1] + half_s[-1]
    bounds_s = np.append(centre_s[inner] - half_s[:-1], after_s)
    filled = {name: np.asarray(column[inner], np.float64) for name, column in columns.items()}
    if far:  # a gap between two cells becomes a cell without a value
        end_s = centre_s[inner] + half_s[1:]
        holes = np.flatnonzero(bounds_s[1:] - end_s > 1e-9)
        bounds_s = np.insert(bounds_s, holes + 1, end_s[holes])
        filled = {name: np.insert(column, holes + 1, np.nan) for name, column in filled.items()}
    return Track(bounds_s, filled)


def joined(track: Track, max_cells: int) -> Track:
    """The track with neighbouring cells joined until about `max_cells` are left; a group has its time-weighted mean."""
    return grouped(track, -(-len(track) // max_cells))


def grouped(track: Track, group: int) -> Track:
    """The track with each `group` neighbours joined into one cell; long stretches without a value are not joined.

    For some quantities, each group also keeps the lowest and highest value.
    """
    if group <= 1:
        return track
    weight_s = np.diff(track.bounds_s)
    even = np.arange(0, len(weight_s), group)
    mean = _means(track, weight_s, even)
    first, known = even, all(bool(np.isfinite(values).all()) for values in mean.values())
    if not known:
        first = _group_starts(track, group, weight_s)
        mean = _means_of_known(track, weight_s, first)
    lowest, highest = {}, {}
    for name in mean.keys() & set(ENVELOPES):
        low, high = track.extremes(name)
        if not known:
            finite = np.isfinite(track.mean[name])
            low, high = np.where(finite, low, np.inf), np.where(finite, high, -np.inf)
        none = np.isnan(mean[name])
        lowest[name] = np.where(none, np.nan, np.minimum.reduceat(low, first))
        highest[name] = np.where(none, np.nan, np.maximum.reduceat(high, first))
    bounds_s = np.append(track.bounds_s[first], track.bounds_s[-1])
    return Track(bounds_s, mean, lowest, highest, group * track.samples_per_cell)


def _means(track: Track, weight_s: Floats, first: npt.NDArray[np.intp]) -> dict[str, Floats]:
    """Mean of each group of equally many cells; not finite where a value of a group is not."""
    group = int(first[1]) if len(first) > 1 else len(weight_s)
    time_s = np.diff(np.append(track.bounds_s[first], track.bounds_s[-1]))

    def sums(values: Floats) -> Floats:
        if len(first) * group != len(weight_s):
            return np.add.reduceat(values * weight_s, first)
        return np.asarray(np.vecdot(values.reshape(-1, group), weight_s.reshape(-1, group)), np.float64)

    with np.errstate(invalid="ignore"):
        return {name: sums(column) / time_s for name, column in track.mean.items()}


def _means_of_known(track: Track, weight_s: Floats, first: npt.NDArray[np.intp]) -> dict[str, Floats]:
    """Mean of the known values of each group; NaN without any."""
    means = {}
    for name, column in track.mean.items():
        known = np.isfinite(column)
        time_s = np.add.reduceat(np.where(known, weight_s, 0.0), first)
        with np.errstate(invalid="ignore"):
            means[name] = np.add.reduceat(np.where(known, column * weight_s, 0.0), first) / time_s
    return means


def _group_starts(track: Track, group: int, weight_s: Floats) -> npt.NDArray[np.intp]:
    """Index of each group's first cell. A long stretch without a value is not joined, so no value extends over it."""
    even = np.arange(0, len(weight_s), group)
    unknown = np.any([np.isnan(column) for column in track.mean.values()], axis=0)
    if not unknown.any():
        return even
    alone = np.flatnonzero(unknown & (weight_s > group * float(np.median(weight_s)) / 2))
    starts = np.concatenate((even, alone, alone + 1))
    return np.unique(starts[starts < len(weight_s)]).astype(np.intp)


@dataclass(frozen=True)
class PhaseSpan:
    """A phase [s]."""

    name: str
    repeat: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class LostStretch:
    """A stretch without samples [s]; `lost_samples` is 0 if the meter does not know their number."""

    start_s: float
    end_s: float
    lost_samples: int
    reason: str


@dataclass(frozen=True)
class Lane:
    """Background work of one kind: stretches [s] that do not overlap, shape (n,)."""

    name: str
    start_s: Floats
    end_s: Floats


def phase_kind(name: str) -> str:
    """Kind of phase, which decides its colour: "idle-before" is idle, "blocks" is run, others are their own kind."""
    return "run" if name in ("blocks", "mix") else next((kind for kind in ("idle", "settle") if kind in name), name)


def pack_values(values: Floats) -> dict[str, Any]:
    """Packs values, shape (n,), to 1/65534 of their range; NaN stays NaN.

    Returns: {"offset", "step", "n", "data"}; value = offset + step * code.
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = (high - low) / STEPS or 1.0
    with np.errstate(invalid="ignore"):
        codes = np.where(np.isfinite(values), np.rint((values - low) / step), UNKNOWN).astype("<u2")
    return {"offset": low, "step": step, "n": len(values), "data": _text(codes)}


def pack_times(times_s: Floats) -> dict[str, Any]:
    """Packs rising times [s], shape (n,), to whole microseconds; neighbours are at most 2^32 us (71 minutes) apart.

    Returns: {"offset" [s], "n", "data"}.
    Raises: ValueError: times that fall or jump too far.
    """
    offset = float(times_s[0]) if len(times_s) else 0.0
    steps_us = np.diff(np.rint((times_s - offset) * 1e6), prepend=0.0)
    if len(times_s) and (steps_us.min() < 0 or steps_us.max() >= 2**32):
        least_s = steps_us.min() / 1e6
        raise ValueError(f"times of a report must rise by less than 4294 s at a time, found {least_s} s")
    return {"offset": offset, "n": len(times_s), "data": _text(steps_us.astype("<u4"))}


def _text(codes: npt.NDArray[Any]) -> str:
    by_significance = codes.view(np.uint8).reshape(len(codes), codes.itemsize).T
    return base64.b64encode(zlib.compress(by_significance.tobytes())).decode("ascii")
