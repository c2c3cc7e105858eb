"""Windows as neighbours and as groups of neighbours: two sets of equations with different information.

Neighbouring windows differ in their mix of operations and in little else, so they determine the differences between
kinds. The power of an activity may change while it lasts, so that its edges alone would mislead: the mean of all
windows with it against all others determines its power. So activities are fitted between groups, kinds within and
between them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array

NEAR: Final = 8
"""Number of windows per group of neighbours, fewer if there would be less than NEAR_MIN such groups. The power of a
flush rises and falls within 80 ms, and a window of a slow meter takes 10 ms. In longer groups that course would count
as a difference between kinds."""
NEAR_MIN: Final = 32
WITHIN: Final = slice(0, 2)
"""Sets of equations within groups: without and with background work."""
BETWEEN: Final = slice(2, 4)
"""Sets of equations between groups: of the run, of settle."""
_ALIKE_ROWS: Final = 8
"""Each set within groups has this many rows more, which scatter as both sets together: otherwise a set of a few rows
that fit by chance would outweigh the other."""
SLOPE_MAX: Final = 1.25
"""Greatest slope that is corrected: with a greater one, operations come in step with the meter."""
_ROUNDING: Final = 1e-20
"""Part of a sum of squares up to which its differences are rounding errors."""
FAR_S: Final = 0.25
"""Least length of a group: the board's counters are read ten times a second."""
BLOCK_S: Final = 4.0
"""Approximate length of a block of the bootstrap: idle power wanders over seconds;"""
BLOCKS_MIN: Final = 16
"""... shorter if there would be fewer blocks than this,"""
BLOCKS_MAX: Final = 512
"""... longer if there would be more."""
_PART: Final = 0.5
"""Share of a window from which an activity counts as the window's background work."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """Groups of windows with the same background work that are neighbours, or at about the same time."""

    near: IntArray
    """Number of each window's group of neighbours, shape (n,)."""
    of_window: IntArray
    """Number of each window's group of windows at about the same time, from 0, shape (n,)."""
    state: IntArray
    """Number of the background work in each window, shape (n,)."""
    background: BoolArray
    """Whether there is background work in each window, shape (n,)."""
    settling: BoolArray
    """Whether a group is after the last operation, where the power is quieter, shape (groups,)."""
    duration_s: Float64Array
    """Duration of each window, shape (n,)."""
    block: IntArray
    """Number of each window's block of the bootstrap, from 0, shape (n,)."""
    slope: float = 1.0
    """Change of the energy that the meter states over the change of the true one, between neighbours."""

    @classmethod
    def joined(cls, runs: Sequence[Groups]) -> Groups:
        """Groups of several runs as those of one; no group, neighbourhood, state or block spans two runs."""

        def apart(labels: Iterable[IntArray]) -> IntArray:
            made, first = [], 0
            for label in labels:
                made.append(label + first)
                first += int(label.max(initial=-1)) + 1
            return np.concatenate(made)

        return cls(
            apart(run.near for run in runs),
            apart(run.of_window for run in runs),
            apart(run.state for run in runs),
            np.concatenate([run.background for run in runs]),
            np.concatenate([run.settling for run in runs]),
            np.concatenate([run.duration_s for run in runs]),
            apart(run.block for run in runs),
        )

    @property
    def within(self) -> tuple[BoolArray, BoolArray]:
        """Windows of each set within groups, shape (n,) each."""
        return ~self.background, self.background

    @property
    def between(self) -> tuple[BoolArray, BoolArray]:
        """Groups of each set between groups, shape (groups,) each."""
        return ~self.settling, self.settling

    @property
    def differences(self) -> IntArray:
        """Number of independent differences between neighbours in each set within groups, shape (2,)."""
        first = self.background[_first_windows(self.near)]
        return np.bincount(self.background, minlength=2) - np.bincount(first, minlength=2)

    @property
    def lasted_s(self) -> Float64Array:
        """Duration of each group [s]."""
        return np.asarray(np.bincount(self.of_window, self.duration_s), np.float64)

    def sum(self, column: Float64Array) -> Float64Array:
        """Sum of a column, shape (n,), over each group, shape (groups,)."""
        return np.asarray(np.bincount(self.of_window, column), np.float64)

    def sums(self, columns: Float64Array) -> Float64Array:
        """Sums over each group, shape (groups, p)."""
        return _sums(columns, self.of_window)


def stretch_edges_ns(start_ns: int, end_ns: int, length_ns: int, counters_ns: Int64Array) -> Int64Array:
    """Edges of the stretches whose windows are at about the same time: readings of the board's counters, if any.

    The bytes between two readings are known exactly. At any other edge they would be interpolated, which would blur the
    difference between stretches.
    """
    near_ns = near_windows(round((end_ns - start_ns) / length_ns)) * length_ns
    wanted_ns = np.arange(start_ns, end_ns, near_ns * math.ceil(FAR_S / (near_ns * NS)), dtype=np.int64)[1:]
    known_ns = counters_ns[(counters_ns > start_ns) & (counters_ns < end_ns)]
    if not known_ns.size:
        return wanted_ns
    return np.unique(known_ns[np.minimum(np.searchsorted(known_ns, wanted_ns), known_ns.size - 1)])


def groups(
    seconds: Mapping[str, Float64Array], duration_s: Float64Array, settling: BoolArray, stretch: IntArray
) -> Groups:
    """Groups of windows by the seconds of each background activity.

    `settling`: whether a window is after the last operation; `stretch`: number of each window's stretch, ascending from
    0.
    """
    state = settling.astype(np.int64)
    for column_s in seconds.values():
        state = 2 * state + (column_s > _PART * duration_s)
    place, states = np.arange(duration_s.size), 2 << len(seconds)
    _, begins, stretch = np.unique(stretch, return_index=True, return_inverse=True)
    beside = stretch * duration_s.size + (place - begins[stretch]) // near_windows(duration_s.size)
    near = np.unique(beside * states + state, return_inverse=True)[1]
    _, first, of_window = np.unique(stretch * states + state, return_index=True, return_inverse=True)
    blocks = min(max(float(duration_s.sum()) / BLOCK_S, BLOCKS_MIN), BLOCKS_MAX)
    return Groups(
        near.astype(np.int64),
        of_window.astype(np.int64),
        state,
        state % (1 << len(seconds)) > 0,
        settling[first],
        duration_s,
        stretch // max(round(begins.size / blocks), 1),
    )


def near_windows(count: int) -> int:
    """Number of windows per group of neighbours, for a number of windows."""
    return min(max(count // NEAR_MIN, 2), NEAR)


class BlockRows(NamedTuple):
    """Columns of an array and their rows in the equations; one row each, so that a column is contiguous."""

    columns: Float64Array
    """shape (k, n)"""
    near: Float64Array
    """Each window less the mean of its group of neighbours, weighted, shape (k, n)."""
    far: Float64Array
    """Sums over each group, weighted, shape (k, groups)."""
    mean_square: Float64Array
    """shape (k,)"""


class Rows:
    """Rows of the equations of several fits to the same windows; those of an array that fits share are made once."""

    def __init__(self, group: Groups, sound: BoolArray, shared: Sequence[Float64Array]) -> None:
        """`sound`: windows that count, shape (n,); `shared`: arrays whose rows are kept."""
        self.group, self._sound = group, sound
        usual_s = float(group.duration_s.mean())
        part = group.duration_s / usual_s
        self._near_root, self._near_parts = np.sqrt(part), np.bincount(group.near, part)
        self._far_root = np.sqrt(group.lasted_s / usual_s)
        self._shared, self._made = {id(array): array for array in shared}, dict[int, BlockRows]()

    def of(self, columns: Float64Array) -> BlockRows:
        """Rows of columns, shape (n,) or (n, k)."""
        made = self._made.get(id(columns))
        if made is None:
            counted = np.atleast_2d(columns.T) * self._sound
            near = np.stack([self._near(column) for column in counted])
            far = np.stack([self.group.sum(column) / self._far_root for column in counted])
            made = BlockRows(counted, near, far, np.mean(counted**2, axis=1))
            if id(columns) in self._shared:
                self._made[id(columns)] = made
        return made

    def _near(self, column: Float64Array) -> Float64Array:
        mean = np.bincount(self.group.near, column) / self._near_parts
        return np.asarray(column / self._near_root - self._near_root * mean[self.group.near], np.float64)


def near_slope(stated: Float64Array, true: Float64Array, group: Groups) -> float:
    """Change of a stated quantity over the change of the true one between neighbours (least squares), shape (n,) each.

    At most SLOPE_MAX, and at least its inverse.
    """
    near = Rows(group, np.ones(true.size, np.bool_), ()).of(np.stack([stated, true], axis=1)).near
    square = float(near[1] @ near[1])
    slope = float(near[0] @ near[1]) / square if square > _ROUNDING * float(true @ true) else 1.0
    return min(max(slope, 1.0 / SLOPE_MAX), SLOPE_MAX)


@dataclass(frozen=True)
class Equations:
    """Normal equations of each block, in sets that scatter differently (WITHIN, BETWEEN).

    The power of background work changes while it lasts. Within groups its changes scatter the windows with it, and
    those without it tell more of the kinds.
    """

    gram: Float64Array
    """shape (blocks, 4, p, p)"""
    moment: Float64Array
    """shape (blocks, 4, p)"""
    square: Float64Array
    """Sum of squares of the left side, shape (blocks, 4)."""
    rows: Float64Array
    """Independent rows, shape (4,)."""

    @classmethod
    def of(
        cls,
        columns: Float64Array,
        energy_j: Float64Array,
        group: Groups,
        within: BoolArray,
        between: BoolArray,
    ) -> Equations:
        """Equations of windows; `within` and `between`: columns used within and between groups."""
        near, far = (np.flatnonzero(np.append(used, True)) for used in (within, between))
        both = np.concatenate([columns, energy_j[:, None]], axis=1)
        usual_s = float(group.duration_s.mean())
        far_rows = group.sums(both[:, far]) / np.sqrt(group.lasted_s[:, None] / usual_s)
        part = group.duration_s[:, None] / usual_s
        near_rows = both[:, near]
        mean = _sums(near_rows, group.near) / _sums(part, group.near)
        near_rows /= np.sqrt(part)
        near_rows -= np.sqrt(part) * mean[group.near]
        near_rows[:, -1] /= group.slope
        of_block = group.block[_first_windows(group.of_window)]
        size = both.shape[1]
        sets = [_by_block(near_rows * chosen[:, None], group.block, near, size) for chosen in group.within]
        sets += [_by_block(far_rows * chosen[:, None], of_block, far, size) for chosen in group.between]
        return cls._of(np.stack(sets, axis=1), group)

    @classmethod
    def together(
        cls, arrays: Sequence[BlockRows], energy: BlockRows, group: Groups, within: BoolArray, between: BoolArray
    ) -> Equations:
        """The same equations with all windows as one block."""
        whole = np.zeros((1, BETWEEN.stop, within.size + 1, within.size + 1))
        near, far = (np.flatnonzero(np.append(used, True)) for used in (within, between))
        near_rows = [*(row for array in arrays for row in array.near), energy.near[0] / group.slope]
        far_rows = [row for array in (*arrays, energy) for row in array.far]
        near_used, far_used = np.stack([near_rows[at] for at in near]), np.stack([far_rows[at] for at in far])
        for at, chosen in enumerate(group.within, WITHIN.start):
            some = near_used[:, chosen]
            whole[0, at][np.ix_(near, near)] = some @ some.T
        for at, chosen in enumerate(group.between, BETWEEN.start):
            some = far_used[:, chosen]
            whole[0, at][np.ix_(far, far)] = some @ some.T
        return cls._of(whole, group)

    @classmethod
    def _of(cls, whole: Float64Array, group: Groups) -> Equations:
        """Equations from the products of all columns and the left side, which is last."""
        rows = np.maximum([*group.differences, *map(np.count_nonzero, group.between)], 1.0)
        return cls(whole[..., :-1, :-1], whole[..., :-1, -1], whole[..., -1, -1], rows)

    def scaled(self, scale: Float64Array) -> Equations:
        """The equations of the columns divided by a scale, shape (p,)."""
        return replace(self, gram=self.gram / np.outer(scale, scale), moment=self.moment / scale)

    def without_last(self) -> Equations:
        """The equations without the last column."""
        return Equations(self.gram[..., :-1, :-1], self.moment[..., :-1], self.square, self.rows)

    def variance(self, x: Float64Array) -> Float64Array:
        """Mean square of the residuals of x in each set, shape (4,)."""
        left = (
            self.square.sum(axis=0)
            - 2 * self.moment.sum(axis=0) @ x
            + np.einsum("sij,i,j->s", self.gram.sum(axis=0), x, x)
        )
        floor = 1e-12 * float(self.square.sum()) / float(self.rows.sum())
        rows = self.rows.copy()
        left[WITHIN] += _ALIKE_ROWS * left[WITHIN].sum() / rows[WITHIN].sum()
        rows[WITHIN] += _ALIKE_ROWS
        variance = np.maximum(left / rows, floor if floor > 0.0 else 1.0)  # no energy at all: any value will do
        # settle is quieter, but a single stretch of it must not outweigh the whole run
        run, settle = range(BETWEEN.start, BETWEEN.stop)
        variance[settle] = max(variance[settle], variance[run])
        return np.asarray(variance, np.float64)

    def weighted(self, variance: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Normal equations of each block, each set weighted by its inverse variance: (b, p, p) and (b, p)."""
        weight = 1.0 / variance
        return np.einsum("bsij,s->bij", self.gram, weight), np.einsum("bsi,s->bi", self.moment, weight)


def _sums(columns: Float64Array, label: IntArray) -> Float64Array:
    return np.stack([np.bincount(label, column) for column in columns.T], axis=1, dtype=np.float64)


def _first_windows(of_window: IntArray) -> IntArray:
    first = np.zeros(int(of_window.max()) + 1, np.int64)
    first[of_window[::-1]] = np.arange(of_window.size)[::-1]
    return first


def _by_block(rows: Float64Array, block: IntArray, places: npt.NDArray[np.intp], size: int) -> Float64Array:
    """Products of the rows' columns, summed over each block, shape (blocks, size, size).

    `places`: where the columns belong among all `size` columns; the others are zero. Block numbers ascend from 0.
    """
    ends = np.searchsorted(block, np.arange(int(block[-1]) + 1), "right").tolist()
    products = np.zeros((len(ends), size, size))
    for number, (a, b) in enumerate(itertools.pairwise([0, *ends])):
        products[number][np.ix_(places, places)] = rows[a:b].T @ rows[a:b]
    return products
