"""The programs that are compared: our loader, the bare loops, and other YCSB tools."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

PAIR_ENGINES = ("leveldb", "rocksdb", "lmdb", "berkeleydb")
"""Engines that store a record as one value, so that an update can be blind."""
ENGINES = ("null", "leveldb", "rocksdb", "sqlite", "lmdb", "berkeleydb")
SHAPES = {"1 x 1000 B": (1, 1000), "10 x 100 B": (10, 100)}
"""Record shapes: fields, and bytes of each."""
MIB = 1024 * 1024


@dataclass(frozen=True)
class Figures:
    """One run of one tool."""

    throughput_per_s: float
    cpu_us: float
    """Processor time of all its threads for each operation [us]."""
    peak_mib: float
    anonymous_mib: float | None = None


@dataclass(frozen=True)
class Case:
    """One measurement: an engine, a record shape, and load, read, update or blind.

    An update is YCSB's: it writes a whole record, which the engine reads first. A blind update puts without reading.
    """

    engine: str
    shape: str
    phase: str


@dataclass(frozen=True)
class Bench:
    """Folders, and numbers of records, operations and pairs."""

    build: Path
    folder: Path
    records: int
    operations: int
    pairs: int
    inputs: str = "drawn"
    """Keys and values of a bare loop: "drawn" in the loop, or "ready" before it."""

    def amounts(self, engine: str) -> tuple[int, int]:
        """(records, operations); ten times as many without a database, which is that much faster."""
        factor = 10 if engine == "null" else 1
        return self.records * factor, self.operations * factor

    def count(self, case: Case) -> int:
        """Operations of the case's phase."""
        return self.amounts(case.engine)[0 if case.phase == "load" else 1]

    def sized(self, records: int, operations: int) -> Bench:
        """A copy with other amounts."""
        return replace(self, records=records, operations=operations)


Tool = Callable[[Bench, Case, Path], Figures]


def progress(text: str) -> None:
    """Prints a line on stderr."""
    print(text, file=sys.stderr, flush=True)


def fresh(folder: Path) -> Path:
    """Removes a database's folder, and waits until the disk has written everything. Returns: the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    os.sync()
    return folder


def workload(bench: Bench, case: Case) -> list[str]:
    """The workload as -p settings that every tool here understands."""
    records, operations = bench.amounts(case.engine)
    fields, field_bytes = SHAPES[case.shape]
    writes = case.phase in ("update", "blind")
    settings = {
        "recordcount": records,
        "operationcount": operations,
        "fieldcount": fields,
        "fieldlength": field_bytes,
        "readproportion": int(not writes),
        "updateproportion": int(writes),
        "writeallfields": "true",
        "requestdistribution": "zipfian",
        "threadcount": 1,
    }
    return [word for key, value in settings.items() for word in ("-p", f"{key}={value}")]


def output_of(command: list[str]) -> str:
    """A command's standard output; its standard error is ours."""
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def loader_command(bench: Bench, case: Case, database: Path) -> list[str]:
    """The command line of our loader as a user runs it: with latencies, without a log."""
    command = [str(bench.build / "loader"), "load" if case.phase == "load" else "run"]
    command += ["--db", case.engine, "--path", str(database), *workload(bench, case), "-p", "settle=none"]
    return [*command, "-p", "updates=blind"] if case.phase == "blind" else command


def loader(bench: Bench, case: Case, database: Path, *more: str) -> Figures:
    """Figures of one run of our loader."""
    output = output_of([*loader_command(bench, case, database), *more])
    summary = json.loads(output.splitlines()[-1])["summary"]
    return Figures(
        summary["throughput_per_s"],
        summary["cpu_s"] / summary["operations"] * 1e6,
        summary["peak_memory_bytes"] / MIB,
        summary["anonymous_memory_bytes"] / MIB,
    )


def bare_command(bench: Bench, case: Case, database: Path) -> list[str]:
    """The command line of the bare loop, a plain loop around the engine's API."""
    columns = SHAPES[case.shape][0] if case.engine == "sqlite" else 1
    amounts = [*bench.amounts(case.engine), 1000, columns]
    command = [str(bench.build / "bare-loop"), case.engine, case.phase, str(database), *map(str, amounts)]
    return [*command, bench.inputs]


def bare(bench: Bench, case: Case, database: Path) -> Figures:
    """Figures of one run of the bare loop."""
    result = json.loads(output_of(bare_command(bench, case, database)))
    cpu_us = result["cpu_s"] / result["operations"] * 1e6
    return Figures(result["operations"] / result["duration_s"], cpu_us, result["peak_memory_bytes"] / MIB)


def measured_child(bench: Bench, command: list[str], pattern: str, operations: int) -> Figures:
    """Runs another tool. Throughput comes from its own output, processor time and memory from the kernel."""
    output = bench.folder / "tool.out"
    with output.open("w") as out:
        folder = Path(command[0]).parent
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=folder)
        _, status, usage = os.wait4(child.pid, 0)
    text = output.read_text()
    found = re.findall(pattern, text)
    if status != 0 or not found:
        raise SystemExit(f"{' '.join(command)}: failed; its last output:\n{text[-600:]}")
    cpu_us = (usage.ru_utime + usage.ru_stime) / operations * 1e6
    return Figures(float(found[-1]), cpu_us, usage.ru_maxrss / 1024)


class Peer:
    """Another YCSB tool. Subclasses define its command line, with the engine settings of our loader's defaults."""

    name: ClassVar[str]
    settings: ClassVar[dict[str, list[str]]]
    """The tool's engines that are measured, with their settings; {} stands for the database's folder."""
    pattern: ClassVar[str]
    """Regular expression for the throughput in its output."""
    phases: ClassVar[dict[str, str]]

    def __init__(self, binary: Path) -> None:
        self.binary = binary

    def words(self, case: Case) -> list[str]:
        """Arguments for the phase and the engine."""
        return [self.phases[case.phase], case.engine]

    def __call__(self, bench: Bench, case: Case, database: Path) -> Figures:
        """Runs the tool once."""
        database.mkdir(parents=True, exist_ok=True)
        settings = [word for text in self.settings[case.engine] for word in ("-p", text.format(database))]
        command = [str(self.binary), *self.words(case), *workload(bench, case), *settings]
        return measured_child(bench, command, self.pattern, bench.count(case))


class YcsbCpp(Peer):
    """ls4154/YCSB-cpp, built with the engines' bindings. A record is one contiguous value, its default."""

    name = "YCSB-cpp"
    pattern = r"throughput\(ops/sec\): ([0-9.e+]+)"
    phases: ClassVar = {"load": "-load", "read": "-run"}
    settings: ClassVar = {
        "leveldb": [
            "leveldb.dbname={}",
            "leveldb.format=single",
            "leveldb.compression=snappy",
            "leveldb.write_buffer_size=4194304",
            "leveldb.max_file_size=2097152",
            "leveldb.cache_size=8388608",
            "leveldb.filter_bits=0",
        ],
        "rocksdb": [
            "rocksdb.dbname={}",
            "rocksdb.format=single",
            "rocksdb.compression=snappy",
            "rocksdb.write_buffer_size=67108864",
            "rocksdb.cache_size=8388608",
        ],
        "lmdb": ["lmdb.dbpath={}", "lmdb.mapsize=68719476736", "lmdb.nosync=true"],
        "sqlite": [
            "sqlite.dbpath={}/ycsb.sqlite",
            "sqlite.journal_mode=DELETE",
            "sqlite.synchronous=OFF",
            "sqlite.create_table=true",
        ],
    }

    def words(self, case: Case) -> list[str]:
        """Arguments for the phase and the engine."""
        return [self.phases[case.phase], "-db", case.engine]


class GoYcsb(Peer):
    """pingcap/go-ycsb, with the engines of its released binary."""

    name = "go-ycsb"
    pattern = r"(?:INSERT|READ) .*OPS: ([0-9.]+)"
    phases: ClassVar = {"load": "load", "read": "run"}
    settings: ClassVar = {"rocksdb": ["rocksdb.dir={}"], "sqlite": ["sqlite.db={}/ycsb.sqlite"]}


class JavaYcsb(Peer):
    """brianfrankcooper/YCSB: bin/ycsb.sh of an unpacked release with its bindings."""

    name = "YCSB"
    pattern = r"\[OVERALL\], Throughput\(ops/sec\), ([0-9.]+)"
    phases: ClassVar = {"load": "load", "read": "run"}
    settings: ClassVar = {"rocksdb": ["workload=site.ycsb.workloads.CoreWorkload", "rocksdb.dir={}"]}
