"""Least squares with mostly non-negative coefficients: of normal equations, and of sets weighted by their residuals."""

from __future__ import annotations

from typing import Final

import numpy as np

from opjoule.attribution.columns import ColumnSets
from opjoule.attribution.window_groups import BETWEEN, Equations
from opjoule.energy.trace.power_trace import BoolArray, Float64Array

_TOLERANCE: Final = 1e-10
_UNSEEN: Final = 1e-12
"""Fraction of the greatest eigenvalue (columns scaled alike) below which an eigenvalue is rounding error."""
_NOTHING: Final = 1e-9
"""Fraction of the greatest column below which a column is rounding error."""
_ROUNDS: Final = 10
"""Exchanges per column before the current solution is returned; each lowers the sum of squares."""
_ITERATIONS: Final = 6
_NO_POWER: Final = 1e-12
"""Fraction of the whole, in the unit of a coefficient, below which kinds draw no power."""
_SUM_WEIGHT: Final = 1e4
"""Weight of the windows' sum relative to all windows: it makes the parts add up to the whole."""


def non_negative(
    gram: Float64Array, moment: Float64Array, free: BoolArray, start: BoolArray | None = None
) -> Float64Array:
    """The x that minimises x' G x - 2 m' x, non-negative except for the free coefficients, shape (p,).

    `gram`: X' X, shape (p, p). `moment`: X' y. `start`: columns expected to be non-zero.
    Source: Lawson and Hanson, Solving Least Squares Problems (1974), 23.3, in the form of Bro and de Jong, J.
        Chemometrics 11, 393 (1997), which needs the normal equations alone.
    """
    passive, x = free.copy(), np.zeros(moment.size)
    if start is not None and start.any():
        passive |= start
        trial = _solved(gram, moment, passive)
        if np.all(trial[~free] >= 0) and np.all((moment - gram @ trial)[~passive] <= _limit(moment)):
            return trial
        x = _feasible(gram, moment, passive, free, x)
    else:
        x = _solved(gram, moment, passive)
    for _ in range(_ROUNDS * moment.size):
        slope = np.where(passive, -np.inf, moment - gram @ x)
        entering = int(np.argmax(slope))
        if slope[entering] <= _limit(moment):
            break
        passive[entering] = True
        x = _feasible(gram, moment, passive, free, x)
        if not passive[entering]:  # it had entered by rounding error alone
            break
    return x


def _feasible(
    gram: Float64Array, moment: Float64Array, passive: BoolArray, free: BoolArray, x: Float64Array
) -> Float64Array:
    """Least squares over the passive columns; columns that would become negative are left out one after the other."""
    while True:
        trial = _solved(gram, moment, passive)
        falling = passive & ~free & (trial <= 0)
        if not falling.any():
            return trial
        steps = x[falling] / np.maximum(x[falling] - trial[falling], 1e-300)
        x = x + steps.min() * (trial - x)
        passive &= ~(falling & (x <= _TOLERANCE * np.abs(x).max(initial=0.0)))
        x[~passive] = 0.0


def _solved(gram: Float64Array, moment: Float64Array, passive: BoolArray) -> Float64Array:
    x = np.zeros(moment.size)
    chosen = np.flatnonzero(passive)
    unit, values, vectors = _decomposed(gram[chosen[:, None], chosen])
    x[chosen] = unit * (vectors @ ((vectors.T @ (unit * moment[chosen])) / values))
    return x


def inverse(gram: Float64Array) -> Float64Array:
    """Pseudo-inverse of normal equations; directions without data are left at zero."""
    unit, values, vectors = _decomposed(gram)
    return np.asarray(unit[:, None] * ((vectors / values) @ vectors.T) * unit)


def _decomposed(gram: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Factors that make the columns alike, (p,), then eigenvalues and vectors, without directions that lack data."""
    diagonal = gram.diagonal()
    seen = diagonal > _NOTHING * diagonal.max(initial=0.0)
    unit = np.where(seen, 1.0 / np.sqrt(np.where(seen, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(gram * unit[:, None] * unit)
    kept = values > _UNSEEN * values.max(initial=0.0)
    return unit, values[kept], vectors[:, kept]


def _limit(moment: Float64Array) -> float:
    return _TOLERANCE * float(np.abs(moment).max(initial=0.0))


def iterated(
    equations: Equations, total: Float64Array, whole_j: float, sets: ColumnSets, doubt: float
) -> tuple[Float64Array, Float64Array, Float64Array, float]:
    """Solves sets of equations that are weighted by their own residuals, in a few iterations.

    Args:
        total: sum of each column, shape (p,).
        whole_j: energy that all parts add up to.
        doubt: factor of the variance between groups.
    Returns: coefficients, shape (p,); variance of each set, shape (4,); prior information on coefficients that are
        about zero, shape (p,); weight of the sum.
    """
    x, variance, known = np.zeros(total.size), np.ones(equations.rows.size), np.zeros(total.size)
    squares = np.einsum("bsii->s", equations.gram)
    sum_weight = 0.0
    for _ in range(_ITERATIONS):
        gram, moment = equations.weighted(variance)
        sum_weight = _sum_weight(squares[BETWEEN] / variance[BETWEEN], total * sets.far)
        summed = summing(gram.sum(axis=0), moment.sum(axis=0), total * sets.far, whole_j, known, sum_weight)
        x = non_negative(*summed, sets.free, x != 0)
        variance = equations.variance(x)
        variance[BETWEEN] *= doubt
        strayed_j = sets.strays * float(total[sets.count] @ x[sets.count])
        significant = (total > 0.0) & (strayed_j > _NO_POWER * abs(whole_j) * total)
        known = np.where(significant, (total / np.where(significant, strayed_j, 1.0)) ** 2, 0.0)
    return x, variance, known, sum_weight


def summing(
    gram: Float64Array,
    moment: Float64Array,
    total: Float64Array,
    whole_j: float,
    known: Float64Array,
    sum_weight: float,
) -> tuple[Float64Array, Float64Array]:
    """Normal equations that also make the parts add up to the whole, with prior information `known`."""
    return gram + sum_weight * np.outer(total, total) + np.diag(known), moment + sum_weight * whole_j * total


def _sum_weight(squares: Float64Array, total: Float64Array) -> float:
    """Weight of the sum, from all squares of the columns between groups, weighted; 0 without activity, which leaves
    nothing to add up.

    Those within groups are no measure of it: they are so many that the sum would hide what groups tell.
    """
    square, all_squares = float(total @ total), float(squares.sum())
    return _SUM_WEIGHT * all_squares / square if square > 1e-200 * all_squares else 0.0
