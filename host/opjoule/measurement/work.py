"""What one repeat did, and how fast: operations, time, throughput, latency, use of the board."""

from __future__ import annotations

import numpy as np

from opjoule.measurement.figures import Figure
from opjoule.measurement.phases import Phase
from opjoule.measurement.usage import Usage
from opjoule.operations.latency import latency_s
from opjoule.operations.operation_table import OperationTable
from opjoule.units import Missing

NO_SAMPLES = "no system samples of the run"
LATENCIES = ("mean", "p50", "p95", "p99", "max")
_DISTRIBUTION = "a property of the distribution in one run; the board clock resolves 1 ns"


def operations_in(operations: OperationTable, run: Phase) -> OperationTable:
    """The operations that started inside a run."""
    inside = (operations.board_ns >= run.start_board_ns) & (operations.board_ns < run.end_board_ns)
    return operations.select(np.asarray(inside, np.bool_))


def work_figures(
    run: Phase, settle: Phase | None, logged: OperationTable, clock_u: float
) -> dict[str, Figure | Missing]:
    """Operations, durations, rates and latencies of one repeat by their path in result.json.

    Args:
        logged: the operations of the run; where the log is off, the loader's own count stands in.
        clock_u: relative standard uncertainty of the board's seconds.
    """
    count = float(len(logged) or run.operations)
    run_s, moved = run.duration_s, float(logged.bytes.sum())
    return {
        "operations": Figure(count, "1", 0.0),
        "duration_s": Figure(run_s, "s", clock_u * run_s),
        "settle_s": Figure(settle.duration_s, "s", clock_u * settle.duration_s)
        if settle
        else Missing("no settle phase", "s"),
        "throughput_per_s": Figure(count / run_s, "1/s", clock_u * count / run_s),
        "bandwidth_bytes_per_s": Figure(moved / run_s, "B/s", clock_u * moved / run_s),
        **_latency(logged),
    }


def _latency(logged: OperationTable) -> dict[str, Figure | Missing]:
    found = latency_s(logged.duration_ns)
    if found is None:
        return {f"latency_s.{name}": Missing("no operation was logged", "s") for name in LATENCIES}
    return {
        f"latency_s.{name}": Figure(value, "s", None, _DISTRIBUTION)
        for name, value in found.to_json().items()
    }


def usage_figures(usage: Usage | Missing, *, simulated: bool) -> dict[str, Figure | Missing]:
    """Processor, medium and memory of one repeat by their key in result.json."""
    reason = f"counter {'of the loader process on this computer' if simulated else 'of the board'}"
    names = {
        "cpu_fraction": ("cpu_fraction", "1"),
        "disk_read_bytes": ("read_bytes", "B"),
        "disk_written_bytes": ("written_bytes", "B"),
        "peak_memory_bytes": ("peak_memory_bytes", "B"),
    }
    return {
        key: Figure(float(getattr(usage, name)), unit, None, reason)
        if isinstance(usage, Usage)
        else Missing(usage.reason, unit)
        for key, (name, unit) in names.items()
    }
