"""Quantities over time as the report draws them: cells that hold a value, on one time axis.

A cell is the stretch over which one sample counts (half-way to its neighbours, as in the energy integral). A cell
without a value is a lost stretch and stays empty: nothing is ever drawn across it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opjoule.report.packing import Floats, pack_times, pack_values

MAX_CELLS = 500_000
"""3 to 5 MB of page for a noisy trace; longer ones are embedded as lowest, mean and highest."""
ENVELOPES = ("power_w",)
HOLE_PERIODS = 1.5  # a sample holds for at most this many median periods to either side; the rest is a hole


@dataclass(frozen=True)
class Track:
    """Quantities that share their cells.

    bounds_s: edges of the cells [s] since the record's start, rising, shape (n + 1,).
    mean: by quantity name (unit last), shape (n,), NaN where nothing is known.
    lowest, highest: the same for some quantities where a cell joins several samples; empty where a cell is one sample.
    samples_per_cell: 1 for full resolution.
    """

    bounds_s: Floats
    mean: Mapping[str, Floats]
    lowest: Mapping[str, Floats] = field(default_factory=dict)
    highest: Mapping[str, Floats] = field(default_factory=dict)
    samples_per_cell: int = 1

    def to_json(self) -> dict[str, Any]:
        """The packed form that assets/packing.js reads."""
        return {
            "bounds_s": pack_times(self.bounds_s),
            "samples_per_cell": self.samples_per_cell,
            "mean": {name: pack_values(column) for name, column in self.mean.items()},
            "lowest": {name: pack_values(column) for name, column in self.lowest.items()},
            "highest": {name: pack_values(column) for name, column in self.highest.items()},
        }


def sampled_track(centre_s: Floats, columns: Mapping[str, Floats], max_cells: int = MAX_CELLS) -> Track:
    """Cells around samples; a stretch far from any sample becomes a cell without a value.

    Args:
        centre_s: times of the samples [s], rising, shape (n,), n >= 2.
        columns: values by name, shape (n,); NaN for a sample that was lost.
        max_cells: more cells than this are joined, the lowest and highest sample of each being kept.
    """
    half_s = np.diff(centre_s) / 2
    reach_s = HOLE_PERIODS * 2 * float(np.median(half_s))
    before_s = np.minimum(np.concatenate(([half_s[0]], half_s)), reach_s)
    after_s = np.minimum(np.concatenate((half_s, [half_s[-1]])), reach_s)
    start_s, end_s = centre_s - before_s, centre_s + after_s
    # Where a cell ends before the next one starts, a hole of its own is put between the two.
    holes = np.flatnonzero(start_s[1:] - end_s[:-1] > 1e-9) + 1
    bounds_s = np.append(np.insert(start_s, holes, end_s[holes - 1]), end_s[-1])
    filled = {name: np.insert(column.astype(np.float64), holes, np.nan) for name, column in columns.items()}
    return joined(Track(bounds_s, filled), max_cells)


def joined(track: Track, max_cells: int, extremes: Container[str] = ENVELOPES) -> Track:
    """Join neighbouring cells until there are about `max_cells`; each group keeps its time-weighted mean.

    Args:
        extremes: quantities of which each group keeps the lowest and highest value too.
    """
    n = len(track.bounds_s) - 1
    if n <= max_cells:
        return track
    group = -(-n // max_cells)
    weight_s = np.diff(track.bounds_s)
    first = _group_starts(track, group, weight_s)
    mean, lowest, highest = {}, {}, {}
    for name, column in track.mean.items():
        known = np.isfinite(column)
        time_s = np.add.reduceat(np.where(known, weight_s, 0.0), first)
        with np.errstate(invalid="ignore"):
            mean[name] = np.add.reduceat(np.where(known, column * weight_s, 0.0), first) / time_s
        if name not in extremes:
            continue
        lowest[name] = _nan_where(time_s == 0, np.minimum.reduceat(np.where(known, column, np.inf), first))
        highest[name] = _nan_where(time_s == 0, np.maximum.reduceat(np.where(known, column, -np.inf), first))
    bounds_s = np.append(track.bounds_s[first], track.bounds_s[-1])
    return Track(bounds_s, mean, lowest, highest, group * track.samples_per_cell)


def counted_track(
    times_s: Floats, groups: Mapping[str, npt.NDArray[np.bool_]], bin_s: float, end_s: float
) -> Track:
    """Events per second in equal bins from 0 to `end_s`.

    Args:
        times_s: when each event happened [s], shape (n,).
        groups: by name, which events count, shape (n,).
    """
    bounds_s: Floats = np.arange(0, max(1, int(np.ceil(end_s / bin_s))) + 1, dtype=np.float64) * bin_s
    rates = {name: np.histogram(times_s[chosen], bounds_s)[0] / bin_s for name, chosen in groups.items()}
    return Track(bounds_s, rates)


def _group_starts(track: Track, group: int, weight_s: Floats) -> npt.NDArray[np.intp]:
    """Every `group` cells; a long stretch without a value stays alone, so that no value is ever spread over it."""
    unknown = np.any([np.isnan(column) for column in track.mean.values()], axis=0)
    alone = np.flatnonzero(unknown & (weight_s > group * float(np.median(weight_s)) / 2))
    starts = np.concatenate((np.arange(0, len(weight_s), group), alone, alone + 1))
    return np.unique(starts[starts < len(weight_s)]).astype(np.intp)


def _nan_where(condition: npt.NDArray[np.bool_], values: Floats) -> Floats:
    return np.where(condition, np.nan, values)
