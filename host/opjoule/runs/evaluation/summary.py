"""All numbers of a run, for result.json (runs/record/result.py checks the shape)."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa

from opjoule.attribution.attributed_run import Attribution
from opjoule.base.errors import DataFault, RecordFault
from opjoule.base.notices import Grade, Notice, NoticeKind
from opjoule.base.units import Cause, Quantity, mean_shared, missing, unstated
from opjoule.energy.budget import Budget
from opjoule.energy.operations.board_files import COMPUTER, ComputerLoad, read_system
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.tables import ATTRIBUTION
from opjoule.energy.trace.parquet_file import write_parquet
from opjoule.energy.unseen_current import in_step_notices, near_range_notices
from opjoule.runs.evaluation.alignment import AlignedTrace, Alignment
from opjoule.runs.evaluation.all_told import MixedRun, by_operation, told_figures, write_costs
from opjoule.runs.evaluation.attributed import (
    AlignedMedium,
    WorkedRun,
    attributed,
    background_notices,
    course_table,
    opening_notices,
    waiting_notices,
)
from opjoule.runs.evaluation.faults import short_run_notices, trace_faults
from opjoule.runs.evaluation.quantities.common import COMMON, above_idle
from opjoule.runs.evaluation.quantities.definition import (
    Figures,
    MediumEnergy,
    Quantities,
    Repeat,
    RepeatEnergy,
    SystemSamples,
    by_repeat,
    mean_budget,
)
from opjoule.runs.evaluation.quantities.operations import operations as operations_of
from opjoule.runs.evaluation.quantities.operations import per_operation
from opjoule.runs.evaluation.quantities.phases import by_phase, phase_figures
from opjoule.runs.evaluation.repeat_energy import HARNESS, Harness, repeat_energy
from opjoule.runs.evaluation.stability import busy_notices, stability_notices
from opjoule.runs.evaluation.until import until_notices
from opjoule.runs.evaluation.wording import Wording, wording_of
from opjoule.runs.record.phases import MIX, Cycle, Phase, Role, worked_repeats
from opjoule.runs.record.result import job_results, stand_in
from opjoule.runs.record.run import Generator, Run
from opjoule.runs.record.run_record import RunRecord

HARNESS_ENERGY = "harness_energy_j"


@dataclass(frozen=True)
class AlignedRun:
    """A run with trace and operations on one clock: the input of result.json."""

    record: RunRecord
    phases: Sequence[Phase]
    """Phases of complete repeats, and of the controls."""
    aligned: AlignedTrace
    """Trace of the board's supply."""
    alignment: Alignment
    operations: OperationTable
    cores: int
    events: pa.Table
    medium: AlignedTrace | None = None
    """Trace of the sensor in the medium's own supply."""


def build_result(parts: AlignedRun) -> tuple[dict[str, Any], list[Notice]]:
    """All entries of result.json, nothing withheld yet, and the trace's faults. Raises: DataFault: no complete run."""
    record, phases, aligned = parts.record, parts.phases, parts.aligned
    numbers = worked_repeats(phases)
    if not numbers:
        raise DataFault("no repeat has a complete run: there is no result to give")
    repeats = repeats_of(parts, numbers)
    wording = wording_of(record.run)
    quantities = wording.quantities
    figures = [quantities.figures(repeat) for repeat in repeats]
    entries = quantities.over_repeats(figures)
    harness = {}
    if quantities.get(HARNESS_ENERGY):
        mean_operations = fmean(float(operations_of(repeat)) for repeat in repeats)
        control = Harness.of(aligned, phases, repeats[0].energy.idle)
        harness[HARNESS_ENERGY] = control if isinstance(control, Quantity) else control.energy_of(mean_operations)
    made = {**budgets([repeat.energy for repeat in repeats]), "headline_budget": headline_budget(repeats)}
    marked = _marked(record, aligned, repeats)
    costs = write_costs(repeats, mixed_runs(parts))
    told = told_figures(repeats, costs)
    common = shared_with_others(made, quantities, figures)
    common |= _shared_by_path(marked) | _shared_by_path(told)
    result = {
        "repeats": len(repeats),
        **entries,
        **made,
        **({"shared": common} if common else {}),
        "by_repeat": by_repeat([{**own, **all_told} for own, all_told in zip(figures, told, strict=True)]),
        **({"by_phase": by_phase([phase.name for phase in record.run.marked_phases], marked)} if any(marked) else {}),
        **harness,
        "alignment": parts.alignment.stated(),
        "timebase": repeats[0].energy.run.timebase.stated(),
        "by_operation": by_operation(repeats, costs),
        "notices": [*_notices(parts, wording, repeats, figures), *(costs.notices if costs else [])],
        **({"disturbed": disturbance} if (disturbance := record.run.found.device.disturbance) else {}),
        **({"server": server_usage(files)} if (files := record.raw_files("server-*.csv")) else {}),
        "generator": _generator(record.run),
    }
    write_parquet(record.path("attribution.parquet"), ATTRIBUTION, [course_table(repeats)])
    sensor = aligned.sensor
    return result, [fault for repeat in repeats for fault in trace_faults(repeat.number, repeat.energy, sensor)]


def _notices(
    parts: AlignedRun, wording: Wording, repeats: Sequence[Repeat], figures: Sequence[Figures]
) -> list[Notice]:
    """Everything to be read with the figures: what the measurement noted, and what this evaluation does."""
    record, phases, aligned, run = parts.record, parts.phases, parts.aligned, parts.record.run
    runs = [phase for phase in phases if phase.role is Role.WORK]
    operations = fmean(float(operations_of(repeat)) for repeat in repeats)
    rate_per_s = operations / fmean(repeat.run_s for repeat in repeats)
    made = [
        *(notice for notice in run.notices if notice.kind.grade is Grade.NOTE),
        *short_run_notices(
            runs, aligned.cells.period_ns, lambda times, run_s: wording.longer(run, times, run_s, operations)
        ),
        *busy_notices(_computer_load(record), runs),
        *stability_notices(wording.quantities.headline, repeats, figures),
        *until_notices(run.until_u),
        *waiting_notices(repeats, wording.slower(rate_per_s)),
        *opening_notices(run.loader, [repeat.number for repeat in repeats]),
        *background_notices(runs, repeats, parts.events),
        *_of_study(wording, record, aligned, phases),
    ]
    return list(dict.fromkeys(made))


def _computer_load(record: RunRecord) -> ComputerLoad | None:
    """Load of the computer behind a simulated board; None for a real one. A changed file is a fault of the record."""
    name = f"raw/{COMPUTER}"
    if not record.path(name).exists():
        return None
    try:
        return ComputerLoad.read(record.intact(name))
    except RecordFault as fault:
        record.add_notices(Notice(NoticeKind.FAULT, str(fault)))
        return None


def _of_study(wording: Wording, record: RunRecord, aligned: AlignedTrace, phases: Sequence[Phase]) -> list[Notice]:
    """Notices of the study, of substitutes, and of what the meter may not have seen of the current."""
    windows = [aligned.window(phase, phase) for phase in phases if phase.role is Role.WORK]
    spans = [(window.start_ns, window.end_ns) for window in windows]
    stand_ins: list[Notice] = []
    with suppress(RecordFault):  # of a killed job, whose file may be cut anywhere
        for software in job_results(record)[1]:
            if name := software.stand_in:
                stand_ins.append(stand_in(software.name, name))
    unseen = [
        *near_range_notices(aligned.cells, aligned.sensor, spans),
        *in_step_notices(aligned.cells, aligned.sensor, spans),
    ]
    return [*wording.notes(record.run), *stand_ins, *unseen]


def repeats_of(evidence: AlignedRun, numbers: Sequence[int]) -> list[Repeat]:
    """The repeats with these numbers; the attribution is fitted to all of them together."""
    aligned, phases = evidence.aligned, evidence.phases
    with ThreadPoolExecutor(1) as beside:
        computed = [beside.submit(repeat_energy, aligned, phases, number) for number in numbers]
        medium = _medium(evidence)
        of_medium = [
            beside.submit(repeat_energy, medium.aligned, phases, number) if medium else None for number in numbers
        ]
        try:
            runs = [_worked(evidence, *parts) for parts in zip(numbers, computed, of_medium, strict=True)]
            beside.submit(lambda: [run.operations.latency for run in runs])
            database = evidence.record.run.asked.db or ""
            attributions = attributed(aligned, runs, evidence.events, database, medium)
        finally:  # a window's faults are reported as faults of the run first
            energies = [future.result() for future in computed]
    return [_repeat(evidence, *parts) for parts in zip(numbers, runs, energies, attributions, strict=True)]


def mixed_runs(evidence: AlignedRun) -> list[MixedRun]:
    """The runs in other mixes; one that was mostly lost is left out."""
    aligned, phases, medium = evidence.aligned, evidence.phases, _medium(evidence)
    runs = []
    for number in worked_repeats(phases, Role.MIX):
        summary = evidence.record.run.loader.get(f"{MIX}-{number}")
        counts = {kind: of_kind.count for kind, of_kind in summary.by_kind.items()} if summary else {}
        with suppress(DataFault):
            energy = repeat_energy(aligned, phases, number)
            of_medium = repeat_energy(medium.aligned, phases, number) if medium else None
            further = MediumEnergy(of_medium.marginal, medium.of_board) if medium and of_medium else None
            runs.append(MixedRun(counts, energy, further))
    return runs


def _medium(evidence: AlignedRun) -> AlignedMedium | None:
    sensor = evidence.record.run.found.medium_sensor
    return AlignedMedium(evidence.medium, sensor.supply == "board") if sensor and evidence.medium else None


def _worked(
    evidence: AlignedRun, number: int, energy: Future[RepeatEnergy], medium: Future[RepeatEnergy] | None
) -> WorkedRun:
    cycle = Cycle.of(evidence.phases, number)
    if cycle is None:
        raise DataFault(f"repeat {number} has no complete run")
    run = cycle.work
    operations = evidence.operations.started_in(run.start_board_ns, run.end_board_ns)
    samples = _samples(evidence.record, cycle, evidence.cores)
    return WorkedRun(cycle, energy.result, operations, samples, medium.result if medium else None)


def _repeat(
    evidence: AlignedRun,
    number: int,
    worked: WorkedRun,
    energy: RepeatEnergy,
    attribution: Attribution | Quantity,
) -> Repeat:
    run, settle = worked.cycle.work, worked.cycle.drain
    count = float(len(worked.operations) or run.operations)
    harness = Harness.of(evidence.aligned, evidence.phases, energy.idle)
    control = evidence.record.run.loader.get(f"{HARNESS}-1")
    medium, energy_of_medium = _medium(evidence), None
    if medium and worked.medium:
        energy_of_medium = MediumEnergy(worked.medium().marginal, medium.of_board)
    return Repeat(
        number,
        energy,
        run.duration_s,
        settle.duration_s if settle else None,
        run.operations,
        worked.operations,
        worked.samples,
        attribution,
        harness.energy_of(count) if isinstance(harness, Harness) else harness,
        harness.core_w(control.cpu_s) if isinstance(harness, Harness) and control else None,
        energy_of_medium,
    )


def _marked(record: RunRecord, aligned: AlignedTrace, repeats: Sequence[Repeat]) -> list[Figures]:
    """Figures of each repeat's marked phases, by path."""
    by_repeat: list[Figures] = []
    for repeat in repeats:
        marked = [phase for phase in record.run.marked_phases if phase.repeat == repeat.number]
        by_repeat.append(phase_figures(aligned, marked, repeat.energy.idle, repeat.operations))
    return by_repeat


def _samples(record: RunRecord, cycle: Cycle, cores: int) -> SystemSamples | Quantity:
    """Samples of the board in one repeat; a changed file is a fault of the record."""
    try:
        samples = read_system(record.intact(f"raw/repeat-{cycle.work.repeat}.system.csv"))
        return SystemSamples.of_cycle(samples, cycle, cores)
    except RecordFault as fault:
        record.add_notices(Notice(NoticeKind.FAULT, str(fault)))
        return missing(str(fault))


def shared_with_others(
    budgets: Mapping[str, Any], quantities: Quantities, repeats: Sequence[Figures]
) -> dict[str, Mapping[str, float]]:
    """Contributions that other results of the same sensor or reference share, for each budget and each figure without
    a budget (k = 1, signed)."""
    shared_by_key = {
        key: budget.shared for key, budget in budgets.items() if isinstance(budget, Budget) and budget.shared
    }
    with_budget = {quantity.key for quantity in quantities if quantity.budget}
    without = [{path: of for path, of in figures.items() if path not in with_budget} for figures in repeats]
    return shared_by_key | _shared_by_path(without)


def _shared_by_path(repeats: Sequence[Figures]) -> dict[str, Mapping[str, float]]:
    """Contributions that other results share, for each figure that all repeats have (k = 1, signed)."""
    shared_by_path: dict[str, Mapping[str, float]] = {}
    for path in dict.fromkeys(path for figures in repeats for path in figures):
        known = [one for figures in repeats if (one := figures.get(path)) and one.value is not None]
        if len(known) == len(repeats) and (shared := mean_shared(known)):
            shared_by_path[path] = shared
    return shared_by_path


def budgets(repeats: Sequence[RepeatEnergy]) -> dict[str, Any]:
    """Budgets of energy_j and marginal_energy_j."""
    made: dict[str, Any] = {}
    for key, name in (("budget", "energy"), ("marginal_budget", "marginal")):
        energies = [energy for repeat in repeats if (energy := getattr(repeat, name))]
        values_j = [energy.energy.value for energy in energies]
        made[key] = mean_budget([energy.budget for energy in energies], values_j) if energies else None
    return made | ({} if made["budget"] else {"budget": missing(Cause.NO_IDLE, "J")})


def headline_budget(repeats: Sequence[Repeat]) -> Budget | None:
    """Budget of the energy above idle per operation, with the spread of an operation's energy."""
    made, values_j = [], []
    for repeat in repeats:
        value, count = per_operation(repeat, above_idle("marginal", repeat)), float(operations_of(repeat))
        if repeat.energy.marginal is None or value.value is None:
            return None
        made.append(repeat.energy.marginal.budget.scaled(1.0 / count))
        values_j.append(value.value)
    return mean_budget(made, values_j)


def sensor_energies(phases: Sequence[Phase], aligned: AlignedTrace) -> Mapping[str, Quantity]:
    """Energies and powers of an additional sensor over the same phases as the board's supply, mean over repeats."""
    runs = [phase for phase in phases if phase.role is Role.WORK]
    repeats = [Repeat(run.repeat, repeat_energy(aligned, phases, run.repeat), run.duration_s) for run in runs]
    seen = Quantities(definition for definition in COMMON if definition.of_sensors)
    return seen.over_repeats([seen.figures(repeat) for repeat in repeats])


def _generator(run: Run) -> dict[str, str | None]:
    """Name and version of the generator of the operations; the loader's own version is in its summary."""
    generator = run.found.generator or Generator()
    loader = next((summary.loader_version for summary in run.loader.values()), None)
    return {"name": generator.name, "version": generator.version or loader}


_REASON = "counters of the server's process on the board, from its start to its end, the load included"


def server_usage(files: Sequence[Path]) -> dict[str, Quantity]:
    """`server` of result.json from raw/server-N.csv: memory, processor time and I/O, means over the repeats.

    Files without a complete row are left out. Raises: RecordFault: a file contains something other than samples.
    """
    used = list(filter(None, map(_one, files)))
    means = {name: fmean(usage[name] for usage in used) for name in _UNITS if used}
    return {name: unstated(mean, _UNITS[name], _REASON) for name, mean in means.items()}


_UNITS = {"peak_memory_bytes": "B", "cpu_s": "s", "read_bytes": "B", "written_bytes": "B"}


def _one(file: Path) -> dict[str, float]:
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if None not in row.values()]
        if not rows:
            return {}
        last = rows[-1]
        peak = max(float(row["rss_bytes"]) for row in rows)
        return {"peak_memory_bytes": peak} | {name: float(last[name]) for name in _UNITS if name in last}
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        raise RecordFault(f"{file}: not samples of a server") from None
