"""Compares the processor time of a record's first run with the time of its operations, for each limit of their work.

    .venv/bin/python host/validation/processor_time.py RECORD ...

Each row is a least-squares fit between readings of the board's counters. The columns are the time for which operations
were busy, if the rest of a long one is waiting (opjoule/attribution/waits.py), and the seconds of each activity but
syncs. With the right limit a busy second takes a second of processor time, and the residual is least. The last line
comes from another fit: the operations shorter than a writer's sleep, and the number of the others.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from known_engine import SLEPT_S, Timeline
from opjoule.attribution.activities import SYNC, background_s
from opjoule.attribution.least_squares import non_negative
from opjoule.attribution.overlap import Waits, operations_in
from opjoule.attribution.waits import FREQUENT, RARE
from opjoule.boards.databases import background_threads
from opjoule.energy.trace.power_trace import Float64Array


def _fit(columns: list[Float64Array], cpu_s: Float64Array) -> tuple[Float64Array, float]:
    """Coefficients, none negative, and root mean square of the residuals [s]."""
    matrix = np.stack(columns, axis=1)
    x = non_negative(matrix.T @ matrix, matrix.T @ cpu_s, np.zeros(len(columns), np.bool_))
    return x, float(np.sqrt(np.mean((cpu_s - matrix @ x) ** 2)))


def _report(directory: Path) -> None:
    timeline = Timeline.read(directory)
    made, counted_ns = timeline.operations, timeline.samples["board_ns"].to_numpy()
    inside = (counted_ns >= made.board_ns[0]) & (counted_ns <= made.board_ns[-1])
    edges_ns = counted_ns[inside].astype(np.int64)
    cpu_s = np.diff(timeline.samples["process_cpu_s"].to_numpy()[inside])
    one_thread = background_threads(timeline.database) == 1
    seconds = background_s(edges_ns, timeline.activities, one_thread=one_thread)
    beside = [of_activity for name, of_activity in seconds.items() if name != SYNC]
    print(f"\n{directory}: {timeline.database}, {len(made)} operations, {cpu_s.sum():.2f} s of processor time")
    print("| percentile | busy | processor time of a busy second | residual |\n|---|---|---|---|")
    for fraction in (RARE, *FREQUENT):
        busy_s = operations_in(edges_ns, made, Waits.of(made, fraction))[1].sum(axis=1)
        x, left_s = _fit([busy_s, *beside], cpu_s)
        print(f"| {100 * fraction:g} | {busy_s.sum():.2f} s | {x[0]:.2f} s | {1e3 * left_s:.2f} ms |")
    long = made.duration_ns >= SLEPT_S * 1e9
    never = Waits(np.full(len(made.kinds), np.iinfo(np.int64).max))
    shorter_s = operations_in(edges_ns, made.select(~long), never)[1].sum(axis=1)
    waits = operations_in(edges_ns, made.select(long), never)[0].sum(axis=1)
    x, _ = _fit([shorter_s, waits, *beside], cpu_s)
    print(f"{np.count_nonzero(long)} waits of at least {1e3 * SLEPT_S:g} ms: {1e6 * x[1]:.0f} us each")


def main() -> int:
    """Prints a table for each record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    for record in parser.parse_args().records:
        _report(record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
