"""Columns of the regression: activity in each window, by part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from opjoule.attribution.activities import SYNC
from opjoule.attribution.medium import MediumColumns
from opjoule.attribution.overlap import Worked
from opjoule.attribution.window_groups import Groups, IntArray, near_slope
from opjoule.energy.trace.power_trace import BoolArray, Float64Array

FOREGROUND: Final = "foreground"
"""All kinds of operation together."""
WRITE_BACK: Final = "write_back"
TAIL: Final = "tail"
BY_TIME: Final = 0.5
"""Part of the energy of operations that follows their time if many of them wait; it may be from 0 to 1."""
NEIGHBOURS_U: Final = 0.02
"""Relative standard uncertainty of the power of all kinds together as neighbouring windows determine it."""
FEW: Final = 16
"""Number of operations of usual length added to a neighbourhood, which may have few of its own."""


class _Use(NamedTuple):
    """What one column of a kind is used for."""

    near: bool
    """Within groups of neighbouring windows,"""
    far: bool
    """... between groups."""
    free: bool
    """Its coefficient may have either sign."""
    own: bool
    """It belongs to the kind's part."""


_OF_A_KIND: Final = (
    _Use(near=True, far=True, free=False, own=True),  # number of operations
    _Use(near=True, far=False, free=False, own=True),  # excess of busy time over the usual ...
    _Use(near=False, far=True, free=True, own=True),  # ... and between groups
    _Use(near=True, far=False, free=True, own=False),  # pace of the neighbourhood
    _Use(near=True, far=False, free=True, own=True),  # long operations ...
    _Use(near=True, far=False, free=True, own=True),  # ... and how much longer than others of them they took
    _Use(near=True, far=True, free=True, own=False),  # operations that woke the processor up
)
"""The columns of a kind, in their order."""
_COUNT, _FAR, _WOKEN = 0, 2, 6
"""Places of the number of operations, of the excess between groups, and of operations that woke the processor up."""


class Beyond(NamedTuple):
    """What the busy time of operations says beyond their number, as a number of usual operations, (n, kinds) each.

    All sum to zero over the run for each kind, so that they absorb scatter and move no energy between kinds and
    activities.
    """

    near: Float64Array
    """Excess of the busy time of a window's operations, without the long ones, over the usual time with the same
    background work in the whole run."""
    far: Float64Array
    """The same with the long ones."""
    slowed: Float64Array
    """Excess of the usual time in the neighbourhood over that in the whole run."""
    long: Float64Array
    """Excess of the number of long operations."""
    lasted: Float64Array
    """Excess of the busy time of long operations over their mean."""


def beyond_mean(column: Float64Array, count: Float64Array) -> Float64Array:
    """A column less its mean per counted operation, shape (n,) or (n, kinds): it sums to zero."""
    counted = count / np.maximum(count.sum(axis=0), 1e-300)
    return np.asarray(column - counted * column.sum(axis=0), np.float64)


def beyond_count(operations: Worked, long: Worked, group: Groups) -> Beyond:
    """Excess of a window's busy time, near and far, that of its neighbourhood, and those of long operations.

    A longer operation does more work, or it waits, for a compaction or a slower processor. Of the longest most wait, so
    that their time says little: `long` and `lasted` have them alone. In a neighbourhood, all kinds are assumed to slow
    down alike.
    """
    count, busy_s = operations
    by_kind = zip(count.T, busy_s.T, strict=True)
    usual_s = np.stack([_usual_s(*kind, group.state)[group.state] for kind in by_kind], axis=1)
    usual_s = np.maximum(usual_s, 1e-300)
    expected_s = (count * usual_s).sum(axis=1)
    few_s = max(FEW * float(expected_s.sum()) / max(float(count.sum()), 1.0), 1e-300)
    taken_s = np.bincount(group.near, busy_s.sum(axis=1)) + few_s
    slower = (taken_s / (np.bincount(group.near, expected_s) + few_s))[group.near]
    near = (busy_s - long.busy_s) / usual_s - (count - long.number)
    slowed = count * (slower[:, None] - 1.0)
    apart = [beyond_mean(column, count) for column in (near, slowed, long.number)]
    lasted = beyond_mean(long.busy_s / usual_s, long.number)
    return Beyond(apart[0], busy_s / usual_s - count, apart[1], apart[2], lasted)


def _usual_s(count: Float64Array, busy_s: Float64Array, label: IntArray) -> Float64Array:
    """Mean time of an operation by label; over all labels if a label has no operations."""
    everywhere_s = float(busy_s.sum()) / max(float(count.sum()), 1e-300)
    counts = np.bincount(label, count)
    return np.where(counts >= 1.0, np.bincount(label, busy_s) / np.maximum(counts, 1.0), everywhere_s)


@dataclass(frozen=True)
class ColumnSets:
    """Properties of p columns, shape (p,) each."""

    near: BoolArray
    """Columns used within groups of neighbouring windows."""
    far: BoolArray
    """Columns used between groups."""
    free: BoolArray
    """Columns whose coefficient may have either sign; the others are powers or energies."""
    count: BoolArray
    """Numbers of operations."""
    strays: Float64Array
    """Relative error with which neighbours may misjudge the power of all kinds, for the column that absorbs it; 0 for
    the others."""


@dataclass(frozen=True)
class PartColumns:
    """Activity in each window, by part.

    A kind of operation has up to seven columns: the number of its operations, their excess of busy time within and
    between groups of neighbouring windows, how much longer than usual they take in a group, how many of them are long,
    how much longer than others of them those took, and the excess of those that woke the processor up. The last absorbs
    what a single operation draws beyond one within a burst.
    Within groups an excess is more work; between groups it may be waiting, and its coefficient may have either sign. An
    operation of a slower group may cost more, as much or less; this column is used within groups and belongs to no
    part. Without it the groups of quick operations, which contain most, would decide what an operation costs. Long
    operations have worked or waited: within groups they are counted apart and cost more or less than the others. An
    activity has two columns, between and within groups, because its power may change while it lasts. A sync has two
    more between groups, for what the medium does meanwhile: it writes less in some syncs than in others, in those of
    settle for example.
    """

    of_kind: Mapping[str, Float64Array]
    """shape (n, k) each, in the order of _OF_A_KIND"""
    of_activity: Mapping[str, Float64Array]
    """shape (n,) each"""
    longer_s: Float64Array
    """Time that the operations of each window took beyond the usual, if many operations of the run wait, else 0; shape
    (n,)."""
    busy_s: Mapping[str, float]
    """Busy time of all operations of each kind."""
    group: Groups
    strays: float
    """Relative error with which neighbours may misjudge the power of all kinds."""
    in_syncs: Sequence[Float64Array] = ()
    """What the medium does during the syncs of each window: bytes written, seconds of its tail; shape (n,) each."""

    @classmethod
    def of(
        cls,
        kinds: Mapping[str, int],
        operations: Worked,
        long: Worked,
        of_activity: Mapping[str, Float64Array],
        group: Groups,
        strays: float,
        *,
        woken: Float64Array | None = None,
        waiting: bool = False,
    ) -> PartColumns:
        """Columns of operations for the kinds by name and index.

        Args:
            long: the long ones of the operations.
            strays: relative error of neighbours for a waiting client, equal for each operation; otherwise 0.
            woken: number of operations of all kinds that woke the processor up, shape (n, all kinds); None if that does
                not matter.
            waiting: many operations wait, so that half of their energy is assumed to follow their time.
        """
        count, busy_s = operations
        beyond = beyond_count(operations, long, group)
        by_column = (count, *beyond, np.zeros_like(count) if woken is None else beyond_mean(woken, count))
        of_kind = {name: np.stack([column[:, at] for column in by_column], axis=1) for name, at in kinds.items()}
        usual_s = busy_s.sum(axis=0) / np.maximum(count.sum(axis=0), 1e-300)
        longer_s = beyond.far @ usual_s * waiting
        taken_s = {name: float(busy_s[:, at].sum()) for name, at in kinds.items()}
        made = cls(of_kind, of_activity, longer_s, taken_s, group, math.hypot(NEIGHBOURS_U, strays))
        return made.with_more_by_time(BY_TIME) if waiting else made

    @classmethod
    def joined(cls, runs: Sequence[PartColumns]) -> PartColumns:
        """Columns of several runs as those of one; 0 for parts that a run lacks.

        Kinds have no column of operations that woke the processor up if it is empty in all runs.
        """

        def all_of(by_run: Sequence[Mapping[str, Float64Array]]) -> dict[str, Float64Array]:
            names = dict.fromkeys(name for columns_of in by_run for name in columns_of)
            widths = {name: columns_of[name].shape[1:] for columns_of in by_run for name in columns_of}
            return {
                name: np.concatenate(
                    [
                        columns_of.get(name, np.zeros((run.longer_s.size, *widths[name])))
                        for columns_of, run in zip(by_run, runs, strict=True)
                    ]
                )
                for name in names
            }

        of_kind = all_of([run.of_kind for run in runs])
        if not any(columns[:, _WOKEN].any() for columns in of_kind.values()):
            of_kind = {name: columns[:, :_WOKEN] for name, columns in of_kind.items()}
        return cls(
            of_kind,
            all_of([run.of_activity for run in runs]),
            np.concatenate([run.longer_s for run in runs]),
            {name: math.fsum(run.busy_s.get(name, 0.0) for run in runs) for run in runs for name in run.busy_s},
            Groups.joined([run.group for run in runs]),
            max(run.strays for run in runs),
        )

    def with_slope_of(self, seen: PartColumns) -> PartColumns:
        """The columns with the slope of a meter that saw the operations as in `seen`.

        It sees nothing at the edges of a window. Between neighbours, the energy that it states therefore changes more
        than the true energy, or less.
        """
        return replace(self, group=replace(self.group, slope=near_slope(seen.usual_s, self.usual_s, self.group)))

    @property
    def usual_s(self) -> Float64Array:
        """Usual time of the operations of each window, all kinds together, shape (n,).

        It is used within groups, belongs to no part, and absorbs a bias. Pauses, clock errors and frequency changes let
        neighbours misjudge the power of all kinds by one or two per cent (NEIGHBOURS_U). They misjudge it by more if a
        client waits between operations (run_windows.misjudged); each operation then counts alike. An operation has the
        same usual time in all runs. Otherwise the differences between runs would decide what no run shows.
        """
        count = {name: columns[:, 0] for name, columns in self.of_kind.items()}
        counted = {name: max(float(column.sum()), 1e-300) for name, column in count.items()}
        usual_s = {name: self.busy_s[name] / counted[name] for name in count}
        if self.strays > NEIGHBOURS_U:
            usual_s = dict.fromkeys(count, math.fsum(self.busy_s.values()) / math.fsum(counted.values()))
        return sum((count[name] * usual_s[name] for name in count), np.zeros(self.longer_s.size))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts: kinds, activities, and the foreground (all kinds)."""
        return (*self.of_kind, *self.of_activity, FOREGROUND)

    @property
    def arrays(self) -> list[Float64Array]:
        """All columns, as arrays of shape (n,) or (n, k): those of each kind, the activities between and within groups,
        the usual time, the medium during syncs."""
        activities = list(self.of_activity.values())
        return [*self.of_kind.values(), *activities, *activities, self.usual_s, *self.in_syncs]

    @property
    def matrix(self) -> Float64Array:
        """All columns, shape (n, p)."""
        return np.column_stack(self.arrays)

    def _marked(
        self, of_kind: Sequence[bool], activity_far: int, activity_near: int, usual: int, synced: int
    ) -> BoolArray:
        """One mark for each column, in the order of `matrix`."""
        activities = (activity_far,) * len(self.of_activity) + (activity_near,) * len(self.of_activity)
        of_kinds = [mark for columns in self.of_kind.values() for mark in of_kind[: columns.shape[1]]]
        return np.array([*of_kinds, *activities, usual, *(synced,) * len(self.in_syncs)], np.bool_)

    @property
    def sets(self) -> ColumnSets:
        """Sets of columns, in the order of `matrix`."""
        none = [False] * len(_OF_A_KIND)
        return ColumnSets(
            near=self._marked([use.near for use in _OF_A_KIND], 0, 1, 1, 0),
            far=self._marked([use.far for use in _OF_A_KIND], 1, 0, 0, 1),
            free=self._marked([use.free for use in _OF_A_KIND], 0, 1, 1, 0),
            count=self._marked([place == _COUNT for place in range(len(_OF_A_KIND))], 0, 0, 0, 0),
            strays=np.where(self._marked(none, 0, 0, 1, 0), self.strays, 0.0),
        )

    def with_more_by_time(self, part: float) -> PartColumns:
        """Columns that let more of the energy of operations follow their time, in runs in which many wait.

        `part`: additional part of the energy, from -1 to 1. The sums of the columns stay the same.
        """
        more = part * (self.longer_s != 0.0)  # runs in which few operations wait stay as they are
        of_kind = {name: columns.copy() for name, columns in self.of_kind.items()}
        for columns in of_kind.values():
            columns[:, _COUNT] += more * columns[:, _FAR]
        return replace(self, of_kind=of_kind)

    def with_medium(self, medium: MediumColumns) -> PartColumns:
        """These columns and the medium's."""
        of_medium = {WRITE_BACK: medium.written_bytes, TAIL: medium.tail_s}
        added = {name: column for name, column in of_medium.items() if column.any()}
        in_syncs = [column for column in medium.in_syncs if SYNC in self.of_activity and column.any()]
        return replace(self, of_activity={**self.of_activity, **added}, in_syncs=in_syncs)

    @property
    def parts(self) -> Float64Array:
        """1 where a column belongs to a part, shape (q, p)."""
        own = self._marked([use.own for use in _OF_A_KIND], 1, 0, 0, 0)
        widths = [columns.shape[1] for columns in self.of_kind.values()] + [1] * len(self.of_activity)
        membership = np.zeros((len(widths), own.size))
        membership[:, : sum(widths)] = np.repeat(np.eye(len(widths)), widths, axis=1)
        membership = np.where(own, membership, 0.0)
        membership = np.concatenate([membership, membership[: len(self.of_kind)].sum(axis=0)[None]])
        for at in range(1, len(self.in_syncs) + 1):
            membership[:, -at] = [float(name == SYNC) for name in self.names]
        return membership
