"""The columns of the regression: what went on in each window, by part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

import numpy as np

from opjoule.attribution.medium import MediumColumns
from opjoule.attribution.window_groups import Groups, IntArray
from opjoule.trace.power_trace import BoolArray, Float64Array

FEW: Final = 16
"""Operations of usual length added to a neighbourhood, which may hold few of its own."""


def beyond_count(
    count: Float64Array, busy_s: Float64Array, group: Groups
) -> tuple[Float64Array, Float64Array]:
    """Excess of a window's busy time, as a number of usual operations, near and far; each of shape (n, kinds).

    A longer operation does more work, or it waits, for a compaction or a slower processor. The near excess is relative
    to the usual time in the neighbourhood, where all kinds are assumed to be slowed alike. The far excess is relative
    to the usual time with the same background work in the whole run. It sums to zero over the run, so that it absorbs
    scatter and moves no energy between kinds and activities.
    """
    usual_s = np.stack(
        [
            _usual_s(*columns_of, group.state)[group.state]
            for columns_of in zip(count.T, busy_s.T, strict=True)
        ],
        axis=1,
    )
    usual_s = np.maximum(usual_s, 1e-300)
    expected_s = (count * usual_s).sum(axis=1)
    few_s = max(FEW * float(expected_s.sum()) / max(float(count.sum()), 1.0), 1e-300)
    taken_s = np.bincount(group.near, busy_s.sum(axis=1)) + few_s
    slower = (taken_s / (np.bincount(group.near, expected_s) + few_s))[group.near]
    far = busy_s / usual_s - count
    return busy_s / (usual_s * slower[:, None]) - count, far


def _usual_s(count: Float64Array, busy_s: Float64Array, label: IntArray) -> Float64Array:
    """Mean time of an operation by label; over all of them where a label holds none."""
    everywhere_s = float(busy_s.sum()) / max(float(count.sum()), 1e-300)
    counts = np.bincount(label, count)
    return np.where(counts >= 1.0, np.bincount(label, busy_s) / np.maximum(counts, 1.0), everywhere_s)


FOREGROUND: Final = "foreground"
"""All kinds of operation together."""
WRITE_BACK: Final = "write_back"
TAIL: Final = "tail"


class ColumnRole(Enum):
    """Role of a column of the regression."""

    COUNT = auto()
    """Operations of a kind."""
    LONGER_NEAR = auto()
    """How much longer than usual they took in their neighbourhood."""
    LONGER_FAR = auto()
    """How much longer than usual they took beside the same background work."""
    ACTIVITY_FAR = auto()
    ACTIVITY_NEAR = auto()
    USUAL_TIME = auto()


_NEAR: Final = {ColumnRole.COUNT, ColumnRole.LONGER_NEAR, ColumnRole.ACTIVITY_NEAR, ColumnRole.USUAL_TIME}
_FAR: Final = {ColumnRole.COUNT, ColumnRole.LONGER_FAR, ColumnRole.ACTIVITY_FAR}
_FREE: Final = {ColumnRole.LONGER_FAR, ColumnRole.ACTIVITY_NEAR, ColumnRole.USUAL_TIME}
NEIGHBOURS_U: Final = 0.02
"""Relative standard uncertainty of the power of all kinds together by neighbouring windows."""


@dataclass(frozen=True)
class ColumnSets:
    """Marks of p columns, shape (p,) each."""

    near: BoolArray
    """Columns that count within groups of neighbouring windows."""
    far: BoolArray
    """Columns that count between groups."""
    free: BoolArray
    """Columns whose coefficient may have either sign; the others are powers or energies."""
    count: BoolArray
    """Numbers of operations."""
    strays: Float64Array
    """How far neighbours may misjudge what all kinds draw, relative to it, for the column that takes that up; 0 for the
    others."""


@dataclass(frozen=True)
class PartColumns:
    """Activity in each window, by part.

    A kind of operation has three columns: the number of its operations, and their excess of busy time within and
    between groups of neighbouring windows. Within groups an excess is more work; between groups it may be waiting, and
    its coefficient may have either sign. An activity has two columns, between and within groups, for its power may
    change while it lasts.
    """

    of_kind: Mapping[str, Float64Array]
    """shape (n, 3) each"""
    of_activity: Mapping[str, Float64Array]
    """shape (n,) each"""
    usual_s: Float64Array
    """Usual time of the operations of each window, all kinds together, shape (n,). It counts within groups and belongs
    to no part. It absorbs a bias: pauses, clock errors and frequency changes let neighbours misjudge the power of all
    kinds by one or two per cent (NEIGHBOURS_U), and that of a client that waits between operations by more
    (run_windows.misjudged)."""
    group: Groups
    strays: float
    """How far neighbours may misjudge what all kinds draw, relative to it."""

    @classmethod
    def of(
        cls,
        kinds: Mapping[str, int],
        count: Float64Array,
        busy_s: Float64Array,
        of_activity: Mapping[str, Float64Array],
        group: Groups,
        strays: float,
    ) -> PartColumns:
        """Columns of operations and their busy seconds, (n, kinds) each, those of some kinds by name and place.

        Args:
            strays: what neighbours may misjudge of a waiting client, else 0. It is as much for each operation, of
                whatever kind.
        """
        near, far = beyond_count(count, busy_s, group)
        of_kind = {
            name: np.stack([count[:, at], near[:, at], far[:, at]], axis=1) for name, at in kinds.items()
        }
        usual_s = busy_s.sum(axis=0) / np.maximum(count.sum(axis=0), 1e-300)
        if strays:
            usual_s[:] = busy_s.sum() / max(float(count.sum()), 1e-300)
        return cls(of_kind, of_activity, count @ usual_s, group, math.hypot(NEIGHBOURS_U, strays))

    @classmethod
    def joined(cls, runs: Sequence[PartColumns]) -> PartColumns:
        """Columns of several runs as those of one; what a run has not is 0 there."""

        def all_of(by_run: Sequence[Mapping[str, Float64Array]]) -> dict[str, Float64Array]:
            names = dict.fromkeys(name for columns_of in by_run for name in columns_of)
            widths = {name: columns_of[name].shape[1:] for columns_of in by_run for name in columns_of}
            return {
                name: np.concatenate(
                    [
                        columns_of.get(name, np.zeros((run.usual_s.size, *widths[name])))
                        for columns_of, run in zip(by_run, runs, strict=True)
                    ]
                )
                for name in names
            }

        return cls(
            all_of([run.of_kind for run in runs]),
            all_of([run.of_activity for run in runs]),
            np.concatenate([run.usual_s for run in runs]),
            Groups.joined([run.group for run in runs]),
            max(run.strays for run in runs),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts: kinds, activities, and the foreground, which is all kinds."""
        return (*self.of_kind, *self.of_activity, FOREGROUND)

    @property
    def matrix(self) -> Float64Array:
        """All columns in the order of `roles`, shape (n, p)."""
        activities = [column[:, None] for column in self.of_activity.values()]
        return np.concatenate(
            [*self.of_kind.values(), *activities, *activities, self.usual_s[:, None]], axis=1
        )

    @property
    def roles(self) -> tuple[ColumnRole, ...]:
        """Role of each of the p columns."""
        activities = len(self.of_activity)
        of_kind = (ColumnRole.COUNT, ColumnRole.LONGER_NEAR, ColumnRole.LONGER_FAR) * len(self.of_kind)
        return (
            *of_kind,
            *(ColumnRole.ACTIVITY_FAR,) * activities,
            *(ColumnRole.ACTIVITY_NEAR,) * activities,
            ColumnRole.USUAL_TIME,
        )

    @property
    def sets(self) -> ColumnSets:
        """Sets of columns by role."""
        near, far, free, count = (
            np.array([role in chosen for role in self.roles])
            for chosen in (_NEAR, _FAR, _FREE, {ColumnRole.COUNT})
        )
        strays = [self.strays if role is ColumnRole.USUAL_TIME else 0.0 for role in self.roles]
        return ColumnSets(near, far, free, count, np.array(strays))

    def with_medium(self, medium: MediumColumns) -> PartColumns:
        """These and the columns of the medium."""
        of_medium = {WRITE_BACK: medium.written_bytes, TAIL: medium.tail_s}
        added = {name: column for name, column in of_medium.items() if column.any()}
        return replace(self, of_activity={**self.of_activity, **added})

    @property
    def parts(self) -> Float64Array:
        """1 where a column belongs to a part, shape (q, p)."""
        widths = [3] * len(self.of_kind) + [1] * len(self.of_activity)
        membership = np.repeat(np.eye(len(widths)), widths, axis=1)
        membership = np.concatenate([membership, membership[: len(self.of_kind)].sum(axis=0)[None]])
        return np.concatenate([membership, np.zeros((len(membership), len(self.of_activity) + 1))], axis=1)
