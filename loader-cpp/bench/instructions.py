#!/usr/bin/env python3
"""User instructions of an operation: the loader against the bare loop of its engine, counted by valgrind.

    loader-cpp/bench/instructions.py                     LevelDB and SQLite reads, 1 and 10 fields
    loader-cpp/bench/instructions.py --engines leveldb rocksdb --phases read update blind

Counts repeat where times do not, but for the memory allocator: what an engine's malloc takes depends on what else lies
in the heap (up to 1,500 instructions of a LevelDB read, either way). So there are two differences: of everything, and
of what is not the engine's or the C library's, which is the loader's own code. Both are between 12,000 and 2,000
operations on a copy of one database, on the main thread, so that start and end do not count. Needs `valgrind` and the
binaries that loader-cpp/bench/run.py builds.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools import ENGINES, SHAPES, Bench, Case, bare_command, loader, loader_command, progress

ROOT = Path(__file__).resolve().parents[2]
RECORDS, FEW, MANY = 20_000, 2_000, 12_000
OWN = re.compile(r"opjoule::")
LINE = re.compile(r"\s*([\d,]+) \(\s*[\d.]+%\)\s+\S*?:(.*)")


def functions(profile: Path) -> Iterator[tuple[str, int]]:
    """Name and instructions of each function, without what it calls."""
    shown = subprocess.run(
        ["callgrind_annotate", "--threshold=100", str(profile)], capture_output=True, text=True, check=True
    )
    for line in shown.stdout.splitlines():
        if (found := LINE.match(line)) and "PROGRAM TOTALS" not in line:
            yield found.group(2), int(found.group(1).replace(",", ""))


def counted(command: list[str], source: Path, database: Path) -> tuple[int, int]:
    """Instructions of the main thread, all and our own, of one run on a fresh copy."""
    shutil.rmtree(database, ignore_errors=True)
    shutil.copytree(source, database)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls"
        subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                "--separate-threads=yes",
                f"--callgrind-out-file={out}",
                *command,
            ],
            capture_output=True,
            check=True,
        )
        thread = out.with_name("calls-01")
        every = list(functions(thread if thread.exists() else out))
    return sum(count for _, count in every), sum(count for name, count in every if OWN.search(name))


def row(bench: Bench, case: Case) -> str:
    """A table row: everything and our own, for each operation."""
    source, database = bench.folder / f"{case.engine}-source", bench.folder / "copy"
    per_operation = []
    for make in (loader_command, bare_command):
        (few, few_own), (many, many_own) = (
            counted(make(bench.sized(RECORDS, operations), case, database), source, database)
            for operations in (FEW, MANY)
        )
        per_operation.append([(many - few) / (MANY - FEW), (many_own - few_own) / (MANY - FEW)])
    (tool, tool_own), (plain, plain_own) = per_operation
    cells = [case.engine, case.shape, case.phase, f"{tool:,.0f}", f"{plain:,.0f}", f"{tool - plain:+,.0f}"]
    progress(f"  {case.engine}, {case.shape}, {case.phase}")
    return "| " + " | ".join([*cells, f"{tool_own - plain_own:+,.0f}"]) + " |"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engines", nargs="+", default=["leveldb", "sqlite"], choices=ENGINES)
    parser.add_argument("--phases", nargs="+", default=["read"], choices=["read", "update", "blind"])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "loader")
    parser.add_argument("--dir", type=Path, default=ROOT / "build" / "instructions")
    given = parser.parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    bench = Bench(given.build.resolve(), given.dir.resolve(), RECORDS, MANY, 1)
    print("| engine | record | phase | loader | bare loop | difference | of the loader's own code |")
    print("|---|---|---|---|---|---|---|")
    for engine in given.engines:
        for shape in SHAPES:
            source = given.dir / f"{engine}-source"
            shutil.rmtree(source, ignore_errors=True)
            loader(bench, Case(engine, shape, "load"), source, "-p", "settle=auto")
            for phase in given.phases:
                print(row(bench, Case(engine, shape, phase)), flush=True)
    shutil.rmtree(given.dir)


if __name__ == "__main__":
    main()
