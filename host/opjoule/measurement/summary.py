"""Every number of a run, for result.json (record/result.py checks the shape)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from opjoule.devices.server_samples import server_usage
from opjoule.energy.cells import Cells
from opjoule.energy.sensor import SensorModel
from opjoule.errors import DataFault, RecordFault
from opjoule.measurement.alignment import Alignment
from opjoule.measurement.phases import Phase, of_name
from opjoule.measurement.result import Placed, RepeatEnergy, energies, harness_energy, repeat_energy
from opjoule.measurement.usage import Usage, run_usage
from opjoule.operations.latency import latency_s
from opjoule.operations.operation_table import KINDS, OperationTable
from opjoule.record.run_record import RunRecord
from opjoule.trace.power_trace import PowerTrace
from opjoule.units import Measured, Missing, Quantity, Unstated, exact

_NO_ATTRIBUTION = "energy is not attributed to kinds of operation or to background activity yet"
_LATER = "not identified from one run"


def build_result(
    record: RunRecord,
    phases: Sequence[Phase],
    trace: PowerTrace,
    sensor: SensorModel,
    alignment: Alignment,
    operations: OperationTable,
    cores: int,
) -> dict[str, Any]:
    """All entries of result.json.

    Raises: DataFault: no repeat has a whole run inside the trace.
    """
    repeats = sorted({phase.repeat for phase in phases if phase.name == "run"})
    if not repeats:
        raise DataFault("no repeat has a complete run: there is no result to give")
    placed = Placed(Cells.of(trace), sensor, alignment.board_to_meter)
    measured = [repeat_energy(placed, phases, repeat) for repeat in repeats]
    runs = [of_name(phases, "run", repeat)[0] for repeat in repeats]
    counted = _run_operations(operations, runs)
    mean_operations = len(counted) / len(runs) if len(counted) else fmean(run.operations for run in runs)
    entries: dict[str, Any] = energies(measured, mean_operations)
    entries |= _rates(runs, phases, counted, mean_operations, measured)
    entries |= _usage(record, runs, cores)
    entries["harness_energy_j"] = harness_energy(placed, phases, measured[0].idle, mean_operations)
    entries["alignment"] = alignment.to_json()
    entries["timebase"] = measured[0].run.timebase.to_json()
    entries["by_operation"] = _by_operation(counted, len(runs))
    entries["by_activity"] = {
        name: Missing(_NO_ATTRIBUTION, "J") for name in ("flush", "compaction", "sync", "checkpoint")
    }
    if disturbance := record.contents["found"].get("device", {}).get("disturbance"):
        entries["disturbed"] = disturbance
    if servers := record.raw_files("server-*.csv"):
        entries["server"] = server_usage(servers)
    entries["generator"] = _generator(record)
    return {"repeats": len(runs), **entries}


SENSOR_KEYS = ("energy_j", "marginal_energy_j", "power_w", "idle_power_w", "lost_samples")


def sensor_energies(
    phases: Sequence[Phase], trace: PowerTrace, sensor: SensorModel, alignment: Alignment
) -> dict[str, Quantity]:
    """Energies and powers of a further sensor over the same phases as the board's supply, mean over repeats."""
    placed = Placed(Cells.of(trace), sensor, alignment.board_to_meter)
    repeats = sorted({phase.repeat for phase in phases if phase.name == "run"})
    entries = energies([repeat_energy(placed, phases, repeat) for repeat in repeats], 0.0)
    return {key: entries[key] for key in SENSOR_KEYS}


def _generator(record: RunRecord) -> dict[str, Any]:
    """Name and version of what made the operations; the loader's own version is in its summary."""
    found = dict(record.contents["found"].get("generator", {"name": "loader"}))
    summaries: list[dict[str, Any]] = list((record.contents.get("loader") or {}).values())
    loader = summaries[0].get("loader_version") if summaries else None
    return {"name": found["name"], "version": found.get("version", loader)}


def _run_operations(operations: OperationTable, runs: Sequence[Phase]) -> OperationTable:
    """The operations that started inside a run."""
    chosen = np.zeros(len(operations), np.bool_)
    for run in runs:
        chosen |= (operations.board_ns >= run.start_board_ns) & (operations.board_ns < run.end_board_ns)
    return operations.select(chosen)


def _rates(
    runs: Sequence[Phase],
    phases: Sequence[Phase],
    counted: OperationTable,
    mean_operations: float,
    measured: Sequence[RepeatEnergy],
) -> dict[str, Any]:
    run_s = fmean(run.duration_s for run in runs)
    settles = [phase.duration_s for phase in phases if phase.name == "settle"]
    rate_u = 2 * measured[0].run.timebase.relative_u
    moved = float(counted.bytes.sum()) / len(runs)
    latency = latency_s(counted.duration_ns)
    reason = "a property of the distribution in this run; the board clock resolves 1 ns"
    return {
        "duration_s": Measured(run_s, rate_u * run_s, "s"),
        "settle_s": Measured(fmean(settles), rate_u * fmean(settles), "s")
        if settles
        else Missing("no settle phase", "s"),
        "operations": exact(mean_operations, "1"),
        "throughput_per_s": Measured(mean_operations / run_s, rate_u * mean_operations / run_s, "1/s"),
        "bandwidth_bytes_per_s": Measured(moved / run_s, rate_u * moved / run_s, "B/s"),
        "latency_s": {
            name: Unstated(value, "s", reason)
            for name, value in (latency.to_json() if latency else {}).items()
        }
        or Missing("no operation was logged", "s"),
    }


_USAGE_UNITS = {
    "cpu_fraction": "1",
    "disk_read_bytes": "B",
    "disk_written_bytes": "B",
    "peak_memory_bytes": "B",
}


def _usage(record: RunRecord, runs: Sequence[Phase], cores: int) -> dict[str, Quantity]:
    names = [f"raw/run-{run.repeat}.system.csv" for run in runs]
    try:
        found = [
            run_usage(record.intact(name), run, cores, simulated=record.simulated)
            for name, run in zip(names, runs, strict=True)
        ]
    except RecordFault as fault:
        record.add_fault(str(fault))
        return {key: Missing(str(fault), unit) for key, unit in _USAGE_UNITS.items()}
    used = [usage for usage in found if usage is not None]
    source = "of the loader process on this computer" if record.simulated else "of the board"
    return {
        "cpu_fraction": _mean(used, "cpu_fraction", "1", source),
        "disk_read_bytes": _mean(used, "read_bytes", "B", source),
        "disk_written_bytes": _mean(used, "written_bytes", "B", source),
        "peak_memory_bytes": _mean(used, "peak_memory_bytes", "B", source),
    }


def _mean(used: Sequence[Usage], name: str, unit: str, source: str) -> Quantity:
    if not used:
        return Missing("no system samples of the run", unit)
    return Unstated(
        fmean(getattr(usage, name) for usage in used), unit, f"counter {source}, mean over repeats"
    )


def _by_operation(counted: OperationTable, repeats: int) -> dict[str, Any]:
    """Counts by kind. With one kind alone its energy is the whole's; the reader finds it there."""
    return {
        name: {
            "count": exact(count / repeats, "1"),
            "energy_per_operation_j": Missing(_NO_ATTRIBUTION, "J"),
            "identifiable": Missing(_LATER),
        }
        for name, count in counted.counts().items()
        if name in KINDS
    }
