"""Every number of a run, for result.json (record/result.py checks the shape)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from opjoule.devices.server_samples import server_usage
from opjoule.energy.budget import Budget
from opjoule.energy.cells import Cells
from opjoule.energy.sensor import SensorModel
from opjoule.energy.window import seen
from opjoule.errors import DataFault, RecordFault
from opjoule.measurement.alignment import Alignment
from opjoule.measurement.figures import Figure, Figures, by_repeat, mean_budget, over_repeats
from opjoule.measurement.phases import Phase, of_name
from opjoule.measurement.result import NO_IDLE, Placed, RepeatEnergy, harness_energy, repeat_energy
from opjoule.measurement.short_runs import short_run_warnings
from opjoule.measurement.trace_faults import TraceFault, trace_faults
from opjoule.measurement.until import until_warnings
from opjoule.measurement.usage import Usage, run_usage
from opjoule.measurement.work import LATENCIES, NO_SAMPLES, operations_in, usage_figures, work_figures
from opjoule.operations.operation_table import KINDS, OperationTable
from opjoule.record.run_record import RunRecord
from opjoule.trace.power_trace import PowerTrace
from opjoule.units import Missing, Quantity, exact

_NO_ATTRIBUTION = "energy is not attributed to kinds of operation or to background activity yet"
_LATER = "not identified from one run"
_NO_OPERATION = "no operation ended"


@dataclass(frozen=True)
class Repeat:
    """One repeat, measured."""

    run: Phase
    energy: RepeatEnergy
    operations: OperationTable
    figures: Figures


def build_result(
    record: RunRecord,
    phases: Sequence[Phase],
    trace: PowerTrace,
    sensor: SensorModel,
    alignment: Alignment,
    operations: OperationTable,
    cores: int,
) -> tuple[dict[str, Any], list[TraceFault]]:
    """All entries of result.json, and what is wrong with the trace under them; nothing is withheld yet.

    Raises: DataFault: no repeat has a whole run inside the trace.
    """
    numbers = sorted({phase.repeat for phase in phases if phase.name == "run"})
    if not numbers:
        raise DataFault("no repeat has a complete run: there is no result to give")
    placed = Placed(Cells.of(trace), sensor, alignment.board_to_meter)
    repeats = [_repeat(record, placed, phases, number, operations, cores) for number in numbers]
    entries = combined([each.figures for each in repeats])
    mean_operations = entries["operations"].value
    found = record.contents["found"]
    result = {
        "repeats": len(repeats),
        **entries,
        **budgets([each.energy for each in repeats]),
        "headline_budget": _headline_budget(repeats),
        "by_repeat": by_repeat([each.figures for each in repeats]),
        "lost_samples": exact(sum(each.energy.whole.lost_samples for each in repeats), "1"),
        "seen_share": seen([each.energy.run for each in repeats]),
        "harness_energy_j": harness_energy(placed, phases, repeats[0].energy.idle, mean_operations),
        "alignment": alignment.to_json(),
        "timebase": repeats[0].energy.run.timebase.to_json(),
        "by_operation": _by_operation([each.operations for each in repeats]),
        "by_activity": {
            name: Missing(_NO_ATTRIBUTION, "J") for name in ("flush", "compaction", "sync", "checkpoint")
        },
        "warnings": short_run_warnings(
            [each.run for each in repeats],
            trace.period_ns(),
            mean_operations,
            record.contents["asked"].get("seconds"),
        )
        + until_warnings(record.contents),
        **({"disturbed": told} if (told := found.get("device", {}).get("disturbance")) else {}),
        **({"server": server_usage(files)} if (files := record.raw_files("server-*.csv")) else {}),
        "generator": _generator(record),
    }
    return result, [fault for each in repeats for fault in trace_faults(each.run.repeat, each.energy)]


def _repeat(
    record: RunRecord,
    placed: Placed,
    phases: Sequence[Phase],
    number: int,
    operations: OperationTable,
    cores: int,
) -> Repeat:
    energy = repeat_energy(placed, phases, number)
    run = of_name(phases, "run", number)[0]
    settle = next(iter(of_name(phases, "settle", number)), None)
    logged = operations_in(operations, run)
    clock_u = energy.run.timebase.relative_u
    usage = _usage(record, run, cores)
    figures = {
        **energy.figures(),
        **work_figures(run, settle, logged, clock_u),
        **usage_figures(usage, simulated=record.simulated),
    }
    return Repeat(run, energy, logged, figures | _per_operation(figures))


def _usage(record: RunRecord, run: Phase, cores: int) -> Usage | Missing:
    """Use of the board in one run; a file that was changed is a fault of the record."""
    try:
        samples = record.intact(f"raw/run-{run.repeat}.system.csv")
        return run_usage(samples, run, cores, simulated=record.simulated) or Missing(NO_SAMPLES)
    except RecordFault as fault:
        record.add_fault(str(fault))
        return Missing(str(fault))


def _per_operation(figures: Figures) -> dict[str, Figure | Missing]:
    count = figures["operations"]
    made: dict[str, Figure | Missing] = {}
    for key, of in (
        ("energy_per_operation_j", figures["energy_j"]),
        ("marginal_energy_per_operation_j", figures["marginal_energy_j"]),
    ):
        if isinstance(of, Missing):
            made[key] = of
        elif isinstance(count, Missing) or not count.value:
            made[key] = Missing(_NO_OPERATION, "J")
        else:
            made[key] = of.scale(1.0 / count.value)
    return made


def combined(repeats: Sequence[Figures]) -> dict[str, Any]:
    """Each figure over all repeats, under its key of result.json; latencies in a group of their own."""
    found: dict[str, Any] = {path: over_repeats([each[path] for each in repeats]) for path in repeats[0]}
    count = fmean(each.value for one in repeats if isinstance(each := one["operations"], Figure))
    latencies = {name: found.pop(f"latency_s.{name}") for name in LATENCIES}
    return {**found, "operations": exact(count, "1"), "latency_s": latencies}


def budgets(repeats: Sequence[RepeatEnergy]) -> dict[str, Any]:
    """The budgets of energy_j and marginal_energy_j."""
    made: dict[str, Any] = {}
    for key, name in (("budget", "energy"), ("marginal_budget", "marginal")):
        each = [energy for repeat in repeats if (energy := getattr(repeat, name))]
        values_j = [energy.energy.value for energy in each]
        made[key] = mean_budget([energy.budget for energy in each], values_j) if each else None
    return made | ({} if made["budget"] else {"budget": Missing(NO_IDLE, "J")})


def _headline_budget(repeats: Sequence[Repeat]) -> Budget | None:
    """The budget of the energy above idle per operation, with the spread of what an operation cost."""
    made, values_j = [], []
    for each in repeats:
        value, count = each.figures["marginal_energy_per_operation_j"], each.figures["operations"]
        if each.energy.marginal is None or isinstance(value, Missing) or isinstance(count, Missing):
            return None
        made.append(each.energy.marginal.budget.scaled(1.0 / count.value))
        values_j.append(value.value)
    return mean_budget(made, values_j)


SENSOR_KEYS = ("run_energy_j", "energy_j", "marginal_energy_j", "power_w", "idle_power_w")


def sensor_energies(
    phases: Sequence[Phase], trace: PowerTrace, sensor: SensorModel, alignment: Alignment
) -> Mapping[str, Quantity]:
    """Energies and powers of a further sensor over the same phases as the board's supply, mean over repeats."""
    placed = Placed(Cells.of(trace), sensor, alignment.board_to_meter)
    numbers = sorted({phase.repeat for phase in phases if phase.name == "run"})
    repeats = [repeat_energy(placed, phases, number) for number in numbers]
    lost = exact(sum(each.whole.lost_samples for each in repeats), "1")
    figures = [each.figures() for each in repeats]
    return {key: over_repeats([each[key] for each in figures]) for key in SENSOR_KEYS} | {
        "lost_samples": lost
    }


def _generator(record: RunRecord) -> dict[str, Any]:
    """Name and version of what made the operations; the loader's own version is in its summary."""
    found = dict(record.contents["found"].get("generator", {"name": "loader"}))
    summaries: list[dict[str, Any]] = list((record.contents.get("loader") or {}).values())
    loader = summaries[0].get("loader_version") if summaries else None
    return {"name": found["name"], "version": found.get("version", loader)}


def _by_operation(repeats: Sequence[OperationTable]) -> dict[str, Any]:
    """Counts by kind, mean over repeats. With one kind alone its energy is the whole's; the reader finds it there."""
    counts = OperationTable.concatenate(repeats).counts()
    return {
        name: {
            "count": exact(count / len(repeats), "1"),
            "energy_per_operation_j": Missing(_NO_ATTRIBUTION, "J"),
            "identifiable": Missing(_LATER),
        }
        for name, count in counts.items()
        if name in KINDS
    }
