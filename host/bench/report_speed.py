"""Measures time and memory of `report`, analysis included, for an hour at 5 kHz with 10 million operations.

    .venv/bin/python host/bench/report_speed.py                    # the full hour: 18 million samples
    .venv/bin/python host/bench/report_speed.py --minutes 6 --operations 1000000

`report` runs as a user starts it; its time includes the start of Python and the imports. Two reports run alternately:

- of a record whose measurement was killed, which is first analysed from the raw files (trace, calibration, clocks,
  logs, energies, attribution, checksums, page)
- of the same record once it is finished

The yardstick is the time that numpy needs to read current and voltage from the record's file and sum their product
cumulatively. It runs in a new process each time, before and after each report, with the file in the page cache. Its
first pass counts ("cold": the system has yet to give it the memory, as for a report); a second pass in the same process
("warm") is printed, too. Ratios are of medians over all rounds; the ratio in brackets is to the quickest cold pass of
all. Other work on the computer disturbs processor time least. SIMULATED: the samples are noise.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from opjoule.clocks.exchanges import (
    BOARD_EXCHANGES,
    METER_EXCHANGES,
    Exchange,
    ExchangeFile,
)
from opjoule.energy.operations import oplog
from opjoule.energy.operations.tables import SYSTEM
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.energy.trace.journal import TraceJournal
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.record.seals import SealWatch

HOST = Path(__file__).resolve().parents[1]

SECOND = 1_000_000_000
RATE_HZ = 5000
IDLE_S, SETTLE_S = 30, 20
BOARD_NS, METER_NS, HOST_NS = 50 * SECOND, 3 * SECOND, 900 * SECOND
BLOCK_OPERATIONS = 8000
VALUE_BYTES = 1000
ROUNDS = 3
YARDSTICK = """
import sys, time
import numpy as np, pyarrow.parquet as pq
for _ in range(2):
    began_s = time.perf_counter(), time.process_time()
    table = pq.read_table(sys.argv[1], columns=["current_a", "voltage_v"])
    np.cumsum(table["current_a"].to_numpy() * table["voltage_v"].to_numpy())
    print(time.perf_counter() - began_s[0], time.process_time() - began_s[1])
"""


def make(directory: Path, minutes: float, operations: int) -> None:
    """Makes a record as it is when the measurement is killed just before its end."""
    run_s = 60 * minutes
    ends_s = np.cumsum([IDLE_S, run_s, SETTLE_S, IDLE_S]).tolist()
    names = ("idle-before", "run", "settle", "idle-after")
    roles = dict(zip(names, ("baseline", "work", "drain", "baseline"), strict=True))
    phases = [
        {
            "name": name,
            "role": roles[name],
            "repeat": 1,
            "start_board_ns": BOARD_NS + round(start_s * SECOND),
            "end_board_ns": BOARD_NS + round(end_s * SECOND),
            "operations": operations if name == "run" else 0,
        }
        for name, start_s, end_s in zip(names, [1, *ends_s[:-1]], [*ends_s[:-1], ends_s[-1] - 1], strict=True)
    ]
    record = RunRecord.create(
        directory, {"db": "leveldb", "device": "rpi4", "storage": "sd", "workload": "a"}, simulated=True
    )
    seals = SealWatch(directory)
    raw = directory / "raw"
    _trace(directory, seals, ends_s)
    for name, start_ns in ((BOARD_EXCHANGES, BOARD_NS), (METER_EXCHANGES, METER_NS)):
        _exchanges(raw / name, start_ns, ends_s[-1])
    by_kind = _operations(raw / "run-1.oplog", BOARD_NS + IDLE_S * SECOND, run_s, operations)
    _events(raw / "run-1.events.jsonl", BOARD_NS + IDLE_S * SECOND, run_s)
    _system(raw / "repeat-1.system.csv", ends_s)
    seals.stop()
    calibration = SensorCalibration("bench", Correction(1.004, -0.0008), Correction(0.999, 0.002))
    record.update(
        found={"cores": 4, "storage": "sd"},
        sensor=replace(ina219_breakout(1.0), calibration=calibration),
        phases=phases,
        loader={
            "run-1": {
                "operations": operations,
                "by_kind": by_kind,
                "bytes": operations * VALUE_BYTES,
                "duration_s": run_s,
            }
        },
    )


def _trace(directory: Path, seals: SealWatch, ends_s: list[float]) -> None:
    """Writes noise around 0.5 A for idle and settle, around 0.6 A for the run; sealed once a second, as if measured."""
    rng, journal = np.random.default_rng(1), TraceJournal(directory)
    for second in range(round(ends_s[-1])):
        meter_ns = METER_NS + (second * RATE_HZ + np.arange(RATE_HZ, dtype=np.int64)) * (SECOND // RATE_HZ)
        busy = IDLE_S <= second < ends_s[1]
        journal.append_samples(meter_ns, rng.normal(0.6 if busy else 0.5, 0.05, RATE_HZ), np.full(RATE_HZ, 5.0))
        journal.flush()
        seals.seal()
    journal.close()


def _exchanges(path: Path, far_start_ns: int, length_s: float) -> None:
    file, rng = ExchangeFile(path), np.random.default_rng(far_start_ns % 97)
    for number in range(round(length_s * 5)):
        sent_ns, width_ns = HOST_NS + number * SECOND // 5, int(rng.integers(200_000, 400_000))
        far_ns = far_start_ns + number * SECOND // 5 + width_ns // 2
        file.append(Exchange(sent_ns, far_ns, far_ns, sent_ns + width_ns))
    file.close()


def _operations(path: Path, start_ns: int, run_s: float, operations: int) -> dict[str, dict[str, int]]:
    """Writes the log of one thread that is busy nine tenths of the time with reads and updates in random order."""
    rng = np.random.default_rng(2)
    mean_ns = run_s * SECOND / operations
    duration_ns = rng.exponential(0.9 * mean_ns, operations).astype(np.int64)
    duration_ns = (duration_ns * min(0.9 * run_s * SECOND / duration_ns.sum(), 1.0)).astype(np.int64)
    kind = (rng.random(operations) < 0.5).astype(np.int64)
    tag, gap_ns = kind | oplog.OK_BIT, np.full(operations, round(0.1 * mean_ns) - 1)
    sizes = np.array([[oplog.SIZE_TAG | code, VALUE_BYTES, 0] for code in (0, 1)], np.int64)
    header = (oplog.MAGIC, oplog.VERSION, 1 << 16, start_ns, 0)
    with path.open("wb") as file:
        file.write(_sealed(oplog.FILE_HEADER, header))
        for number, at in enumerate(range(0, operations, BLOCK_OPERATIONS)):
            some = slice(at, at + BLOCK_OPERATIONS)
            rows = np.concatenate([sizes, np.stack([tag[some], gap_ns[some], duration_ns[some]], axis=1)])
            payload = _varints(rows.ravel())
            block = (oplog.BLOCK_MAGIC, 0, 0, len(rows), len(payload), start_ns, zlib.crc32(payload))
            file.write(_sealed(oplog.BLOCK_HEADER, block, number) + payload)
            start_ns += int(gap_ns[some].sum() + duration_ns[some].sum())
    counts = np.bincount(kind, minlength=2).tolist()
    return {name: {"count": n, "bytes": n * VALUE_BYTES} for name, n in zip(("read", "update"), counts, strict=True)}


def _sealed(form: oplog.struct.Struct, fields: tuple[object, ...], *last: int) -> bytes:
    """A header with its checksum, which is computed with zero in the checksum's place."""
    end = last or ()
    return form.pack(*fields, zlib.crc32(form.pack(*fields, 0, *end)), *end)


def _varints(values: np.ndarray) -> bytes:
    """LEB128 code of numbers below 2^35, shape (n,)."""
    groups = values[:, None] >> (7 * np.arange(5))
    continues = groups[:, 1:] > 0
    octets = (groups & 0x7F).astype(np.uint8)
    octets[:, :-1] |= continues.astype(np.uint8) << 7
    used = np.concatenate([np.ones((values.size, 1), np.bool_), continues], axis=1)
    return octets[used].tobytes()


def _events(path: Path, start_ns: int, run_s: float) -> None:
    """Writes a flush every second, a compaction every four seconds, and syncs; each takes 50 ms."""
    rng, rows = np.random.default_rng(3), []
    for name, each_s in (("flush", 1.0), ("compaction", 4.0), ("sync", 0.3)):
        begins = start_ns + rng.integers(0, round((run_s - 1) * SECOND), round(run_s / each_s))
        rows += [{"event": name, "board_ns": at, "end_board_ns": at + 50_000_000} for at in begins.tolist()]
    rows.sort(key=lambda row: row["board_ns"])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _system(path: Path, ends_s: list[float]) -> None:
    """Writes the board's counters ten times a second; the medium is written to in three samples of ten."""
    rng, lines = np.random.default_rng(4), [",".join(SYSTEM.names)]
    bytes_so_far = np.cumsum(rng.random(round(ends_s[-1] * 10)) < 0.3) * 1_000_000
    for number, bytes_written in enumerate(bytes_so_far.tolist()):
        row = {
            "board_ns": BOARD_NS + number * SECOND // 10,
            "cpu_busy_s": number / 10,
            "process_cpu_s": number / 20,
            "device_written_bytes": bytes_written,
            "rss_bytes": 1 << 20,
        }
        lines.append(",".join(str(row.get(name, 0)) for name in SYSTEM.names))
    path.write_text("\n".join(lines) + "\n")


def timed(command: list[str]) -> tuple[list[float], float, str]:
    """(wall-clock and processor time [s], peak resident memory [B], output) of one process."""
    began_s = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(HOST)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python keeps the modules that it has compiled
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took_s = time.perf_counter() - began_s
        said.seek(0)
        printed = said.read().decode()
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... ended with {process.returncode}: {printed}")
    return [took_s, usage.ru_utime + usage.ru_stime], usage.ru_maxrss * 1024, printed


Times = list[float]
"""Wall-clock time and processor time [s]."""


class Rounds:
    """Times of the reports and of the yardstick, which run alternately."""

    def __init__(self, directory: Path, run_json: bytes) -> None:
        self._directory, self._run_json = directory, run_json
        self._sampled = directory.with_name(f"{directory.name}.power.parquet")
        self.cold: list[Times] = []
        self.warm: list[Times] = []
        self.reports: dict[str, list[Times]] = {
            "report of a killed record": [],
            "report of a finished one": [],
        }
        self.bytes: dict[str, int] = {}

    def once(self) -> None:
        """Times a report of the killed record, then of the finished one, with the yardstick before and after each."""
        for made in [*self._directory.glob("*.parquet"), self._directory / "result.json"]:
            made.unlink(missing_ok=True)
        (self._directory / "run.json").write_bytes(self._run_json)
        for name, times_of in self.reports.items():
            if self._sampled.exists():
                self._yardstick()
            command = [sys.executable, "-m", "opjoule.cli.start", "report", str(self._directory)]
            times, peak_bytes, _ = timed(command)
            times_of.append(times)
            self.bytes[name] = max(self.bytes.get(name, 0), peak_bytes)
            if not self._sampled.exists():
                shutil.copy(self._directory / "power.parquet", self._sampled)
            self._yardstick()

    def _yardstick(self) -> None:
        _, peak_bytes, printed = timed([sys.executable, "-c", YARDSTICK, str(self._sampled)])
        cold, warm = ([float(number) for number in line.split()] for line in printed.splitlines())
        self.cold.append(cold)
        self.warm.append(warm)
        self.bytes["yardstick"] = max(self.bytes.get("yardstick", 0), peak_bytes)

    def lines(self) -> Iterator[str]:
        """The yardstick's times, then each report's with its ratios."""
        for name, runs in (("cold", self.cold), ("warm", self.warm)):
            yield f"yardstick, {name}: {' and '.join(_spread(runs))} ({len(runs)} times)"
        for name, runs in self.reports.items():
            said = []
            for at, spread in enumerate(_spread(runs)):
                took_s, steps = median(times[at] for times in runs), [times[at] for times in self.cold]
                said.append(f"{spread}, {took_s / median(steps):.1f} ({took_s / min(steps):.1f}) times")
            yield f"{name}: {'; '.join(said)}"
        yield ", ".join(f"{name}: {peak / 1e9:.2f} GB" for name, peak in self.bytes.items())


def _spread(runs: list[Times]) -> list[str]:
    """Median and range of the wall-clock times, and of the processor times."""
    return [
        f"{median(column_s):.2f} s ({min(column_s):.2f} to {max(column_s):.2f}) {of}"
        for column_s, of in zip(zip(*runs, strict=True), ("of wall-clock time", "of processor time"), strict=True)
    ]


def main() -> None:
    """Makes the record, then times reports and yardstick alternately."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--operations", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--keep", type=Path, help="folder to make the record in and to keep it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = options.keep or Path(folder) / "record"
        kept = directory.with_name(f"{directory.name}.run.json")
        if not (directory / "run.json").exists():
            make(directory, options.minutes, options.operations)
            shutil.copy(directory / "run.json", kept)
        rounds = Rounds(directory, kept.read_bytes())
        for _ in range(options.rounds):
            rounds.once()
    print("\n".join(rounds.lines()))


if __name__ == "__main__":
    main()
