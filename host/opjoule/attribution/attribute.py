"""Energy of one run and its settle above idle, shared out among kinds of operation and activities.

Source: docs/method/attribution.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np

from opjoule.attribution.activities import Intervals, background_s, changes_ns, writing
from opjoule.attribution.columns import FOREGROUND, TAIL, WRITE_BACK, PartColumns
from opjoule.attribution.counters import Counters
from opjoule.attribution.delay import delay_ns
from opjoule.attribution.fit import Fit, fit, part_energies_j
from opjoule.attribution.likelihood import Likelihood
from opjoule.attribution.medium import MediumColumns, MediumModels, medium_models
from opjoule.attribution.near_and_far import groups, stretch_edges_ns
from opjoule.attribution.overlap import SeenClock, Waits, operations_in, operations_seen_in
from opjoule.attribution.verdict import IN_STEP, too_short, verdicts
from opjoule.attribution.windows import Windows, window_ns
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import IdlePower, MarginalEnergy
from opjoule.energy.cells import Cells
from opjoule.operations.latency import narrow
from opjoule.operations.operation_table import OperationTable
from opjoule.trace.power_trace import Float64Array, Int64Array

CHANGE_PERIODS: Final = 2
"""Sample periods that background work lasts at least to have windows of its own."""
SEEN_MIN: Final = 0.25
"""Part of the time that a meter sees at least for stamps to say which part of an operation that is."""
MOVED_U: Final = 2.5
"""Standard uncertainties by which a part moves at least where it is in step: without step few move by 2."""
AT_ONCE: Final = 2
"""Fits that are made at the same time."""
STRETCHES: Final = 400
"""Of the course of a run."""
CHANGES_MAX: Final = 1 << 14
PROPORTIONAL: Final = ("gain", "timebase")
"""Parts of an energy's budget that scale every share of it; the others act on the whole."""


@dataclass(frozen=True)
class Work:
    """What is known of one run and its settle."""

    cells: Cells
    board_to_meter: ClockMap
    start_board_ns: int
    """Of the run."""
    work_end_board_ns: int
    """Of the run."""
    end_board_ns: int
    """Of settle, or of the run where none follows."""
    idle: IdlePower
    marginal: Callable[[], MarginalEnergy]
    """Of run and settle, idle power taken away throughout; asked for when the windows are shared out, so that it may be
    computed beside that."""
    operations: OperationTable
    """Of the run, sorted by start."""
    activities: Mapping[str, Intervals] = field(default_factory=dict)
    one_background_thread: bool = False
    counters: Counters | None = None
    seen_fraction: float = 1.0
    """Part of each sample period in which the meter converts the current."""


@dataclass(frozen=True)
class Share:
    """What one part drew above idle."""

    energy_j: float
    standard_u_j: float
    """Every source."""
    unidentified: str = ""
    """Why the data cannot tell it; empty if they can."""


@dataclass(frozen=True)
class EnergyCourse:
    """Which part drew how much when."""

    edge_board_ns: Int64Array
    """Edges of stretches, shape (m + 1,)."""
    energy_j: Mapping[str, Float64Array]
    """Above idle, by part, as fitted, shape (m,) each."""
    measured_j: Float64Array
    """Above idle, as measured, shape (m,)."""


@dataclass(frozen=True)
class Attribution:
    """The energy above idle by part. Together they are the whole, those that cannot be told apart as one."""

    operations: Mapping[str, Share]
    """By kind: what their execution drew."""
    foreground: Share
    """All kinds together, which may be told where each kind cannot."""
    activities: Mapping[str, Share]
    whole: Share
    """Energy above idle of run and settle."""
    windows: int
    window_s: float
    tail_length_s: float | None
    course: EnergyCourse

    @property
    def unseparated(self) -> Share:
        """The sum of the parts that cannot be told apart; 0 where all can."""
        parts = {FOREGROUND: self.foreground} if not self.foreground.unidentified else dict(self.operations)
        parts |= self.activities
        missing = [name for name, share in parts.items() if share.unidentified]
        if not missing:
            return Share(0.0, 0.0)
        told = [share for share in parts.values() if not share.unidentified]
        u_j = math.hypot(self.whole.standard_u_j, *(share.standard_u_j for share in told))
        told_j = math.fsum(share.energy_j for share in told)
        return Share(self.whole.energy_j - told_j, u_j, ", ".join(missing))

    @property
    def parts(self) -> dict[str, Share]:
        """Kinds of operation, all kinds together, and activities."""
        return {**self.operations, FOREGROUND: self.foreground, **self.activities}

    def judged(self, reasons: Mapping[str, str]) -> Attribution:
        """The same with other reasons why some of its parts are not told; an empty reason: it is."""

        def anew(name: str, share: Share) -> Share:
            return replace(share, unidentified=reasons.get(name, share.unidentified))

        return replace(
            self,
            operations={name: anew(name, share) for name, share in self.operations.items()},
            foreground=anew(FOREGROUND, self.foreground),
            activities={name: anew(name, share) for name, share in self.activities.items()},
        )

    @property
    def untold(self) -> dict[str, str]:
        """The parts that are not told, and why."""
        return {name: share.unidentified for name, share in self.parts.items() if share.unidentified}


def attribute(work: Work, seed: int = 1) -> Attribution:
    """Shares the energy above idle out.

    Args:
        seed: of the bootstrap.
    """
    latency_ns = float(np.median(narrow(work.operations.duration_ns))) if len(work.operations) else 0.0
    span_ns = work.end_board_ns - work.start_board_ns
    length_ns = window_ns(work.cells.period_ns, latency_ns, span_ns)
    stretch_ns = stretch_edges_ns(
        work.start_board_ns,
        work.end_board_ns,
        length_ns,
        work.counters.board_ns if work.counters else np.zeros(0, np.int64),
    )
    changes = changes_ns(work.activities, CHANGE_PERIODS * work.cells.period_ns, CHANGES_MAX)
    windows = Windows.cut(
        work.cells,
        work.board_to_meter,
        work.start_board_ns,
        work.end_board_ns,
        length_ns,
        np.concatenate([changes, stretch_ns, [work.work_end_board_ns]]),
    )
    above_j = np.where(windows.sound, windows.energy_j - work.idle.power.value * windows.duration_s, 0.0)
    without = _without_medium(work, windows, above_j, stretch_ns)
    media = _media(work, without, above_j)
    columns = without.columns.with_medium(media.best)
    seen = without.seen.with_medium(media.best) if without.seen else None

    def energies_of(own: PartColumns) -> Float64Array:
        return _energies_j(own, windows, above_j, columns.names)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        first = pool.submit(_fitted, columns, windows, above_j, seed)
        rivals_j = list(pool.map(energies_of, [without.columns.with_medium(each) for each in media.rivals]))
        seen_j = energies_of(seen) if seen else None
        found = first.result()
    found = _split(_with_rivals(found, media, rivals_j), columns, media.best)
    matrix = columns.matrix * windows.sound[:, None]
    moved_j = np.zeros(len(columns.names)) if seen_j is None else np.abs(seen_j - found.energy_j)
    course = _course(columns, matrix, found, windows, above_j)
    marginal = work.marginal()
    shares = _shares(work, marginal, columns, matrix, found, float(above_j.sum()), moved_j)
    return Attribution(
        {name: shares[name] for name in columns.of_kind},
        shares[FOREGROUND],
        {name: shares[name] for name in columns.of_activity},
        Share(marginal.energy.value, marginal.budget.standard_u),
        len(windows),
        float(np.mean(windows.duration_s)),
        media.best.tail_length_s,
        course,
    )


def _course(
    columns: PartColumns, matrix: Float64Array, found: Fit, windows: Windows, above_j: Float64Array
) -> EnergyCourse:
    """Energies of each part in a few hundred stretches of time."""
    starts = np.unique(np.linspace(0, len(windows), STRETCHES, endpoint=False).astype(np.int64))
    names = [*columns.of_kind, *columns.of_activity]
    parts = columns.parts[: len(names)] * found.coefficients
    drawn = {name: np.add.reduceat(matrix @ own, starts) for name, own in zip(names, parts, strict=True)}
    return EnergyCourse(
        np.append(windows.edge_board_ns[starts], windows.edge_board_ns[-1]),
        drawn,
        np.add.reduceat(above_j, starts),
    )


def _fitted(columns: PartColumns, windows: Windows, above_j: Float64Array, seed: int) -> Fit:
    matrix = columns.matrix * windows.sound[:, None]
    return fit(matrix, above_j, columns.group, columns.sets, columns.parts, seed)


def _energies_j(
    columns: PartColumns, windows: Windows, above_j: Float64Array, names: Sequence[str]
) -> Float64Array:
    """Energies in the order of another fit's parts; 0 for those that this one lacks."""
    matrix = columns.matrix * windows.sound[:, None]
    found_j = part_energies_j(matrix, above_j, columns.group, columns.sets, columns.parts)
    by_name = dict(zip(columns.names, found_j.tolist(), strict=True))
    return np.array([by_name.get(name, 0.0) for name in names])


def _with_rivals(found: Fit, media: MediumModels, rivals_j: Sequence[Float64Array]) -> Fit:
    """The fit of the best model of the medium, with how far its rivals disagree, one assumption after the other."""
    left = iter(rivals_j)
    alike, placed, held = (list(islice(left, len(each))) for each in (media.alike, media.placed, media.held))
    return found.with_spread(alike).with_bounds(placed).with_bounds(held)


def _split(found: Fit, columns: PartColumns, medium: MediumColumns) -> Fit:
    """The fit, what may be write-back's or the tail's shared out in the middle of what can be."""
    if TAIL not in columns.of_activity or WRITE_BACK not in columns.of_activity:
        return found
    tail, write_back = columns.names.index(TAIL), columns.names.index(WRITE_BACK)
    tail_w = float(found.coefficients[columns.parts[tail] > 0].sum())
    least_s, most_s = medium.also_s
    return found.moved(write_back, tail, tail_w * least_s, tail_w * most_s)


@dataclass(frozen=True)
class _WithoutMedium:
    """The columns but for the medium's, and the edges that they are for."""

    columns: PartColumns
    edge_ns: Int64Array
    seen: PartColumns | None
    """Each operation counted as the meter saw of it; None where it sees all or less than SEEN_MIN."""


def _without_medium(
    work: Work, windows: Windows, above_j: Float64Array, stretch_ns: Int64Array
) -> _WithoutMedium:
    waits = Waits.of(work.operations)
    map_u_ns = work.board_to_meter.u_ns(work.start_board_ns)
    late_ns = delay_ns(windows.edge_board_ns, above_j, work.operations, waits, map_u_ns)
    edge_ns = windows.edge_board_ns - late_ns
    count, busy_s = operations_in(edge_ns, work.operations, waits)
    seconds = background_s(edge_ns, work.activities, one_thread=work.one_background_thread)
    middle_ns = (windows.edge_board_ns[1:] + windows.edge_board_ns[:-1]) // 2
    group = groups(
        seconds,
        windows.duration_s,
        windows.edge_board_ns[:-1] >= work.work_end_board_ns,
        np.searchsorted(stretch_ns, middle_ns),
    )
    kinds = {work.operations.kinds[at]: at for at in np.flatnonzero(count.any(axis=0)).tolist()}
    activities = {name: each for name, each in seconds.items() if each.any()}
    columns = PartColumns.of(kinds, count, busy_s, activities, group)
    if not SEEN_MIN <= work.seen_fraction < 1.0:
        return _WithoutMedium(columns, edge_ns, None)
    bound_ns = work.board_to_meter.inverse().to_target(work.cells.bounds_ns) - late_ns
    seen = operations_seen_in(edge_ns, work.operations, waits, SeenClock.of(bound_ns, work.seen_fraction))
    return _WithoutMedium(columns, edge_ns, PartColumns.of(kinds, *seen, activities, group))


def _media(work: Work, without: _WithoutMedium, above_j: Float64Array) -> MediumModels:
    """What the medium may have done; nothing where its counters are not known."""
    if work.counters is None:
        return MediumModels(MediumColumns.none(without.edge_ns.size - 1))
    columns = without.columns
    far, free = columns.sets.far, columns.sets.free
    likelihood = Likelihood(columns.matrix[:, far], free[far], above_j, columns.group)
    return medium_models(work.counters, without.edge_ns, likelihood.unlikely, writing(work.activities))


def _shares(
    work: Work,
    marginal: MarginalEnergy,
    columns: PartColumns,
    matrix: Float64Array,
    found: Fit,
    whole_j: float,
    moved_j: Float64Array,
) -> dict[str, Share]:
    """What each part drew, scaled from the windows' sum to the energy that is stated of the whole.

    Args:
        moved_j: by how much each part's energy is another one where operations count as the meter saw them, shape (q,).
    """
    stated = marginal.energy.value / whole_j if whole_j else 1.0
    reasons = verdicts(
        columns.names,
        len(columns.of_kind),
        columns.parts,
        matrix,
        found,
        float(columns.group.duration_s.sum()),
    )
    sampled_s = work.counters.sampled_s if work.counters and WRITE_BACK in columns.of_activity else 0.0
    short = too_short(work.activities, work.cells.period_ns, sampled_s)
    shares = {}
    for at, name in enumerate(columns.names):
        u_j = _standard_u_j(marginal, found.energy_j[at], found.standard_u_j[at], found.shift_per_j[at])
        in_step = IN_STEP if moved_j[at] > MOVED_U * u_j else ""
        shares[name] = Share(
            float(found.energy_j[at] * stated), u_j, short.get(name) or reasons[at] or in_step
        )
    return shares


def _standard_u_j(marginal: MarginalEnergy, energy_j: float, fitted_u_j: float, shift_per_j: float) -> float:
    """Scatter of the windows, the share in what is wrong of the whole, and what scales every energy."""
    parts = marginal.budget.parts
    whole_u_j = math.hypot(*(u for name, u in parts.items() if name not in PROPORTIONAL))
    scaling = math.hypot(*(parts[name] for name in PROPORTIONAL)) / max(abs(marginal.energy.value), 1e-300)
    return math.hypot(fitted_u_j, shift_per_j * whole_u_j, scaling * energy_j)
