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
        self._free = free
        self._root = np.sqrt(group.lasted_s)
        self._settling = group.settling.astype(np.intp)
        rows = _unit(group.sums(shared).T / self._root)
        left = group.sum(energy_j) / self._root
        self._sets = [
            _Set(rows[:, chosen], left[chosen], chosen)
            for chosen in (_as_slice(np.flatnonzero(self._settling == settling)) for settling in (0, 1))
        ]
        self._start: BoolArray | None = None
        lasted_s = np.bincount(self._settling, group.lasted_s, 2)
        self._independent = lasted_s / INDEPENDENT_S

    def deviance(self, sums: list[Float64Array]) -> float:
        """Minus twice the log-likelihood with more columns, given by their sums over each group, up to a constant."""
        added = _unit(np.stack(sums) / self._root)
        sets = [equations.with_columns(added) for equations in self._sets]
        free = np.append(self._free, [False] * len(sums))
        if self._start is None or self._start.size != free.size:
            self._start = np.zeros(free.size, np.bool_)
        variance = np.ones(2)
        for _ in range(_ROUNDS):
            gram = sum(equations.gram / var for equations, var in zip(sets, variance, strict=True))
            moment = sum(equations.moment / var for equations, var in zip(sets, variance, strict=True))
            x = non_negative(np.asarray(gram), np.asarray(moment), free, self._start)
            # the next solution, also that of the next call, has mostly the same columns
            variance, self._start = np.array([equations.variance(x) for equations in sets]), x != 0
        return float(np.dot(self._independent, np.log(variance)))


class _Set:
    """Normal equations of the groups of the run, or of settle; a row of `rows` is a column of the regression."""

    def __init__(self, rows: Float64Array, left: Float64Array, chosen: slice | IntArray) -> None:
        self._rows, self._left, self._chosen = rows, left, chosen
        self.gram, self.moment = rows @ rows.T, rows @ left
        self._square = float(left @ left)

    def with_columns(self, added: Float64Array) -> _Set:
        """The equations with more columns; only the new entries are computed."""
        columns, made = added[:, self._chosen], copy(self)
        across = self._rows @ columns.T
        made.gram = np.block([[self.gram, across], [across.T, columns @ columns.T]])
        made.moment = np.concatenate([self.moment, columns @ self._left])
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
    """Rows of a root mean square of 1, shape (p, groups)."""
    size = np.sqrt(np.vecdot(rows, rows) / rows.shape[1])
    return np.asarray(rows / np.maximum(size, 1e-300)[:, None], np.float64)
