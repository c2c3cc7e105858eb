"""How much longer than usual the operations of a window took."""

from __future__ import annotations

from typing import Final

import numpy as np

from opjoule.attribution.window_groups import Groups, IntArray
from opjoule.trace.power_trace import Float64Array

FEW: Final = 16
"""Operations of usual length that stand beside those of a neighbourhood, which may hold few of its own."""


def beyond_count(
    count: Float64Array, busy_s: Float64Array, group: Groups
) -> tuple[Float64Array, Float64Array]:
    """Operations that a window's busy time would usually hold, less those that it held, each of shape (n, kinds).

    An operation that takes longer than others does more, or it waits: for a compaction beside it, for a processor that
    runs slower. As a number of operations it means the same in either state. The first is against what is usual in the
    neighbourhood, where all kinds are taken to be slowed alike; the second against what is usual with the same
    background work in all of the run, and sums to nothing over it, so that it takes up scatter and moves no energy
    between kinds and activities.
    """
    usual_s = np.stack(
        [_usual_s(*each, group.state)[group.state] for each in zip(count.T, busy_s.T, strict=True)], axis=1
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
