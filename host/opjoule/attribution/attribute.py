"""Energy of runs and their settle above idle, shared out among kinds of operation and activities.

Source: docs/method/attribution.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

import numpy as np

from opjoule.attribution.activities import Intervals, writing
from opjoule.attribution.columns import FOREGROUND, TAIL, WRITE_BACK, PartColumns
from opjoule.attribution.fit import Fit, fits, part_energies_j, together
from opjoule.attribution.likelihood import Likelihood
from opjoule.attribution.medium import MediumColumns, MediumModels, MediumRun, medium_models
from opjoule.attribution.run_windows import RunWindows
from opjoule.attribution.shares import Attribution, EnergyCourse, Share
from opjoule.attribution.verdict import IN_STEP, too_short, verdicts
from opjoule.attribution.windows import window_ns
from opjoule.attribution.work import Work
from opjoule.energy.baseline import MarginalEnergy
from opjoule.operations.latency import narrow
from opjoule.trace.power_trace import BoolArray, Float64Array

MOVED_U: Final = 2.5
"""Standard uncertainties by which a part moves at least where it is in step: without step few move by 2."""
AT_ONCE: Final = 2
"""Fits that are made at the same time."""
STRETCHES: Final = 400
"""Of the course of a run."""
PROPORTIONAL: Final = ("gain", "timebase")
"""Parts of an energy's budget that scale every share of it; the others act on the whole."""


def attribute(work: Work, seed: int = 1) -> Attribution:
    """Shares the energy above idle of one run out, as `attribute_runs` does."""
    (found,) = attribute_runs([work], seed)
    return found


def attribute_runs(works: Sequence[Work], seed: int = 1) -> list[Attribution]:
    """Shares the energy above idle of each run out by what all runs together tell of the parts' powers.

    A part is told in all runs or in none.

    Args:
        works: repeats of the same work on the same board, one or more.
        seed: of the bootstrap.
    """
    runs = [RunWindows.of(work, length_ns) for work, length_ns in zip(works, _window_ns(works), strict=True)]
    ends = np.cumsum([0, *(len(each.windows) for each in runs)]).tolist()
    own = [slice(first, end) for first, end in itertools.pairwise(ends)]
    above_j = np.concatenate([each.above_j for each in runs])
    sound = np.concatenate([each.windows.sound for each in runs])
    without = PartColumns.joined([each.columns for each in runs])
    media = _media(works, runs, without, above_j)
    columns = without.with_medium(media.best)
    matrix = columns.matrix * sound[:, None]

    def energies_of(other: PartColumns) -> Float64Array:
        """Energies in the order of `columns`, shape (1 + runs, q); 0 for parts that the others lack."""
        other_matrix = other.matrix * sound[:, None]
        found_j = part_energies_j(other_matrix, above_j, other.group, other.sets, other.parts, own)
        by_name = dict(zip(other.names, found_j.T, strict=True))
        return np.stack([by_name.get(name, np.zeros(len(found_j))) for name in columns.names], axis=1)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        first = pool.submit(fits, matrix, above_j, columns.group, columns.sets, columns.parts, own, seed)
        rivals_j = list(pool.map(energies_of, [without.with_medium(each) for each in media.rivals]))
        seen_j = _seen_j(runs, media.best, energies_of)
        found = first.result()
    whole, *found = [
        _split(_with_rivals(each, media, [rival[at] for rival in rivals_j]), columns, media.best, windows)
        for at, (each, windows) in enumerate(zip(found, together(len(above_j), own), strict=True))
    ]
    marginals = [work.marginal() for work in works]
    budget = _Budget(marginals, float(above_j.sum()))
    moved_j = np.zeros(len(columns.names)) if seen_j is None else np.abs(seen_j[0] - whole.energy_j)
    reasons = _reasons(works, columns, matrix, whole, moved_j > MOVED_U * budget.standard_u_j(whole))
    return [
        Attribution(
            {name: shares[name] for name in columns.of_kind},
            shares[FOREGROUND],
            {name: shares[name] for name in columns.of_activity},
            Share(marginal.energy.value, marginal.budget.standard_u),
            len(run.windows),
            float(np.mean(run.windows.duration_s)),
            media.best.tail_length_s,
            _course(columns, matrix[windows], fitted, run),
        )
        for run, marginal, fitted, windows in zip(runs, marginals, found, own, strict=True)
        for shares in [_shares(columns.names, fitted, reasons, budget)]
    ]


def _window_ns(works: Sequence[Work]) -> list[int]:
    """How long the windows of each run are made."""
    span_ns = sum(work.end_board_ns - work.start_board_ns for work in works)
    latencies_ns = [
        float(np.median(narrow(work.operations.duration_ns))) if len(work.operations) else 0.0
        for work in works
    ]
    return [
        window_ns(work.cells.period_ns, latency_ns, span_ns)
        for work, latency_ns in zip(works, latencies_ns, strict=True)
    ]


def _course(columns: PartColumns, matrix: Float64Array, found: Fit, run: RunWindows) -> EnergyCourse:
    """Energies of each part in a few hundred stretches of time."""
    starts = np.unique(np.linspace(0, len(run.windows), STRETCHES, endpoint=False).astype(np.int64))
    names = [*columns.of_kind, *columns.of_activity]
    parts = columns.parts[: len(names)] * found.coefficients
    drawn = {name: np.add.reduceat(matrix @ own, starts) for name, own in zip(names, parts, strict=True)}
    edge_ns = run.windows.edge_board_ns
    return EnergyCourse(np.append(edge_ns[starts], edge_ns[-1]), drawn, np.add.reduceat(run.above_j, starts))


def _with_rivals(found: Fit, media: MediumModels, rivals_j: Sequence[Float64Array]) -> Fit:
    """The fit of the best model of the medium, with how far its rivals disagree, one assumption after the other."""
    left = iter(rivals_j)
    alike, placed, held = (list(islice(left, len(each))) for each in (media.alike, media.placed, media.held))
    return found.with_spread(alike).with_bounds(placed).with_bounds(held)


def _split(found: Fit, columns: PartColumns, medium: MediumColumns, windows: slice) -> Fit:
    """The fit, what may be write-back's or the tail's shared out in the middle of what can be."""
    if TAIL not in columns.of_activity or WRITE_BACK not in columns.of_activity:
        return found
    tail, write_back = columns.names.index(TAIL), columns.names.index(WRITE_BACK)
    tail_w = float(found.coefficients[columns.parts[tail] > 0].sum())
    least_s, most_s = medium.also_s[:, windows].sum(axis=1).tolist()
    return found.moved(write_back, tail, tail_w * least_s, tail_w * most_s)


def _media(
    works: Sequence[Work], runs: Sequence[RunWindows], columns: PartColumns, above_j: Float64Array
) -> MediumModels:
    """What the medium may have done; nothing where its counters are not known."""
    known = [
        MediumRun.of(work.counters, run.edge_ns, writing(work.activities))
        for work, run in zip(works, runs, strict=True)
        if work.counters
    ]
    if len(known) < len(works):
        return MediumModels(MediumColumns.none(above_j.size))
    far, free = columns.sets.far, columns.sets.free
    likelihood = Likelihood(columns.matrix[:, far], free[far], above_j, columns.group)
    return medium_models(known, likelihood.unlikely)


def _seen_j(
    runs: Sequence[RunWindows],
    medium: MediumColumns,
    energies_of: Callable[[PartColumns], Float64Array],
) -> Float64Array | None:
    """The parts' energies where operations count as the meter saw them; None where it saw all."""
    seen = [each.seen for each in runs if each.seen]
    return energies_of(PartColumns.joined(seen).with_medium(medium)) if len(seen) == len(runs) else None


def _reasons(
    works: Sequence[Work],
    columns: PartColumns,
    matrix: Float64Array,
    found: Fit,
    in_step: BoolArray,
) -> list[str]:
    """Why each part is not told; an empty line where it is.

    Args:
        in_step: the part is another one where operations count as the meter saw them, shape (q,).
    """
    reasons = verdicts(
        columns.names,
        len(columns.of_kind),
        columns.parts,
        matrix,
        found,
        float(columns.group.duration_s.sum()),
    )
    short = too_short(
        Intervals.joined([work.activities for work in works]),
        max(work.cells.period_ns for work in works),
    )
    return [
        short.get(name) or reason or (IN_STEP if steps else "")
        for name, reason, steps in zip(columns.names, reasons, in_step.tolist(), strict=True)
    ]


class _Budget:
    """What else than the windows makes the energy of a part uncertain: the energies that are stated of the runs."""

    def __init__(self, marginals: Sequence[MarginalEnergy], windows_j: float) -> None:
        """Takes the stated energies above idle, and what all windows add up to."""
        stated_j = math.fsum(each.energy.value for each in marginals)
        self.stated = stated_j / windows_j if windows_j else 1.0
        """What the windows' energies are multiplied by to be the stated ones."""
        parts = [each.budget.parts for each in marginals]
        of_whole = [(u for name, u in each.items() if name not in PROPORTIONAL) for each in parts]
        self._whole_u_j = math.fsum(math.hypot(*each) for each in of_whole)
        scaling_j = math.fsum(math.hypot(*(each[name] for name in PROPORTIONAL)) for each in parts)
        self._scaling = scaling_j / max(abs(stated_j), 1e-300)

    def standard_u_j(self, found: Fit) -> Float64Array:
        """Scatter of the windows, the share in what is wrong of the whole, and what scales every energy, shape (q,)."""
        whole_u_j = np.hypot(found.shift_per_j * self._whole_u_j, self._scaling * found.energy_j)
        return np.hypot(found.standard_u_j, whole_u_j)


def _shares(names: Sequence[str], found: Fit, reasons: Sequence[str], budget: _Budget) -> dict[str, Share]:
    """What each part drew, scaled from the windows' sum to the energy that is stated of the whole."""
    stated_j, u_j = (found.energy_j * budget.stated).tolist(), budget.standard_u_j(found).tolist()
    return {name: Share(*each) for name, *each in zip(names, stated_j, u_j, reasons, strict=True)}
