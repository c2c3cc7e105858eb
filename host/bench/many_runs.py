"""Compares opening many records at once (`opjoule.open_runs`) with one by one (`opjoule.open_run`): time and memory.

    .venv/bin/python host/bench/many_runs.py [RUNS] [COPIES_OF]

Copies runs/example (SIMULATED) under different names. In both ways, calculates mean power and mean duration by kind of
operation for every run, and checks that the results agree. Prints seconds, processor time and peak memory of each way
(VmHWM of a separate process). With COPIES_OF = "large" every run has a trace of 20 million samples (SYNTHETIC), and all
traces are links to one file: memory does not grow with the number of runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HOST = Path(__file__).parents[1]
EXAMPLE = HOST.parent / "runs" / "example"
SAMPLES = 20_000_000
WAYS = ("at once", "one by one")


def copies(folder: Path, runs: int, *, large: bool) -> None:
    """Makes records with their own names and run.json; if `large`, their other files are links."""
    from opjoule.runs.record.run_record import RunRecord  # noqa: PLC0415  # not in the measured start

    first = folder / "run-00000"
    shutil.copytree(EXAMPLE, first)
    if large:
        _long_trace(first / "power.parquet")
        record = RunRecord.open(first)
        record.finish("complete")
    for number in range(1, runs):
        place = folder / f"run-{number:05}"
        shutil.copytree(first, place, copy_function=os.link if large else shutil.copy)
        (place / "run.json").unlink()
        shutil.copy(first / "run.json", place / "run.json")
        RunRecord.open(place).update(asked={"block": number})


def _long_trace(path: Path) -> None:
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415
    from opjoule.energy.trace.parquet_file import POWER  # noqa: PLC0415

    chance, part = np.random.default_rng(1), 1_000_000
    with pq.ParquetWriter(path, POWER) as writer:
        for start in range(0, SAMPLES, part):
            meter_ns = (start + np.arange(part, dtype=np.int64)) * 200_000
            current_a, voltage_v = chance.normal(0.6, 0.01, part).round(4), np.full(part, 5.1)
            writer.write_table(pa.table([meter_ns, current_a, voltage_v, np.zeros(part, bool)], schema=POWER))


def values_by_run(way: str, folder: Path, *, operations: bool) -> dict[str, list[float]]:
    """Mean power [W], then mean duration of each kind of operation [ns], for every run by its name."""
    import opjoule  # noqa: PLC0415

    values: dict[str, list[float]] = {}
    if way == "at once":
        runs = opjoule.open_runs(folder)
        for run, power_w in runs.sql("select run, avg(power_w) from power group by run").fetchall():
            values[Path(run).name] = [power_w]
        query = "select run, kind, avg(duration_ns) from operations group by all order by all"
        for run, _, duration_ns in runs.sql(query).fetchall() if operations else ():
            values[Path(run).name].append(duration_ns)
        return values
    for place in sorted(folder.iterdir()):
        run = opjoule.open_run(place)
        values[place.name] = [float(run.power["power_w"].mean())]
        if operations:
            table = run.operations.arrow.group_by("kind").aggregate([("duration_ns", "mean")])
            rows = sorted(table.to_pylist(), key=lambda row: row["kind"])
            values[place.name] += [row["duration_ns_mean"] for row in rows]
    return values


def measured(way: str, folder: Path, operations: bool) -> tuple[float, dict[str, Any]]:
    """(duration [s], output of the separate process: processor time, peak memory and the figures)."""
    argv = [sys.executable, __file__, "--way", way, str(folder), str(int(operations))]
    started_s = time.monotonic()
    out = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    length_s = time.monotonic() - started_s
    return length_s, json.loads(out)


def main(runs: int, large: bool) -> None:
    """Measures both ways and prints a line for each."""
    with tempfile.TemporaryDirectory(prefix="opjoule-many-", dir=os.environ.get("TMPDIR")) as place:
        copies(Path(place), runs, large=large)
        answers = []
        for way in WAYS:
            length_s, said = measured(way, Path(place), not large)
            answers.append(said["found"])
            print(
                f"{runs} runs {way:11} {length_s:8.1f} s  {said['cpu_s']:8.1f} s of processor time  "
                f"peak {said['peak_mb']:6.0f} MB",
                flush=True,
            )
        for name, numbers in answers[0].items():
            for one, other in zip(numbers, answers[1][name], strict=True):
                assert abs(one - other) <= 1e-9 * abs(other), (name, one, other)
        print(f"both ways give the same figures for all {len(answers[0])} runs")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--way"]:
        way, folder, operations = sys.argv[2:5]
        values = values_by_run(way, Path(folder), operations=operations == "1")
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
        said = {"peak_mb": int(peak.split()[1]) / 1024, "cpu_s": time.process_time(), "found": values}
        print(json.dumps(said))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2:3] == ["large"])
