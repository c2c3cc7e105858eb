"""Runs one measurement for hours of real time, with its workload, on the simulated rig. SIMULATED.

    .venv/bin/python host/validation/long_run.py --hours 2 --out build/long-run

Prints the memory of each of the measurement's processes once a minute. At the end it opens the record and checks that
- the record is complete,
- the rows of the trace follow each other as the meter converts: every conversion is a sample or counted as lost,
- the intervals of the run's energies contain the true values from the simulator,
- no process has grown by more than 16 MiB between the first tenth of the run and its last.
Exit code 1 if one check fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from faults.trial import COMMAND, env, of_ours
from opjoule.bench.simulation.truth_line import SHOWN, known_figures
from opjoule.energy.trace.journal import read_edges, read_trace
from opjoule.runs.record.run_record import RunRecord

EVERY_S = 60.0
GROWTH_MIB = 16.0
OPERATIONS_PER_S = 500
OF_THE_RUN = tuple(SHOWN[name] for name in ("energy_j", "marginal_energy_per_operation_j"))


def memory_mib(pid: int) -> tuple[str, float]:
    """Name and resident memory [MiB] of a process. Raises: OSError: it has ended."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return lines["Name"].strip(), int(lines.get("VmRSS", "0 kB").split()[0]) / 1024


def measure(hours: float, out: Path) -> dict[str, list[float]]:
    """Runs the measurement; returns the memory of each of its processes while the workload runs [MiB], by name."""
    temporary = out / "tmp"
    temporary.mkdir(parents=True)
    command = [*COMMAND, "--db", "leveldb", "--device", "rpi4", "--simulate", "--records", "20000"]
    command += ["--seconds", str(round(hours * 3600)), "-p", f"target={OPERATIONS_PER_S}"]
    command += [
        "--repeats",
        "1",
        "--reset",
        "load",
        "--no-harness",
        "--out",
        str(out / "run"),
    ]
    memory: dict[str, list[float]] = defaultdict(list)
    begun_s = time.monotonic()
    with (out / "said").open("w") as said:
        running = subprocess.Popen(command, stdout=said, stderr=said, env=env(temporary))
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(EVERY_S)
                break
            now: dict[str, float] = defaultdict(float)
            for pid in of_ours(out):
                with contextlib.suppress(OSError):
                    name, mib = memory_mib(pid)
                    now[name] += mib
            for name, mib in now.items() if "loader" in now else ():
                memory[name].append(mib)
            shown = ", ".join(f"{name} {mib:.1f}" for name, mib in sorted(now.items()))
            print(f"{time.monotonic() - begun_s:6.0f} s: {shown} MiB", flush=True)
    print(f"exit status {running.returncode}")
    return dict(memory)


def grown(memory: dict[str, list[float]]) -> dict[str, float]:
    """Growth of each long-lived process [MiB]: median of the last tenth minus median of the first tenth."""
    longest = max(map(len, memory.values()), default=0)
    long_lived = {name: mib for name, mib in memory.items() if len(mib) >= 0.8 * longest}
    tenth = max(1, longest // 10)
    return {name: float(np.median(mib[-tenth:]) - np.median(mib[:tenth])) for name, mib in long_lived.items()}


def irregular_rows(record: Path) -> tuple[int, int, int]:
    """Counts the trace's rows, the rows at unexpected times, and the lost rows.

    A row should follow the previous one after one period of the meter, or after the time of a voltage reading. The
    number of rows between two such readings should always be the same. A deviation of 10 % of each time is allowed.
    """
    trace = read_trace(record)
    steps_ns = np.diff(trace.meter_ns)
    period_ns = float(np.median(steps_ns))
    reading = np.flatnonzero(steps_ns > 1.5 * period_ns)
    irregular = int((steps_ns < 0.9 * period_ns).sum())
    irregular += int(((steps_ns > 1.1 * period_ns) & (steps_ns <= 1.5 * period_ns)).sum())
    if reading.size > 1:
        usual_ns, usual_rows = np.median(steps_ns[reading]), np.median(np.diff(reading))
        irregular += int((np.abs(steps_ns[reading] - usual_ns) > 0.1 * usual_ns).sum())
        irregular += int((np.diff(reading) != usual_rows).sum())
    return trace.meter_ns.size, irregular, sum(gap.lost_samples for gap in trace.gaps)


def missed_truths(record: Path) -> list[str]:
    """Energies of the run whose interval does not contain the simulator's true value."""
    figures = [figure for figure in known_figures(record) if figure.has_interval]
    for figure in figures:
        print(figure)
    print(f"clocks: {json.dumps(json.loads((record / 'result.json').read_text())['alignment'])}")
    energies = [figure for figure in figures if figure.about in OF_THE_RUN]
    return [f"missed: {figure}" for figure in energies if not figure.holds]


def main() -> int:
    """Measures and checks the record; exit status 1 if a check fails."""
    parser = argparse.ArgumentParser(description="Runs one measurement for hours, SIMULATED.")
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--out", type=Path, required=True, help="new folder for the record")
    options = parser.parse_args()
    print("SIMULATED")
    growth = grown(measure(options.hours, options.out.resolve()))
    record = options.out / "run"
    if not (record / "result.json").exists():
        print(f"the measurement has no result; see its output in {options.out / 'said'}", file=sys.stderr)
        return 1
    wrong = [f"{name} has grown by {mib:.1f} MiB" for name, mib in growth.items() if mib > GROWTH_MIB]
    if (status := RunRecord.open(record).status) != "complete":
        wrong.append(f"the record is {status}")
    rows, irregular, lost = irregular_rows(record)
    print(f"{rows} rows, {lost} of them lost and counted; {irregular} at unexpected times")
    print(f"{read_edges(record).meter_ns.size} sync edges")
    print("growth: " + ", ".join(f"{name} {mib:+.1f} MiB" for name, mib in sorted(growth.items())))
    if irregular:
        wrong.append(f"{irregular} rows are at unexpected times")
    wrong += missed_truths(record)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
