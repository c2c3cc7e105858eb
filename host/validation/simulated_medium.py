"""Checks that a simulated medium slows a workload as much as its model says. SIMULATED.

    .venv/bin/python host/validation/simulated_medium.py [--only sd|emmc|ssd-usb3] [--db NAME] [--keep FOLDER]

There are three kinds of measurement. The first two use `host/measure.py --simulate`, and are compared with the medium
that was drawn for them:

* A load that writes more than the page cache can hold. While the board's dirty pages are near the limit, bytes reach
  the medium, and the database is loaded, at the medium's rate. An engine that syncs its background writes (LevelDB)
  never fills the page cache. Its load takes the time that the medium needs for its bytes and flushes, if the engine's
  own processor time is much shorter.
* Updates that are synced one by one. Each takes the flush latency, and the time for its bytes at the medium's rate.
* Reads from memory, by the loader alone. They are as fast as without the medium.

Exit status 1 if a ratio of found to model differs from 1 by more than its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq
from opjoule.bench.simulation.power_model import BoardModel, MediumModel, Models
from opjoule.bench.simulation.simulators import PROGRAM, MediumSimulator
from opjoule.bench.simulation.supply import IMPERFECTIONS
from opjoule.boards.profiles import BoardAndMedium, find_profile
from opjoule.runs.record.phases import Phase, Role
from opjoule.runs.record.run_record import RunRecord

HOST = Path(__file__).resolve().parents[1]
ROOT = HOST.parent

ENGINES: Final = ("leveldb", "sqlite", "rocksdb")
BOARDS: Final = {"sd": "rpi3", "emmc": "odroid-c2", "ssd-usb3": "rpi4"}
RATE_WITHIN: Final = 0.10
LATENCY_WITHIN: Final = 0.10
READ_WITHIN: Final = 0.05
FULL: Final = 0.9
"""Part of the dirty limit above which the page cache counts as full."""
BOUND_S: Final = 1.0
"""Shortest time with a full page cache that is evaluated."""
OWN_WORK: Final = 0.1
"""Limit of an engine's own processor time over the medium's time; above it the medium is not the bottleneck."""
SYNCING_BYTES: Final = 140e6
"""Bytes of values loaded into an engine of SYNCING; its compactions write several times as many."""
VALUE_BYTES: Final = 100_000
SYNCED: Final = 500
PAIRS: Final = 7
SYNCING: Final = ("leveldb",)
"""Engines that sync their background writes, which therefore never fill the page cache."""
WAL: Final = {"sqlite": ("-p", "sqlite.journal_mode=wal")}
"""Options for one sync a commit, as in the other engines."""


@dataclass(frozen=True)
class Row:
    """One figure and the model's value."""

    about: str
    model: float | None
    measured: float
    unit: str
    within: float

    @property
    def passed(self) -> bool:
        """True if the figure is within its limit, or if the medium was not the bottleneck."""
        return self.model is None or abs(self.measured / self.model - 1) <= self.within

    def __str__(self) -> str:
        """Line of the printed table."""
        if self.model is None:
            return f"{self.about:<58} {'not bound':>12} {self.measured:>12.4g} {self.unit}"
        mark = "" if self.passed else f"  MORE THAN {100 * self.within:g} % OFF"
        figures = f"{self.model:>12.4g} {self.measured:>12.4g} {self.unit:<6} {self.measured / self.model:.3f}"
        return f"{self.about:<58} {figures}{mark}"


class Record:
    """Finished measurement, with the medium that was drawn for it."""

    def __init__(self, place: Path, device: str, storage: str) -> None:
        """Reads the record."""
        drawn = json.loads((place / IMPERFECTIONS).read_text())["medium"]
        self.medium = MediumModel(**drawn)
        self.board: BoardModel = Models.stated().load(BoardAndMedium(find_profile(device), storage)).board
        opened = RunRecord.open(place)
        self.run, self.faults = opened.run, opened.faults
        table = pq.read_table(place / "system.parquet")
        self.system = {name: table[name].to_numpy().astype(float) for name in table.column_names}
        operations = pq.read_table(place / "operations.parquet")
        events = pq.read_table(place / "events.parquet")
        self.syncs_ns = np.array(
            [
                ns
                for ns, name in zip(*(events[key].to_pylist() for key in ("board_ns", "event")), strict=True)
                if name == "sync"
            ]
        )
        self.durations_s = operations["duration_ns"].to_numpy() * 1e-9

    def phase(self, role: Role) -> Phase:
        """First phase with a role."""
        return next(phase for phase in self.run.phases if phase.role is role)

    def within(self, phase: Phase) -> dict[str, np.ndarray]:
        """Samples of one phase."""
        at = self.system["board_ns"]
        inside = (at >= phase.start_board_ns) & (at <= phase.end_board_ns)
        return {name: column[inside] for name, column in self.system.items()}


def measure(out: Path, db: str, device: str, storage: str, *options: str) -> Record:
    """Runs one simulated measurement of a single repeat."""
    line = [sys.executable, "-m", "opjoule.cli.start", "--db", db, "--device", device, "--storage", storage]
    line += [
        "--simulate",
        "--repeats",
        "1",
        "--idle",
        "1",
        "--no-harness",
        "--json",
        "--out",
        str(out),
        *options,
    ]
    environment = {**os.environ, "PYTHONPATH": str(HOST)}
    ended = subprocess.run(line, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    if not (out / IMPERFECTIONS).exists():
        raise SystemExit(f"{' '.join(line)}: {ended.stderr}")
    for complaint in ended.stderr.strip().splitlines():
        if "fault" in complaint:
            print(f"    {complaint}")
    return Record(out, device, storage)


def load_rows(place: Path, db: str, device: str, storage: str) -> Iterator[Row]:
    """Bandwidth of the medium, and rate of the load while the medium is the bottleneck."""
    stated = Models.stated().load(BoardAndMedium(find_profile(device), storage))
    rate, limit_bytes = stated.medium.write_bytes_per_s, stated.board.dirty_limit_bytes
    wanted_bytes = SYNCING_BYTES if db in SYNCING else 1.7 * limit_bytes + 6 * rate
    record = measure(
        place, db, device, storage, "--records", str(int(wanted_bytes / VALUE_BYTES)), "--operations", "100",
        "--workload", "c", "--value-size", str(VALUE_BYTES),
    )  # fmt: skip
    phase = next(phase for phase in record.run.phases if phase.name == "load")
    load, about = record.within(phase), f"{db} on {storage}"
    at_s, rate = load["board_ns"] * 1e-9, record.medium.write_bytes_per_s
    full = np.flatnonzero(load["dirty_bytes"] >= FULL * limit_bytes)
    if full.size > 1 and at_s[full[-1]] - at_s[full[0]] >= BOUND_S:
        first, last = full[0], full[-1]
        span_s = at_s[last] - at_s[first]
        for name, column in (("bandwidth", "device_written_bytes"), ("load", "process_written_bytes")):
            measured = float(load[column][last] - load[column][first]) / span_s
            yield Row(f"{about}: {name}, {span_s:.0f} s bound", rate * 1e-6, measured * 1e-6, "MB/s", RATE_WITHIN)
        return
    written_bytes = float(load["device_written_bytes"][-1] - load["device_written_bytes"][0])
    span_s = float(at_s[-1] - at_s[0])
    syncs = np.sum((record.syncs_ns >= phase.start_board_ns) & (record.syncs_ns <= phase.end_board_ns))
    needs_s = written_bytes / rate + float(syncs) * record.medium.flush_s
    own_s = float(np.ptp(load["process_cpu_s"]))
    bound = own_s <= OWN_WORK * needs_s
    words = f"load, {written_bytes * 1e-6:.0f} MB, {syncs} syncs, own {own_s:.0f} s"
    yield Row(f"{about}: {words}", needs_s if bound else None, span_s, "s", RATE_WITHIN)


def sync_row(place: Path, db: str, device: str, storage: str) -> Row:
    """Latency of a synced update."""
    record = measure(
        place, db, device, storage, "--records", str(SYNCED), "--operations", str(SYNCED), "--value-size", "1000",
        "-p", "durability=sync", "-p", "readproportion=0", "-p", "updateproportion=1", *WAL.get(db, ()),
    )  # fmt: skip
    run = record.within(record.phase(Role.WORK))
    written_bytes = float(run["device_written_bytes"][-1] - run["device_written_bytes"][0]) / SYNCED
    model_s = record.medium.flush_s + written_bytes / record.medium.write_bytes_per_s
    found_s = float(np.median(record.durations_s))
    return Row(f"{db} on {storage}: synced update", 1e3 * model_s, 1e3 * found_s, "ms", LATENCY_WITHIN)


def loader_ops_per_s(under: tuple[str, ...], folder: Path, verb: str) -> float:
    """Throughput of one run of the loader on a small database that stays in memory."""
    workload = ROOT / "ycsb-workloads" / "workloadc.properties"
    line = [str(ROOT / "build/loader/loader"), verb, "--db", "leveldb", "--path", str(folder)]
    line += ["--workload", str(workload), "-p", "recordcount=20000", "-p", "operationcount=400000"]
    ended = subprocess.run([*under, *line], capture_output=True, text=True, check=True)
    summary: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])["summary"]
    return float(summary["throughput_per_s"])


def read_row() -> Row:
    """Compares reads from memory with and without medium-sim, run alternately; takes the best of each."""
    stated = Models.stated().load(find_profile("rpi4").with_medium("sd"))
    with (
        tempfile.TemporaryDirectory(dir=ROOT / "build") as folder,
        closing(MediumSimulator(ROOT / "build/loader" / PROGRAM, stated.board, stated.medium)) as simulator,
    ):
        place = Path(folder) / "database"
        loader_ops_per_s((), place, "load")
        pairs = [
            (loader_ops_per_s((), place, "run"), loader_ops_per_s(simulator.under, place, "run")) for _ in range(PAIRS)
        ]
    alone, slowed = (max(pair) for pair in zip(*pairs, strict=True))
    return Row("leveldb: reads from memory", alone, slowed, "1/s", READ_WITHIN)


def rows(only: str | None, db: str | None, keep: Path) -> Iterator[Row]:
    """Yields every figure as soon as it is measured."""
    for storage, device in BOARDS.items():
        if only not in (None, storage):
            continue
        assert storage in find_profile(device).media
        for engine in ENGINES:
            if db in (None, engine):
                yield from load_rows(keep / f"load-{engine}-{storage}", engine, device, storage)
                yield sync_row(keep / f"sync-{engine}-{storage}", engine, device, storage)
    if db in (None, "leveldb"):
        yield read_row()


def main() -> int:
    """Measures, and prints model, found and their ratio; exit status 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(BOARDS), help="only this medium")
    parser.add_argument("--db", choices=ENGINES, help="only this database")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the records in this folder")
    options = parser.parse_args()
    print(f"{'SIMULATED':<58} {'model':>12} {'found':>12}        ratio")
    missed = 0
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as temporary:
        for row in rows(options.only, options.db, options.keep or Path(temporary)):
            print(row, flush=True)
            missed += not row.passed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
