"""What the board used during one phase: processor, medium, memory, from the loader's system samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from opjoule.measurement.phases import Phase
from opjoule.operations.loader_files import read_system


@dataclass(frozen=True)
class Usage:
    """Use of the board from the start of a run to the end of its loader (which settles before it ends)."""

    cpu_fraction: float
    """Busy share of all cores during the run itself."""
    read_bytes: int
    written_bytes: int
    peak_memory_bytes: int


def run_usage(path: Path, run: Phase, cores: int, *, simulated: bool) -> Usage | None:
    """Usage of one run; None without samples around it.

    On a simulated board only the loader process counts: the rest of this computer is not part of the board.

    Raises: RecordFault: the samples are unreadable.
    """
    table = read_system(path).table
    if len(table) < 2:
        return None
    stamps = table.column("board_ns").to_numpy()
    first = max(int(stamps.searchsorted(run.start_board_ns, "right")) - 1, 0)
    last = min(int(stamps.searchsorted(run.end_board_ns)), len(table) - 1)
    if last <= first:
        return None
    source = "process" if simulated else "device"
    cpu = "process_cpu_s" if simulated else "cpu_busy_s"
    span_s = float(stamps[last] - stamps[first]) * 1e-9
    return Usage(
        float(_change(table, cpu, first, last)) / (span_s * cores),
        int(_change(table, f"{source}_read_bytes", first, len(table) - 1)),
        int(_change(table, f"{source}_written_bytes", first, len(table) - 1)),
        int(max(table.column("rss_bytes").to_numpy()[first:])),
    )


def _change(table: pa.Table, column: str, first: int, last: int) -> float:
    values = table.column(column)
    return float(values[last].as_py() - values[first].as_py())
