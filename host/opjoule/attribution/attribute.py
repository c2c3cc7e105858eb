"""Energy of runs and their settle above idle, divided by kind and activity. Source: docs/method/attribution.md."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np

from opjoule.attribution.activities import SYNC, Intervals, writing
from opjoule.attribution.attributed_run import Attribution, EnergyCourse, Work
from opjoule.attribution.budgets import FitBudget, SensorBudget, sum_of_sensors
from opjoule.attribution.columns import BY_TIME, FOREGROUND, TAIL, WRITE_BACK, PartColumns
from opjoule.attribution.fit import Fit, FitBlocks, all_and_each, fits, part_energies_j
from opjoule.attribution.likelihood import Likelihood
from opjoule.attribution.medium import MediumColumns, MediumModels, MediumRun, medium_models
from opjoule.attribution.overlap import sampled
from opjoule.attribution.run_windows import CutRun, RunWindows, delay_ns
from opjoule.attribution.sensed_medium import SensedMedium
from opjoule.attribution.sensed_parts import SensedParts
from opjoule.attribution.verdict import IN_STEP, INDEPENDENT_MIN, too_short, verdicts
from opjoule.attribution.window_groups import Rows
from opjoule.attribution.windows import window_ns
from opjoule.base.units import Quantity
from opjoule.energy.operations.operation_table import median_ns
from opjoule.energy.trace.power_trace import BoolArray, Float64Array

MOVED_U: Final = 2.5
"""Shift of a part, in standard uncertainties, from which it counts as in step; otherwise few shift by 2."""
AT_ONCE: Final = 2
"""Number of concurrent fits."""
STRETCHES: Final = 400
"""Number of stretches that the course of a run is cut into."""


def attribute_runs(works: Sequence[Work]) -> list[Attribution]:
    """Divides each repeat's energy above idle among its parts, whose powers are fitted to all repeats together.

    A part is identifiable in all runs or in none.
    """
    if not all(work.medium for work in works):  # one fit contains all of them
        works = [replace(work, medium=None) for work in works]
    cut = [CutRun.of(work, length_ns) for work, length_ns in zip(works, _window_ns(works), strict=True)]
    late_ns = delay_ns(cut)
    runs = [RunWindows.of(run, late_ns) for run in cut]
    ends = np.cumsum([0, *(len(run.windows) for run in runs)]).tolist()
    windows_of = [slice(first, end) for first, end in itertools.pairwise(ends)]
    above_j = np.concatenate([run.above_j for run in runs])
    sound = np.concatenate([run.windows.sound for run in runs])
    without, seen = PartColumns.joined([run.columns for run in runs]), _seen(runs)
    without = without.with_slope_of(seen) if seen else without
    media = _media(works, runs, without, above_j)
    columns = without.with_medium(media.best)
    matrix = columns.matrix * sound[:, None]
    rows = Rows(columns.group, sound, [*columns.arrays, above_j])
    blocks = FitBlocks.of(matrix, above_j, columns.group, columns.sets, columns.parts)

    def energies_of(other: PartColumns, windows_j: Float64Array = above_j) -> Float64Array:
        """Energies in the order of `columns`, shape (1 + runs, q); 0 for parts missing in `other`."""
        made = [rows.of(array) for array in other.arrays]
        of_fit = other.group, other.sets, other.parts, windows_of, blocks.doubt
        found_j = part_energies_j(made, rows.of(windows_j), *of_fit)
        by_name = dict(zip(other.names, found_j.T, strict=True))
        return np.stack([by_name.get(name, np.zeros(len(found_j))) for name in columns.names], axis=1)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        first = pool.submit(fits, matrix, blocks, columns.parts, windows_of)
        rivals = (*media.alike, *media.placed, *media.held)
        rivals_j = list(pool.map(energies_of, [without.with_medium(rival) for rival in rivals]))
        waits_j = list(pool.map(energies_of, _waiting(columns)))
        seen_j = energies_of(seen.with_medium(media.best)) if seen else None
        fitted = first.result()
    places = all_and_each(len(above_j), windows_of)
    found = [
        _with_rivals(fit, media, [rival[at] for rival in rivals_j], [wait[at] for wait in waits_j])
        for at, fit in enumerate(fitted)
    ]
    budget = _budget(works, float(above_j.sum()))
    if budget.taken:
        drawn_j = np.concatenate([run.medium.drawn_j for run in runs if run.medium]) * sound
        drawn_j *= budget.board.apart_u(budget.taken)
        other_j = energies_of(columns, above_j + drawn_j)
        found = [fit.with_spread([other]) for fit, other in zip(found, other_j, strict=True)]
    whole, *by_run = [_split(fit, columns, media.best, windows) for fit, windows in zip(found, places, strict=True)]
    moved_j = np.zeros(len(columns.names)) if seen_j is None else np.abs(seen_j[0] - whole.energy_j)
    sensed = _sensed(works, runs)
    in_step = moved_j > MOVED_U * budget.standard_u_j(whole)
    reasons = _reasons(works, columns, matrix, whole, in_step, sensed, written=media.written)
    seen_alone = (whole.independent >= INDEPENDENT_MIN) & ~in_step
    blind = {name for name, seen in zip(columns.names, seen_alone.tolist(), strict=True) if not seen}
    of_medium = sensed.reasons(float(whole.energy_j[:-1].sum())) if sensed else {}
    return [
        _attribution(
            work,
            run,
            columns,
            _shares(columns.names, fit, reasons, budget),
            blind,
            of_medium,
            media.best.tail_length_s,
            _course(columns, matrix[windows], fit, run),
        )
        for work, run, fit, windows in zip(works, runs, by_run, windows_of, strict=True)
    ]


def _seen(runs: Sequence[RunWindows]) -> PartColumns | None:
    """Columns of all runs with each operation counted as the meter saw it; None if the meter saw all of the time."""
    seen = [run.seen for run in runs if run.seen]
    return PartColumns.joined(seen) if len(seen) == len(runs) else None


def _waiting(columns: PartColumns) -> list[PartColumns]:
    """The columns if more or less of the time of long operations were waiting; none if few wait."""
    return [columns.with_more_by_time(part) for part in (-BY_TIME, 1.0 - BY_TIME)] if columns.longer_s.any() else []


def _window_ns(works: Sequence[Work]) -> list[int]:
    span_ns = sum(work.end_board_ns - work.start_board_ns for work in works)
    lengths_ns = []
    for work in works:
        latency_ns = median_ns(sampled(work.operations).duration_ns) if len(work.operations) else 0.0
        lengths_ns.append(window_ns(work.cells.period_ns, latency_ns, span_ns))
    return lengths_ns


def _budget(works: Sequence[Work], windows_j: float) -> FitBudget:
    """Stated energy of the windows that the fit divides, with its uncertainty."""
    taken = [medium.marginal() for work in works if (medium := work.medium) and medium.of_board]
    board = SensorBudget.of([work.marginal() for work in works])
    return FitBudget(board, SensorBudget.of(taken) if taken else None, windows_j)


def _sensed(works: Sequence[Work], runs: Sequence[RunWindows]) -> SensedParts | None:
    """The medium's parts in all runs together; None without a sensor in its supply."""
    media = [run.medium for run in runs if run.medium]
    if not media:
        return None
    marginals = [work.medium.marginal() for work in works if work.medium]
    return SensedParts.of(SensedMedium.joined(media), SensorBudget.of(marginals))


def _attribution(
    work: Work,
    run: RunWindows,
    columns: PartColumns,
    shares: dict[str, Quantity],
    blind: set[str],
    of_medium: Mapping[str, Quantity | None],
    tail_length_s: float | None,
    course: EnergyCourse,
) -> Attribution:
    """Attribution of one run.

    Args:
        blind: parts that too few windows show for an interval.
        of_medium: why a sensor does not identify write-back and tail.
    """
    marginal, alone = work.marginal(), None
    whole = SensorBudget.of([marginal]).whole
    activities = {name: shares[name] for name in columns.of_activity}
    if work.medium and (sensed := _sensed([work], [run])):
        activities, alone = sensed.joined_with(activities, of_medium), sensed.alone
        if not work.medium.of_board:
            whole = sum_of_sensors(marginal, work.medium.marginal())
    return Attribution(
        {name: shares[name] for name in columns.of_kind},
        shares[FOREGROUND],
        activities,
        whole,
        len(run.windows),
        tail_length_s,
        course,
        alone,
        frozenset(blind.intersection(columns.of_kind)),
        run.waited,
    )


def _course(columns: PartColumns, matrix: Float64Array, fit: Fit, run: RunWindows) -> EnergyCourse:
    """Energies of each part in a few hundred stretches of time."""
    starts = np.unique(np.linspace(0, len(run.windows), STRETCHES, endpoint=False).astype(np.int64))
    names = [*columns.of_kind, *columns.of_activity]
    parts = columns.parts[: len(names)] * fit.coefficients
    drawn = {name: matrix @ columns_of for name, columns_of in zip(names, parts, strict=True)}
    measured_j = run.above_j
    if run.medium:
        waited_j, alone_j = run.medium.waited_j, run.medium.drawn_j - run.medium.waited_j
        sensed_j = {SYNC: waited_j, WRITE_BACK: alone_j - run.medium.tail_j, TAIL: run.medium.tail_j}
        for name, own_j in sensed_j.items():
            drawn[name] = drawn.get(name, 0.0) + own_j
        measured_j = measured_j + run.medium.drawn_j
    edge_ns = run.windows.edge_board_ns
    return EnergyCourse(
        np.append(edge_ns[starts], edge_ns[-1]),
        {name: np.add.reduceat(energy_j, starts) for name, energy_j in drawn.items()},
        np.add.reduceat(measured_j, starts),
    )


def _with_rivals(
    fit: Fit, media: MediumModels, rivals_j: Sequence[Float64Array], waits_j: Sequence[Float64Array]
) -> Fit:
    """Fit of the best model, with the disagreement of its rivals, by assumption.

    Args:
        rivals_j: energies with another model of the medium, in the order of `media`, shape (q,) each.
        waits_j: energies with other costs of a wait, shape (q,) each.
    """
    left = iter(rivals_j)
    alike, placed, held = (list(islice(left, len(models))) for models in (media.alike, media.placed, media.held))
    return fit.with_spread(alike).with_bounds(placed).with_bounds(held).with_bounds(waits_j, of_medium=False)


def _split(fit: Fit, columns: PartColumns, medium: MediumColumns, windows: slice) -> Fit:
    """Fit with the energy that may be either write-back's or the tail's split at the middle of its range."""
    if TAIL not in columns.of_activity or WRITE_BACK not in columns.of_activity:
        return fit
    tail, write_back = columns.names.index(TAIL), columns.names.index(WRITE_BACK)
    tail_w = float(fit.coefficients[columns.parts[tail] > 0].sum())
    least_s, most_s = medium.also_s[:, windows].sum(axis=1).tolist()
    return fit.moved(write_back, tail, tail_w * least_s, tail_w * most_s)


def _media(
    works: Sequence[Work], runs: Sequence[RunWindows], columns: PartColumns, above_j: Float64Array
) -> MediumModels:
    """Models of the medium; none if its counters are unknown, or if it has its own sensor."""
    if any(run.medium for run in runs):
        return MediumModels(MediumColumns.none(above_j.size))
    pairs = [(work, run.edge_ns) for work, run in zip(works, runs, strict=True)]
    known = [MediumRun.of(work.counters, edge_ns, writing(work.activities)) for work, edge_ns in pairs if work.counters]
    if len(known) < len(works):
        return MediumModels(MediumColumns.none(above_j.size))
    far, free = columns.sets.far, columns.sets.free
    likelihood = Likelihood(columns.matrix[:, far], free[far], above_j, columns.group)
    return medium_models(known, likelihood.deviance, columns.group.of_window)


def _reasons(
    works: Sequence[Work],
    columns: PartColumns,
    matrix: Float64Array,
    fit: Fit,
    in_step: BoolArray,
    sensed: SensedParts | None,
    *,
    written: bool,
) -> list[Quantity | None]:
    """Why each part is not identifiable; None if it is.

    `in_step`: whether a part shifts with the operations as seen. `written`: whether the medium was written to.
    """
    reasons = verdicts(
        columns.names,
        len(columns.of_kind),
        columns.parts,
        matrix,
        sensed.added_to(columns.names, fit) if sensed else fit,
        float(columns.group.duration_s.sum()),
        max(float(sensed.alone), 0.0) if sensed else 0.0,
        written=written,
    )
    joined = Intervals.joined([work.activities for work in works])
    short = too_short(joined, max(work.cells.period_ns for work in works))
    return [
        short.get(name) or reason or (IN_STEP if steps else None)
        for name, reason, steps in zip(columns.names, reasons, in_step.tolist(), strict=True)
    ]


def _shares(
    names: Sequence[str], fit: Fit, reasons: Sequence[Quantity | None], budget: FitBudget
) -> dict[str, Quantity]:
    """Energy of each part [J], scaled from the windows' sum to the stated energy of the whole."""
    stated_j, u_j = (fit.energy_j * budget.stated).tolist(), budget.standard_u_j(fit).tolist()
    sources, by_source = zip(*budget.in_common_j(fit).items(), strict=True)
    shared_j = [dict(zip(sources, row_j, strict=True)) for row_j in np.stack(by_source, axis=1).tolist()]
    return {
        name: Quantity.from_standard(value_j, standard_u_j, "J", shared=shared).because(reason)
        for name, value_j, standard_u_j, shared, reason in zip(names, stated_j, u_j, shared_j, reasons, strict=True)
    }
