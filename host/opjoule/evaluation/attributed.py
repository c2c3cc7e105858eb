"""Runs the attribution on a record's repeats, and computes its figures by kind of operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import numpy as np
import pyarrow as pa

from opjoule.attribution.activities import background
from opjoule.attribution.attribute import attribute_runs
from opjoule.attribution.columns import TAIL, WRITE_BACK
from opjoule.attribution.counters import Counters
from opjoule.attribution.shares import Attribution, Share
from opjoule.attribution.storage import StorageTrace
from opjoule.attribution.work import Work
from opjoule.databases.registry import background_threads
from opjoule.energy.baseline import MarginalEnergy
from opjoule.evaluation.quantities.attribution import READS, share_figure
from opjoule.evaluation.quantities.figures import Figure, over_repeats
from opjoule.evaluation.quantities.repeat import NO_IDLE, Repeat, RepeatEnergy, SystemSamples
from opjoule.evaluation.repeat_energy import AlignedTrace, repeat_idle
from opjoule.operations import schemas
from opjoule.operations.operation_table import OperationTable
from opjoule.record.phases import Cycle, Role
from opjoule.record.result import WAITED
from opjoule.units import Measured, Missing, exact

SHORTEST_S: Final = 0.2
"""Shortest run [s] for which windows can be compared; it must also contain enough samples."""
SAMPLES_MIN: Final = 160
WAITED_MIN: Final = 0.1
"""Fraction of the run from which the waiting of operations is worth a line."""
BY_BYTES: Final = (
    "divided among the kinds that write, in proportion to their bytes: a rule, not a measurement"
)


@dataclass(frozen=True)
class WorkedRun:
    """Input of the attribution from one repeat."""

    cycle: Cycle
    energy: Callable[[], RepeatEnergy]
    """Function that gives the energies of the repeat, possibly computed meanwhile."""
    operations: OperationTable
    samples: SystemSamples | Missing
    medium: Callable[[], RepeatEnergy] | None = None
    """Function that gives the energies from the sensor in the medium's supply; None without such a sensor."""


@dataclass(frozen=True)
class MediumTrace:
    """The sensor in the medium's own supply."""

    aligned: AlignedTrace
    of_board: bool
    """Whether the medium draws from the board's supply, so that its energy is part of the board's."""


def attributed(
    aligned: AlignedTrace,
    runs: Sequence[WorkedRun],
    events: pa.Table,
    database: str,
    medium: MediumTrace | None = None,
) -> list[Attribution | Missing]:
    """Attribution of each repeat's energy, fitted to all repeats together.

    Missing if idle power or the operations are unknown, or if the run is too short.
    Raises: WindowError, GapError: an idle phase is outside the trace, or mostly lost.
    """
    works = [_work(aligned, run, events, database, medium) for run in runs]
    known = [work for work in works if isinstance(work, Work)]
    try:
        attributions = iter(attribute_runs(known) if known else [])
    except np.linalg.LinAlgError as error:
        return [Missing(f"the regression has no solution: {error}", "J")] * len(runs)
    return [work if isinstance(work, Missing) else next(attributions) for work in works]


def _work(
    aligned: AlignedTrace, run: WorkedRun, events: pa.Table, database: str, medium: MediumTrace | None
) -> Work | Missing:
    cycle = run.cycle
    idle = repeat_idle(aligned, cycle)
    if idle is None:
        return Missing(NO_IDLE, "J")
    if not len(run.operations):
        return Missing("the run has no recorded operation", "J")
    end = cycle.drain or cycle.work
    period_s, run_s = aligned.cells.period_ns * 1e-9, cycle.work.duration_s
    if run_s < max(SHORTEST_S, SAMPLES_MIN * period_s):
        why = f"the run lasted {run_s:.2g} s, and the meter samples every {period_s:.2g} s"
        return Missing(f"too few windows: {why}", "J")
    start_ns, end_ns = cycle.work.start_board_ns, end.end_board_ns
    stamps = events["board_ns"].to_numpy()
    return Work(
        aligned.cells,
        aligned.board_to_meter,
        start_ns,
        cycle.work.end_board_ns,
        end_ns,
        idle,
        lambda: _marginal(run.energy()),
        run.operations,
        background(events.filter(pa.array((stamps >= start_ns) & (stamps < end_ns)))),
        background_threads(database) == 1,
        _counters(run.samples),
        aligned.sensor.seen_fraction,
        _storage(medium, run) if medium else None,
    )


def _storage(medium: MediumTrace, run: WorkedRun) -> StorageTrace | None:
    """The trace of the medium's sensor; None if its idle power is unknown."""
    idle = repeat_idle(medium.aligned, run.cycle)
    if idle is None or run.medium is None:
        return None
    aligned, energy = medium.aligned, run.medium
    of_trace = aligned.cells, aligned.board_to_meter, idle
    return StorageTrace(*of_trace, lambda: _marginal(energy()), medium.of_board)


def _marginal(energy: RepeatEnergy) -> MarginalEnergy:
    assert energy.marginal  # idle power is known
    return energy.marginal


def _counters(samples: SystemSamples | Missing) -> Counters | None:
    if isinstance(samples, Missing):
        return None
    table = samples.table.slice(max(samples.first - 1, 0))
    names = ("device_written_bytes", "device_read_bytes", "process_cpu_s")
    columns = (table[name].to_numpy().astype(np.float64) for name in names)
    return Counters(table["board_ns"].to_numpy().astype(np.int64), *columns)


def by_operation(repeats: Sequence[Repeat], blocks: Repeat | None) -> dict[str, Any]:
    """Counts and energies by kind, over all repeats, or from `blocks` if that gives the narrower interval."""
    counts = OperationTable.concatenate([repeat.operations for repeat in repeats]).counts()
    entries = {}
    for name, count in counts.items():
        energy = over_repeats([_foreground(repeat, name) for repeat in repeats])
        in_blocks = over_repeats([_foreground(blocks, name)]) if blocks else energy
        from_blocks = isinstance(energy, Missing) and in_blocks is not energy
        if isinstance(in_blocks, Measured) and isinstance(energy, Measured):
            from_blocks = in_blocks.relative_u < energy.relative_u
        energy = in_blocks if from_blocks else energy
        later = over_repeats([_background(repeat, name) for repeat in repeats])
        entries[name] = {
            "count": exact(count / len(repeats), "1"),
            "energy_per_operation_j": energy,
            "background_energy_per_operation_j": later,
            "identifiable": not isinstance(energy, Missing),
            "measured_in": (Role.BLOCKS if from_blocks else Role.WORK).value,
        }
    return entries


def waiting_warnings(repeats: Sequence[Repeat], slower: str) -> list[str]:
    """One line if operations waited for a considerable part of the run; `slower`: option for a lower rate."""
    known = [repeat.attribution for repeat in repeats if not isinstance(repeat.attribution, Missing)]
    waited = fmean(attribution.waited for attribution in known) if known else 0.0
    if waited < WAITED_MIN:
        return []
    advice = f". At a lower rate ({slower}) they wait less" if slower else ""
    return [
        f"{WAITED} about {100 * waited:.0f} % of the run: the engine blocked them or slowed them down. The "
        f"energy of the run contains the idle power of that time, and may depend on the medium{advice}"
    ]


def _foreground(repeat: Repeat, kind: str) -> Figure | Missing:
    if isinstance(repeat.attribution, Missing):
        return repeat.attribution
    share, count = repeat.attribution.operations.get(kind), repeat.operations.counts().get(kind, 0)
    if share is None or not count:
        return Missing(f"no {kind} in this repeat", "J")
    figure = share_figure(share)
    return figure if isinstance(figure, Missing) else figure.scale(1.0 / count)


def _background(repeat: Repeat, kind: str) -> Figure | Missing:
    """Later energy caused by one operation of a kind, in proportion to the bytes it writes [J]."""
    if isinstance(repeat.attribution, Missing):
        return repeat.attribution
    counts = repeat.operations.counts()
    if kind in READS or not counts.get(kind):
        return Figure(0.0, "J", 0.0) if counts.get(kind) else Missing(f"no {kind} in this repeat", "J")
    writing = [name for name in counts if name not in READS]
    whole = _later(repeat.attribution)
    if isinstance(whole, Missing):
        return whole
    moved = repeat.operations.bytes_by_kind()
    sizes = {name: float(moved[name]) for name in writing}
    if not any(sizes.values()):
        sizes = {name: float(counts[name]) for name in writing}
    energy = whole.scale(sizes[kind] / sum(sizes.values()) / counts[kind])
    return energy if len(writing) == 1 else Figure(energy.value, "J", None, BY_BYTES)


def _later(attribution: Attribution) -> Figure | Missing:
    """Energy of all background work [J]."""
    parts: dict[str, Share] = dict(attribution.activities)
    if attribution.alone:  # a sensor's energy of the medium is more certain than the tail's share of it
        parts = {name: share for name, share in parts.items() if name not in (WRITE_BACK, TAIL)}
        parts["the medium"] = attribution.alone
    if names := [name for name, share in parts.items() if share.unidentified]:
        return Missing(f"{' and '.join(names)} cannot be separated from the rest", "J")
    whole = Share.sum_of(parts.values())
    return Figure(whole.energy_j, "J", whole.standard_u_j)


def course_table(repeats: Sequence[Repeat]) -> pa.Table:
    """attribution.parquet: each part's energy above idle over time."""
    tables = [schemas.ATTRIBUTION.empty_table()]
    for repeat in repeats:
        if isinstance(repeat.attribution, Missing):
            continue
        course = repeat.attribution.course
        for name, energy_j in {**course.energy_j, "measured": course.measured_j}.items():
            columns = [
                pa.array(np.full(energy_j.size, repeat.number), pa.int32()),
                pa.array(course.edge_board_ns[:-1]),
                pa.array(course.edge_board_ns[1:]),
                pa.array([name] * energy_j.size),
                pa.array(energy_j),
            ]
            tables.append(pa.Table.from_arrays(columns, schema=schemas.ATTRIBUTION))
    return pa.concat_tables(tables)
