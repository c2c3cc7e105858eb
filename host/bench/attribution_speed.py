"""Time and memory of attributing an hour at 5 kHz with 10 million operations, against reading and summing the samples.

    .venv/bin/python host/bench/attribution_speed.py                    # the whole: 18 million samples
    .venv/bin/python host/bench/attribution_speed.py --minutes 6 --operations 1000000

The yardstick is what numpy needs to read current and voltage from the record's file and sum their product cumulatively.
Each of the three is a process of its own, whose peak memory is that of the process. SIMULATED: the samples are noise.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

HOST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOST)]

from opjoule.attribution.activities import Intervals  # noqa: E402  # path set above
from opjoule.attribution.attribute import Work, attribute  # noqa: E402
from opjoule.attribution.medium import Counters  # noqa: E402
from opjoule.clocks.clock_map import ClockMap  # noqa: E402
from opjoule.energy.cells import Cells  # noqa: E402
from opjoule.measurement.result import Placed, repeat_energy  # noqa: E402
from opjoule.meters.chips.ina219 import ina219_breakout  # noqa: E402
from opjoule.operations.operation_table import OperationTable  # noqa: E402
from opjoule.operations.tables import read_operations, write_operations  # noqa: E402
from opjoule.record.phases import Phase, Role  # noqa: E402
from opjoule.trace.journal import read_trace  # noqa: E402
from opjoule.trace.parquet_file import write_parquet  # noqa: E402
from opjoule.trace.schemas import POWER  # noqa: E402

SECOND = 1_000_000_000
IDLE_S, SETTLE_S = 30, 20
TO_METER = ClockMap("board", "meter", 0, 0, 1.0, 1e3, 0, "truth", 0, 10)


def make(folder: Path, minutes: float, operations: int) -> None:
    """Writes power.parquet and operations.parquet."""
    import pyarrow as pa  # noqa: PLC0415  # of this step alone

    rng = np.random.default_rng(1)
    count = round((60 * minutes + 2 * IDLE_S + SETTLE_S) * 5000)
    stamps = np.arange(1, count + 1, dtype=np.int64) * 200_000
    current_a = rng.normal(0.6, 0.05, count)
    columns = {
        "meter_ns": stamps,
        "current_a": current_a,
        "voltage_v": np.full(count, 5.0),
        "clipped": np.zeros(count, np.bool_),
    }
    arrays = [pa.array(columns[name]) for name in POWER.names]
    write_parquet(folder / "power.parquet", POWER, [pa.Table.from_arrays(arrays, schema=POWER)])
    mean_ns = 60 * minutes * SECOND / operations
    length_ns = rng.exponential(0.9 * mean_ns, operations).astype(np.int64)
    start_ns = IDLE_S * SECOND + np.cumsum(length_ns + round(0.1 * mean_ns)) - length_ns
    table = OperationTable(
        start_ns, length_ns, (rng.random(operations) < 0.5).astype(np.uint8), np.zeros(operations, np.uint16),
        np.full(operations, 1000, np.int64), np.ones(operations, np.bool_),
    )  # fmt: skip
    write_operations(folder / "operations.parquet", table)


def sum_samples(folder: Path, minutes: float) -> None:
    """The yardstick."""
    table = pq.read_table(folder / "power.parquet", columns=["current_a", "voltage_v"])
    np.cumsum(table["current_a"].to_numpy() * table["voltage_v"].to_numpy())


def energies(folder: Path, minutes: float) -> tuple[Placed, list[Phase]]:
    """The energies of the windows, as every analysis has them."""
    end = round((IDLE_S + 60 * minutes) * SECOND)
    after = end + SETTLE_S * SECOND
    phases = [
        Phase("idle-before", 1, SECOND // 10, IDLE_S * SECOND, role=Role.BASELINE),
        Phase("run", 1, IDLE_S * SECOND, end, role=Role.WORK),
        Phase("settle", 1, end, after, role=Role.DRAIN),
        Phase("idle-after", 1, after, after + IDLE_S * SECOND - SECOND // 10, role=Role.BASELINE),
    ]
    return Placed(Cells.of(read_trace(folder)), ina219_breakout(1.0), TO_METER), phases


def whole(folder: Path, minutes: float) -> None:
    """Energies and attribution."""
    placed, phases = energies(folder, minutes)
    found = repeat_energy(placed, phases, 1)
    assert found.idle and found.marginal
    rng = np.random.default_rng(2)
    run, settle = phases[1], phases[2]
    begins = {
        name: np.sort(rng.integers(run.start_board_ns, run.end_board_ns, int(each * minutes)))
        for name, each in (("flush", 60), ("compaction", 15), ("sync", 200))
    }
    activities = {name: Intervals.of(each, each + 50_000_000) for name, each in begins.items()}
    stamps = np.arange(0, settle.end_board_ns, SECOND // 10)
    counters = Counters(stamps, np.cumsum(rng.random(stamps.size) < 0.3) * 1e6)
    work = Work(
        placed.cells, TO_METER, run.start_board_ns, run.end_board_ns, settle.end_board_ns, found.idle,
        found.marginal, read_operations(folder / "operations.parquet"), activities, False, counters,
    )  # fmt: skip
    attribute(work)


def only_energies(folder: Path, minutes: float) -> None:
    """Energies without attribution."""
    placed, phases = energies(folder, minutes)
    repeat_energy(placed, phases, 1)


STEPS = {"yardstick": sum_samples, "energies": only_energies, "energies and attribution": whole}


def main() -> None:
    """Makes the record, then times each step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--operations", type=int, default=10_000_000)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        began_s = time.perf_counter()
        STEPS[asked.step](asked.folder, asked.minutes)
        print(time.perf_counter() - began_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), asked.minutes, asked.operations)
        yardstick_s = None
        for step in STEPS:
            own = [
                sys.executable,
                __file__,
                "--step",
                step,
                "--folder",
                folder,
                "--minutes",
                str(asked.minutes),
            ]
            runs = [
                subprocess.run(own, capture_output=True, text=True, check=True).stdout.split()
                for _ in range(3)
            ]
            took_s, peak_bytes = min(float(each[0]) for each in runs), max(float(each[1]) for each in runs)
            yardstick_s = yardstick_s or took_s
            print(
                f"{step}: {took_s:.2f} s, {took_s / yardstick_s:.1f} times the yardstick, {peak_bytes / 1e9:.2f} GB"
            )


if __name__ == "__main__":
    main()
