"""Runs the attribution on a record's repeats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np
import pyarrow as pa

from opjoule.attribution.activities import background
from opjoule.attribution.attribute import attribute_runs
from opjoule.attribution.attributed_run import Attribution, Work
from opjoule.attribution.counters import Counters
from opjoule.attribution.overlap import overlap_s
from opjoule.attribution.sensed_medium import MediumTrace
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Cause, Quantity, missing
from opjoule.boards.databases import background_threads
from opjoule.energy.baseline import MarginalEnergy
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.tables import ATTRIBUTION
from opjoule.runs.evaluation.alignment import AlignedTrace
from opjoule.runs.evaluation.quantities.definition import Repeat, RepeatEnergy, SystemSamples
from opjoule.runs.evaluation.quantities.operations import READS
from opjoule.runs.evaluation.repeat_energy import repeat_idle
from opjoule.runs.record.phases import Cycle, Phase
from opjoule.runs.record.run import LoaderSummary

SHORTEST_S: Final = 0.2
"""Shortest run [s] for which windows can be compared; it must also contain enough samples."""
SAMPLES_MIN: Final = 160
WAITED_MIN: Final = 0.1
"""Fraction of the run from which the waiting of operations is worth a line."""


@dataclass(frozen=True)
class WorkedRun:
    """Input of the attribution from one repeat."""

    cycle: Cycle
    energy: Callable[[], RepeatEnergy]
    """Function that gives the energies of the repeat, possibly computed meanwhile."""
    operations: OperationTable
    samples: SystemSamples | Quantity
    medium: Callable[[], RepeatEnergy] | None = None
    """Function that gives the energies from the sensor in the medium's supply; None without such a sensor."""


@dataclass(frozen=True)
class AlignedMedium:
    """The sensor in the medium's own supply."""

    aligned: AlignedTrace
    of_board: bool
    """Whether the medium draws from the board's supply, so that its energy is part of the board's."""


def attributed(
    aligned: AlignedTrace,
    runs: Sequence[WorkedRun],
    events: pa.Table,
    database: str,
    medium: AlignedMedium | None = None,
) -> list[Attribution | Quantity]:
    """Attribution of each repeat's energy, fitted to all repeats together.

    Missing if idle power or the operations are unknown, or if the run is too short.
    Raises: WindowError, GapError: an idle phase is outside the trace, or mostly lost.
    """
    works = [_work(aligned, run, events, database, medium) for run in runs]
    known = [work for work in works if isinstance(work, Work)]
    try:
        attributions = iter(attribute_runs(known) if known else [])
    except np.linalg.LinAlgError as error:
        return [missing(f"the regression has no solution: {error}", "J")] * len(runs)
    return [work if isinstance(work, Quantity) else next(attributions) for work in works]


def _work(
    aligned: AlignedTrace, run: WorkedRun, events: pa.Table, database: str, medium: AlignedMedium | None
) -> Work | Quantity:
    cycle = run.cycle
    idle = repeat_idle(aligned, cycle)
    if idle is None:
        return missing(Cause.NO_IDLE, "J")
    if not len(run.operations):
        return missing("the run has no recorded operation", "J")
    end = cycle.drain or cycle.work
    period_s, run_s = aligned.cells.period_ns * 1e-9, cycle.work.duration_s
    if run_s < max(SHORTEST_S, SAMPLES_MIN * period_s):
        why = f"the run lasted {run_s:.2g} s, and the meter samples every {period_s:.2g} s"
        return missing(why, "J", Cause.FEW_WINDOWS)
    start_ns, end_ns = cycle.work.start_board_ns, end.end_board_ns
    return Work(
        aligned.cells,
        aligned.board_to_meter,
        start_ns,
        cycle.work.end_board_ns,
        end_ns,
        idle,
        lambda: _marginal(run.energy()),
        run.operations,
        background(events, start_ns, end_ns),
        background_threads(database) == 1,
        _counters(run.samples),
        aligned.sensor.seen_fraction,
        _sensed(medium, run) if medium else None,
    )


def _sensed(medium: AlignedMedium, run: WorkedRun) -> MediumTrace | None:
    """The trace of the medium's sensor; None if its idle power is unknown."""
    idle = repeat_idle(medium.aligned, run.cycle)
    if idle is None or run.medium is None:
        return None
    aligned, energy = medium.aligned, run.medium
    of_trace = aligned.cells, aligned.board_to_meter, idle
    return MediumTrace(*of_trace, lambda: _marginal(energy()), medium.of_board)


def _marginal(energy: RepeatEnergy) -> MarginalEnergy:
    assert energy.marginal  # idle power is known
    return energy.marginal


def _counters(samples: SystemSamples | Quantity) -> Counters | None:
    if isinstance(samples, Quantity):
        return None
    table = samples.table.slice(max(samples.first - 1, 0))
    names = ("device_written_bytes", "device_read_bytes", "process_cpu_s")
    columns = (table[name].to_numpy().astype(np.float64) for name in names)
    return Counters(table["board_ns"].to_numpy().astype(np.int64), *columns)


def waiting_notices(repeats: Sequence[Repeat], slower: str) -> list[Notice]:
    """One notice if operations waited for a considerable part of the run; `slower`: option for a lower rate."""
    known = [repeat.attribution for repeat in repeats if not isinstance(repeat.attribution, Quantity)]
    waited = fmean(attribution.waited for attribution in known) if known else 0.0
    if waited < WAITED_MIN:
        return []
    advice = f". At a lower rate ({slower}) they wait less" if slower else ""
    line = (
        f"operations waited for about {100 * waited:.0f} % of the run: the engine blocked them or slowed them down. "
        f"The energy of the run contains the idle power of that time, and may depend on the medium{advice}"
    )
    return [Notice(NoticeKind.WAITED, line)]


def opening_notices(loader: Mapping[str, LoaderSummary], repeats: Iterable[int]) -> list[Notice]:
    """One notice if what opening the database began went on in a run; `loader`: phase -> the loader's summary."""
    summaries = {number: loader.get(f"run-{number}") for number in repeats}
    unsettled = [str(number) for number, summary in summaries.items() if summary and not summary.opening_settled]
    if not unsettled:
        return []
    line = (
        f"the work that opening the database began went on during the run of repeat {', '.join(unsettled)}, and its "
        "energy per operation includes it"
    )
    return [Notice(NoticeKind.OPENING, line, "a longer limit (-p settle.limit_s) lets it end before the run")]


def background_notices(runs: Sequence[Phase], repeats: Sequence[Repeat], events: pa.Table) -> list[Notice]:
    """One notice if the engine worked in the background of runs that only read, with the seconds of each activity."""
    reading = {repeat.number for repeat in repeats if _only_reads(repeat.operations)}
    spans_ns = [(run.start_board_ns, run.end_board_ns) for run in runs if run.repeat in reading]
    worked_s: defaultdict[str, float] = defaultdict(float)
    for span_ns in spans_ns:
        for name, intervals in background(events, *span_ns).items():
            merged = intervals.merged
            worked_s[name] += float(overlap_s(np.array(span_ns), merged.start_ns, merged.end_ns)[0])
    if not worked_s:
        return []
    of_s = sum(end_ns - start_ns for start_ns, end_ns in spans_ns) * 1e-9
    listed = ", ".join(f"{name} {seconds:.2g} s" for name, seconds in worked_s.items())
    line = (
        f"the engine worked in the background of {of_s:.3g} s of reads: {listed}. The energy per operation includes it"
    )
    return [Notice(NoticeKind.BACKGROUND, line)]


def _only_reads(operations: OperationTable) -> bool:
    """Whether a log has operations, and all of them read."""
    kinds = operations.counts()
    return bool(kinds) and all(kind in READS for kind in kinds)


def course_table(repeats: Sequence[Repeat]) -> pa.Table:
    """attribution.parquet: each part's energy above idle over time."""
    tables = [ATTRIBUTION.empty_table()]
    for repeat in repeats:
        if isinstance(repeat.attribution, Quantity):
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
            tables.append(pa.Table.from_arrays(columns, schema=ATTRIBUTION))
    return pa.concat_tables(tables)
