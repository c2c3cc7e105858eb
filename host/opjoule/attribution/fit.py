"""Coefficients of the columns and uncertainty of their sums: constrained fit, block bootstrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from opjoule.attribution.columns import ColumnSets
from opjoule.attribution.least_squares import inverse, iterated, non_negative, summing
from opjoule.attribution.window_groups import BETWEEN, WITHIN, BlockRows, Equations, Groups
from opjoule.base.coverage import COVERAGE_FACTOR, student_t
from opjoule.energy.trace.power_trace import BoolArray, Float64Array

REPLICATES: Final = 200
UNSEEN: Final = 1e-3
"""Fraction of a sum in directions without data, above which the sum is unknown."""
COURSE_U: Final = 0.01
"""Relative standard deviation of a column from the course of the activity that it represents."""


@dataclass(frozen=True)
class Fit:
    """Energies of q parts, which together cover all columns."""

    energy_j: Float64Array
    """shape (q,)"""
    standard_u_j: Float64Array
    """Standard uncertainty from every source visible in the windows, shape (q,)."""
    scatter_u_j: Float64Array
    """Part of it that shrinks as the run gets longer, shape (q,): scatter of blocks of windows, widened by Student's t
    so that k = 2 means 95 %.

    It is at least that of the unconstrained fit: at the bound of zero, the constraint would feign certainty.
    """
    simplified_u_j: Float64Array
    """Part of it from simplifications in columns and neighbours, shape (q,)."""
    model_u_j: Float64Array
    """Part of it from the disagreement of models of the medium that the windows do not distinguish, shape (q,)."""
    independent: Float64Array
    """Effective number of independent blocks behind each part, more if little of it rests on blocks, shape (q,)."""
    shift_per_j: Float64Array
    """Change of each part if the whole changes by 1 J spread evenly over time, shape (q,)."""
    coefficients: Float64Array
    """shape (p,)"""

    def with_spread(self, others_j: Sequence[Float64Array]) -> Fit:
        """Fit with the spread to the energies of other fits that explain the data equally well."""
        if not others_j:
            return self
        spread_j = np.sqrt(np.mean((np.stack(others_j) - self.energy_j) ** 2, axis=0))
        return replace(self, standard_u_j=np.hypot(self.standard_u_j, spread_j))

    def with_bounds(self, others_j: Sequence[Float64Array], *, of_medium: bool = True) -> Fit:
        """Fit with an uncertainty that reaches the energies of other fits.

        `of_medium`: the fits differ in their model of the medium. A medium is of one kind or the other, and rarely in
        between: its bounds are those of a U-shaped distribution (JCGM 101:2008, 6.4.6), all others of a rectangular one
        (JCGM 100:2008, 4.3.7).
        """
        if not others_j:
            return self
        bound_u_j = np.abs(np.stack(others_j) - self.energy_j).max(axis=0) / math.sqrt(2.0 if of_medium else 3.0)
        return replace(
            self,
            standard_u_j=np.hypot(self.standard_u_j, bound_u_j),
            model_u_j=np.hypot(self.model_u_j, bound_u_j) if of_medium else self.model_u_j,
        )

    def moved(self, one: int, other: int, least_j: float, most_j: float) -> Fit:
        """Fit with the middle of a range [J] moved from one part to another. Source: JCGM 100:2008, 4.3.7."""
        low_j, high_j = max(least_j, -float(self.energy_j[other])), min(most_j, float(self.energy_j[one]))
        way = np.zeros_like(self.energy_j)
        way[one], way[other] = -1.0, 1.0
        bound_u_j = np.abs(way) * (high_j - low_j) / math.sqrt(12.0)
        return replace(
            self,
            energy_j=self.energy_j + way * (low_j + high_j) / 2,
            standard_u_j=np.hypot(self.standard_u_j, bound_u_j),
            model_u_j=np.hypot(self.model_u_j, bound_u_j),
        )


def fits(
    columns: Float64Array,
    blocks: FitBlocks,
    parts: Float64Array,
    runs: Sequence[slice],
    seed: int = 1,
) -> list[Fit]:
    """Divides the windows' energy among parts, with intervals: in all windows together, then in each run.

    The power of a part is the same in all runs; its duration differs.

    Args:
        columns: activity in each window, shape (n, p), of which the blocks were made.
        parts: 1 where a column belongs to a part, shape (q, p); columns unused between groups belong to no part.
    """
    x = blocks.solution
    drawn = blocks.drawn(x != 0, seed)

    def of(windows: slice) -> Fit:
        wanted = parts * (columns[windows].sum(axis=0) / blocks.scale)
        free_u_j, of_scatter, independent = blocks.free_u(wanted)
        widening = np.array([student_t(max(int(count), 1)) / COVERAGE_FACTOR for count in of_scatter])
        scatter_u_j = np.maximum((drawn @ wanted.T).std(axis=0, ddof=1), free_u_j) * widening
        simplified_u_j = np.hypot(blocks.simplified_u_j(parts, wanted), blocks.neighbours_u_j(wanted))
        return Fit(
            energy_j=wanted @ x,
            standard_u_j=np.hypot(scatter_u_j, simplified_u_j),
            scatter_u_j=scatter_u_j,
            simplified_u_j=simplified_u_j,
            model_u_j=np.zeros(len(wanted)),
            independent=independent,
            shift_per_j=wanted @ blocks.shift_per_j,
            coefficients=x / blocks.scale,
        )

    return [of(windows) for windows in all_and_each(len(columns), runs)]


def all_and_each(windows: int, runs: Sequence[slice]) -> list[slice]:
    """All windows, then those of each run."""
    return [slice(0, windows), *runs]


def part_energies_j(
    arrays: Sequence[BlockRows],
    energy: BlockRows,
    group: Groups,
    sets: ColumnSets,
    parts: Float64Array,
    runs: Sequence[slice],
    doubt: float,
) -> Float64Array:
    """Energies of the parts as from `fits`, without intervals, shape (1 + runs, q); `doubt` as in FitBlocks."""
    scale = np.sqrt(np.concatenate([array.mean_square for array in arrays]))
    scale[scale == 0] = 1.0
    equations = Equations.together(arrays, energy, group, sets.near, sets.far).scaled(scale)
    windows_of = all_and_each(group.near.size, runs)
    sums = np.concatenate(
        [np.stack([array.columns[:, some].sum(axis=1) for some in windows_of], axis=1) for array in arrays]
    )
    solution, _, _, _ = iterated(equations, sums[:, 0] / scale, float(energy.columns.sum()), sets, doubt)
    return np.asarray((parts * (solution / scale) @ sums).T, np.float64)


def _scale(columns: Float64Array) -> Float64Array:
    """Root mean square of each column, 1 for an empty one, shape (p,)."""
    scale = np.asarray(np.sqrt(np.mean(columns**2, axis=0)), np.float64)
    scale[scale == 0] = 1.0
    return scale


def _with_time(columns: Float64Array, energy_j: Float64Array, group: Groups, sets: ColumnSets) -> Equations:
    """Equations with a further column, used between groups: the time of each window."""
    time = group.duration_s / group.duration_s.sum()
    both = np.concatenate([columns, time[:, None]], axis=1)
    return Equations.of(both, energy_j, group, np.append(sets.near, False), np.append(sets.far, True))


@dataclass(frozen=True)
class FitBlocks:
    """The windows as blocks: normal equations and sums of each block, and the solution of all together."""

    scale: Float64Array
    """Root mean square of each column, shape (p,)."""
    doubt: float
    """Factor of the residual variance between groups: their courses are simplified (COURSE_U), so that the sum of all
    kinds is known less well between groups than the residuals say."""
    gram: Float64Array
    """Normal equations with the sets weighted by inverse variance, shape (b, p, p)."""
    moment: Float64Array
    """shape (b, p)"""
    total: Float64Array
    """Sums of the columns, shape (b, p)."""
    whole_j: Float64Array
    """shape (b,)"""
    free: BoolArray
    known: Float64Array
    """Prior information on coefficients that are about zero: inverse variance, else 0, shape (p,)."""
    sum_weight: float
    """Weight of the row that makes the parts add up to the whole."""
    solution: Float64Array
    near: Float64Array
    """Normal equations within groups, weighted, with the prior information, shape (p, p)."""
    course: Float64Array
    """Products of the columns between groups about their mean over time, weighted, shape (p, p)."""
    shift_per_j: Float64Array
    """Change of the unconstrained solution if the whole changes by 1 J spread evenly over time, shape (p,)."""

    @classmethod
    def of(
        cls, columns: Float64Array, energy_j: Float64Array, group: Groups, sets: ColumnSets, parts: Float64Array
    ) -> FitBlocks:
        """Solves twice: the first solution shows how much to doubt the groups.

        Args:
            columns: activity in each window, shape (n, p).
            energy_j: energy of each window above idle, shape (n,).
            parts: as in `fits`.
        """
        scale = _scale(columns)
        columns = columns / scale
        with_time = _with_time(columns, energy_j, group, sets)
        starts = np.flatnonzero(np.diff(group.block, prepend=-1))
        sums = np.add.reduceat(columns, starts, axis=0) * sets.far, np.add.reduceat(energy_j, starts)

        def solved(doubt: float) -> FitBlocks:
            return cls._solved(scale, doubt, with_time, *sums, columns.sum(axis=0), sets)

        first = solved(1.0)
        return solved(first.doubted(parts, parts * columns.sum(axis=0)))

    @classmethod
    def _solved(
        cls,
        scale: Float64Array,
        doubt: float,
        with_time: Equations,
        sums: Float64Array,
        sums_j: Float64Array,
        total: Float64Array,
        sets: ColumnSets,
    ) -> FitBlocks:
        equations = with_time.without_last()
        x, variance, known, sum_weight = iterated(equations, total, float(sums_j.sum()), sets, doubt)
        gram, moment = equations.weighted(variance)
        even = np.einsum("bsi,s->i", with_time.gram[:, :, -1, :-1], 1.0 / variance)
        shift = summing(gram.sum(axis=0), even, total * sets.far, 1.0, known, sum_weight)
        far = np.einsum("bsij,s->ij", with_time.gram[:, BETWEEN], doubt / variance[BETWEEN])
        course = far[:-1, :-1] - np.outer(far[:-1, -1], far[:-1, -1]) / far[-1, -1]
        return cls(
            scale,
            doubt,
            gram,
            moment,
            sums,
            sums_j,
            sets.free,
            known,
            sum_weight,
            x,
            np.einsum("bsij,s->ij", equations.gram[:, WITHIN], 1.0 / variance[WITHIN]) + np.diag(known),
            course,
            inverse(shift[0]) @ shift[1],
        )

    def drawn(self, start: BoolArray, seed: int) -> Float64Array:
        """Solutions for blocks drawn with replacement, shape (REPLICATES, p)."""
        rng = np.random.default_rng(seed)
        blocks, p = self.moment.shape
        taken = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), REPLICATES).astype(np.float64)
        gram = (taken @ self.gram.reshape(blocks, -1)).reshape(REPLICATES, p, p)
        moment, total, whole_j = taken @ self.moment, taken @ self.total, taken @ self.whole_j
        drawn = zip(gram, moment, total, whole_j, strict=True)
        solved = [
            non_negative(*summing(*equations, self.known, self.sum_weight), self.free, start) for equations in drawn
        ]
        return np.stack(solved)

    def free_u(self, wanted: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Standard uncertainty of sums without the non-negativity constraint, effective number of blocks behind it, and
        the same with what is known of neighbours, which rests on no block. Source: JCGM 100:2008, G.4.1."""
        gram, moment = self.gram.sum(axis=0), self.moment.sum(axis=0)
        total, whole_j = self.total.sum(axis=0), float(self.whole_j.sum())
        bound = summing(gram, moment, total, whole_j, self.known, self.sum_weight)
        spread = inverse(bound[0])
        x = spread @ bound[1]
        score = self.moment - self.gram @ x + self.sum_weight * np.outer(self.whole_j - self.total @ x, total)
        blocks = self.whole_j.size
        influence = score @ spread @ wanted.T
        free_u_j = np.sqrt((influence**2).sum(axis=0) * blocks / max(blocks - 1, 1))
        way = wanted @ spread
        weights = np.einsum("qi,bij,qj->qb", way, self.gram, way)
        independent = weights.sum(axis=1) ** 2 / np.maximum((weights**2).sum(axis=1), 1e-300) - 1.0
        # directions without data were left at zero: a sum that depends on them is unknown
        unseen = np.linalg.norm(wanted - wanted @ spread @ bound[0], axis=1)
        lost = unseen > UNSEEN * np.linalg.norm(wanted, axis=1)
        of_blocks, of_prior = weights.sum(axis=1), way**2 @ self.known
        with_prior = independent * ((of_blocks + of_prior) / np.maximum(of_blocks, 1e-300)) ** 2
        return np.where(lost, abs(whole_j) + free_u_j, free_u_j), independent, with_prior

    def neighbours_u_j(self, wanted: Float64Array) -> Float64Array:
        """Uncertainty of sums from how far neighbours may misjudge the power of all kinds (ColumnSets.strays)."""
        gram, total = self.gram.sum(axis=0), self.total.sum(axis=0)
        spread = inverse(summing(gram, total, total, 0.0, self.known, self.sum_weight)[0])
        return np.asarray(np.abs(wanted @ spread) @ np.sqrt(self.known), np.float64)

    def simplified_u_j(self, parts: Float64Array, wanted: Float64Array) -> Float64Array:
        """Uncertainty of each part's energy if columns deviate from the activities that they represent (COURSE_U).

        It applies between groups only, with all kinds as one: within groups, kinds differ by their own operations. What
        neighbours tell of all kinds together makes it smaller.
        """
        kinds = parts[-1] @ parts[:-1].T > 0
        courses = _Courses.of(self, parts)
        known = np.zeros(len(courses.alike))
        known[-2] = self._neighbours_information(wanted[-1]) * self.doubt / courses.size[-2] ** 2
        variance = np.diag(inverse(courses.alike + np.diag(known)))
        inflation = np.sqrt(np.maximum(variance - 1.0, 0.0))
        if known[-2]:
            alone = 1.0 / np.maximum(1.0 / variance[-2] - known[-2], 1e-300)
            inflation[-2] = (1.0 - known[-2] * variance[-2]) * np.sqrt(np.maximum(alone - 1.0, 0.0))
        total = np.append((wanted[courses.rows[:-1]] * courses.own).sum(axis=1), wanted[-1] @ self.solution)
        u_j = np.zeros(len(parts))
        u_j[courses.rows] = COURSE_U * (inflation * courses.strayed / courses.size)[:-1] * total
        energy_j = wanted @ self.solution
        u_j[:-1][kinds] = u_j[-1] * np.abs(energy_j[:-1][kinds]) / max(abs(energy_j[-1]), 1e-300)
        return u_j

    def doubted(self, parts: Float64Array, wanted: Float64Array) -> float:
        """Factor by which the residual variance between groups must grow to include the error of the courses.

        1 if neighbours do not show the sum of all kinds, which then rests on the groups alone.

        Args:
            parts: as in `fits`.
            wanted: parts times the sums of the scaled columns, shape (q, p).
        """
        if not self._neighbours_information(wanted[-1]):
            return 1.0
        courses = _Courses.of(self, parts)
        alone = float(inverse(courses.alike)[-2, -2])
        return 1.0 + COURSE_U**2 * max(1.0 - 1.0 / alone, 0.0) * float(courses.strayed[-2]) ** 2

    def _neighbours_information(self, wanted: Float64Array) -> float:
        """Inverse relative variance of a sum from neighbours alone; 0 if they do not show it."""
        spread = inverse(self.near)
        unseen = np.linalg.norm(wanted - wanted @ spread @ self.near)
        variance, energy_j = float(wanted @ spread @ wanted), float(wanted @ self.solution)
        seen = unseen <= UNSEEN * np.linalg.norm(wanted) and variance > 0.0
        return energy_j**2 / variance if seen else 0.0


@dataclass(frozen=True)
class _Courses:
    """How alike the courses of the parts are between groups.

    All kinds are one row, the last but one; the last row is what of them may have either sign.
    """

    rows: list[int]
    """Part of each row but the last."""
    own: Float64Array
    """Weights of the columns in the course of each part, without all kinds, shape (r - 2, p)."""
    alike: Float64Array
    """Correlations, shape (r, r)."""
    size: Float64Array
    """Root of the information on a part's coefficient if no other were like it, shape (r,)."""
    strayed: Float64Array
    """Variation of the parts that are like it, in units of the residual, shape (r,)."""

    @classmethod
    def of(cls, blocks: FitBlocks, parts: Float64Array) -> _Courses:
        """Courses of the energies of a solution."""
        kinds = parts[-1] @ parts[:-1].T > 0
        rows = [*np.flatnonzero(~kinds).tolist(), len(parts) - 1]
        own = parts[rows[:-1]] * np.abs(blocks.solution)  # a part of several columns has the course of its energy
        weight = own.sum(axis=1, keepdims=True)
        own = np.where(weight > 0.0, own / np.where(weight > 0.0, weight, 1.0), parts[rows[:-1]])
        unit = np.concatenate([own, parts[-1:], parts[-1:]])
        unit[-2:] *= blocks.solution * np.stack([~blocks.free, blocks.free])
        together = unit @ blocks.course @ unit.T
        varies = np.diag(together) > 1e-300  # rounding makes the variance of a constant part tiny or negative
        size = np.sqrt(np.where(varies, np.diag(together), 1.0))
        alike = np.where(np.outer(varies, varies), np.clip(together / np.outer(size, size), -1.0, 1.0), 0.0)
        np.fill_diagonal(alike, 1.0)
        coefficient = np.concatenate([parts[rows[:-1]] @ blocks.solution, [1.0, 1.0]])
        return cls(rows, own, alike, size, np.sqrt(alike**2 @ (coefficient * size) ** 2))
