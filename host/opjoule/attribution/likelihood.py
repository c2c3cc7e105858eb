"""Likelihood of the windows with one or two more columns, which selects the medium's lag and tail."""

from __future__ import annotations

from copy import copy
from typing import Final

import numpy as np

from opjoule.attribution.least_squares import non_negative
from opjoule.attribution.window_groups import Groups, IntArray
from opjoule.energy.trace.power_trace import BoolArray, Float64Array

INDEPENDENT_S: Final = 0.25
"""Correlation time of the residuals: a stretch of this length counts as one observation [s]."""
_ROUNDS: Final = 3


class Likelihood:
    """Likelihood of groups of windows. All candidates share columns; run and settle have separate variances."""

    def __init__(self, shared: Float64Array, free: BoolArray, energy_j: Float64Array, group: Groups) -> None:
        """Takes shared columns, (n, p), which of them may have either sign, and the energy of each window, (n,)."""
        self._group, self._free = group, free
        self._root = np.sqrt(group.lasted_s)
        self._settling = group.settling.astype(np.intp)
        rows = _unit(group.sums(shared) / self._root[:, None])
        left = group.sums(energy_j[:, None])[:, 0] / self._root
        self._sets = [
            _Set(rows[chosen], left[chosen], chosen)
            for chosen in (_as_slice(np.flatnonzero(self._settling == settling)) for settling in (0, 1))
        ]
        self._summed: tuple[Float64Array | None, Float64Array] = (None, left)
        lasted_s = np.bincount(self._settling, group.lasted_s, 2)
        self._independent = lasted_s / INDEPENDENT_S

    def deviance(self, columns: list[Float64Array]) -> float:
        """Minus twice the log-likelihood with more columns, each of shape (n,), up to a constant."""
        sums = [self._sums(columns[0]), *(self._group.sum(column) for column in columns[1:])]
        added = _unit(np.stack(sums, axis=1) / self._root[:, None])
        sets = [equations.with_columns(added) for equations in self._sets]
        free = np.append(self._free, [False] * len(columns))
        variance, start = np.ones(2), None
        for _ in range(_ROUNDS):
            gram = sum(equations.gram / var for equations, var in zip(sets, variance, strict=True))
            moment = sum(equations.moment / var for equations, var in zip(sets, variance, strict=True))
            x = non_negative(np.asarray(gram), np.asarray(moment), free, start)
            variance, start = np.array([equations.variance(x) for equations in sets]), x != 0
        return float(np.dot(self._independent, np.log(variance)))

    def _sums(self, column: Float64Array) -> Float64Array:
        """Sums of a column over each group; cached for the next call, which often has the same first column."""
        kept, sums = self._summed
        if kept is not column:
            sums = self._group.sum(column)
            self._summed = column, sums
        return sums


class _Set:
    """Normal equations of the groups of the run, or of settle."""

    def __init__(self, rows: Float64Array, left: Float64Array, chosen: slice | IntArray) -> None:
        self._rows, self._left, self._chosen = rows, left, chosen
        self.gram, self.moment = rows.T @ rows, rows.T @ left
        self._square = float(left @ left)

    def with_columns(self, added: Float64Array) -> _Set:
        """The equations with more columns; only the new entries are computed."""
        columns, made = added[self._chosen], copy(self)
        across = self._rows.T @ columns
        made.gram = np.block([[self.gram, across], [across.T, columns.T @ columns]])
        made.moment = np.concatenate([self.moment, columns.T @ self._left])
        return made

    def variance(self, x: Float64Array) -> float:
        """Mean square of the residuals of x."""
        left = self._square - 2 * float(self.moment @ x) + float(x @ self.gram @ x)
        return max(left / max(self._left.size, 1), 1e-12 * self._square / max(self._left.size, 1), 1e-300)


def _as_slice(places: IntArray) -> slice | IntArray:
    """Consecutive indices as a slice, which copies nothing."""
    if places.size and places[-1] - places[0] == places.size - 1:
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _unit(rows: Float64Array) -> Float64Array:
    return np.asarray(rows / np.maximum(np.sqrt(np.mean(rows**2, axis=0)), 1e-300), np.float64)
