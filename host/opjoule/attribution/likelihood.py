"""How likely the windows are with one more column or two: what chooses the medium's lag and tail."""

from __future__ import annotations

from typing import Final

import numpy as np

from opjoule.attribution.least_squares import non_negative
from opjoule.attribution.near_and_far import Groups
from opjoule.trace.power_trace import BoolArray, Float64Array

INDEPENDENT_S: Final = 0.25
"""What is left is not independent from group to group: so long a stretch counts as one."""
_ROUNDS: Final = 3


class Likelihood:
    """Of groups of windows, with columns that all candidates share; run and settle have a variance of their own."""

    def __init__(self, shared: Float64Array, free: BoolArray, energy_j: Float64Array, group: Groups) -> None:
        """Takes shared columns, (n, p), which of them may have either sign, and the energy of each window, (n,)."""
        self._group, self._free = group, free
        self._root = np.sqrt(group.lasted_s)
        self._settling = group.settling.astype(np.intp)
        self._rows = _unit(group.sums(shared) / self._root[:, None])
        self._left = group.sums(energy_j[:, None])[:, 0] / self._root
        self._count = np.maximum(np.bincount(self._settling, minlength=2), 1)
        lasted_s = np.bincount(self._settling, group.lasted_s, 2)
        self._independent = lasted_s / INDEPENDENT_S

    def unlikely(self, own: list[Float64Array]) -> float:
        """Minus twice the logarithm of the likelihood with more columns, each of shape (n,), but for a constant."""
        added = _unit(self._group.sums(np.stack(own, axis=1)) / self._root[:, None])
        rows = np.concatenate([self._rows, added], axis=1)
        sets = [self._settling == each for each in (0, 1)]
        grams = [rows[each].T @ rows[each] for each in sets]
        moments = [rows[each].T @ self._left[each] for each in sets]
        variance = np.ones(2)
        for _ in range(_ROUNDS):
            gram = sum(each / var for each, var in zip(grams, variance, strict=True))
            moment = sum(each / var for each, var in zip(moments, variance, strict=True))
            x = non_negative(np.asarray(gram), np.asarray(moment), np.append(self._free, [False] * len(own)))
            off = (self._left - rows @ x) ** 2
            variance = np.maximum(np.bincount(self._settling, off, 2) / self._count, 1e-300)
        return float(np.dot(self._independent, np.log(variance)))


def _unit(rows: Float64Array) -> Float64Array:
    return np.asarray(rows / np.maximum(np.sqrt(np.mean(rows**2, axis=0)), 1e-300), np.float64)
