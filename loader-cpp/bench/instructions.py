#!/usr/bin/env python3
"""Counts the user instructions of an operation with valgrind, for the loader and for the bare loop of its engine.

    loader-cpp/bench/instructions.py                     LevelDB and SQLite reads, 1 and 10 fields
    loader-cpp/bench/instructions.py --engines leveldb rocksdb --phases read update blind

Each figure is the count of 12,000 operations less the count of 2,000, on copies of one database, on the main thread, so
that start and end do not count. Loader and bare loop do the same operations on the same keys. Even so, the instructions
inside the engine's calls differ by up to some hundred: they depend on the contents of the heap, and on when a
background compaction comes. Our own code is therefore counted separately, and this count is repeatable. It consists of
our functions and the C library's functions that they call, without the engine's calls. Needs `valgrind` and the
binaries of an earlier run of loader-cpp/bench/run.py.

Valgrind hides the kernel's vDSO, where a program reads the clock without a system call. A real clock reading takes
some 65 instructions more than are counted here (73 stepped through on x86_64, 10 counted).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import SHAPES, Bench, Case, bare_command, loader, loader_command, progress

ROOT = Path(__file__).resolve().parents[2]
RECORDS, FEW, MANY = 20_000, 2_000, 12_000
WARM_UP = 200_000
"""Reads before the copies are made, because LevelDB compacts files that were searched in vain."""
OWN = re.compile(r"opjoule::")
ENGINE_CALLS = {
    "leveldb": r"leveldb::",
    "rocksdb": r"rocksdb::",
    "sqlite": r"sqlite3_",
    "berkeleydb": r"Db(Env|Txn|c|t)?::|__",
}
"""Beginnings of the names of each engine's functions. LMDB is left out: its map of 64 GiB is too large for valgrind."""
NAME = re.compile(r"(c?fn)=\((\d+)\)(?: (.*))?")


@dataclass(frozen=True)
class Cost:
    """Instructions of a function itself, or of its calls of another function, including all that this one calls."""

    function: str
    called: str | None
    instructions: int


def costs(profile: Path) -> Iterator[Cost]:
    """Costs in the lines of a callgrind profile. Source: valgrind manual, "Callgrind Format Specification"."""
    names: dict[str, str] = {}
    function, called, is_call = "", None, False
    for line in profile.read_text().splitlines():
        if found := NAME.match(line):
            name = names.setdefault(found.group(2), found.group(3))
            if found.group(1) == "fn":
                function = name
            else:
                called = name
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] and line[0] in "0123456789+-*":
            yield Cost(function, called if is_call else None, int(line.split()[1]))
            is_call = False


def counted(command: list[str], source: Path, database: Path, engine: str) -> tuple[int, int]:
    """(all, our own) instructions of the main thread, in one run on a fresh copy."""
    shutil.rmtree(database, ignore_errors=True)
    shutil.copytree(source, database)
    engine_calls = re.compile(ENGINE_CALLS[engine])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls"
        tool = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}"]
        subprocess.run([*tool, *command], capture_output=True, check=True)
        every = own = 0
        for cost in costs(out.with_name("calls-01")):
            if cost.called is None:
                every += cost.instructions
            of_ours = OWN.search(cost.function) is not None
            to_ours = cost.called is not None and OWN.search(cost.called) is not None
            to_engine = cost.called is not None and engine_calls.match(cost.called) is not None
            if of_ours and not to_ours and not to_engine:
                own += cost.instructions
    return every, own


def row(bench: Bench, case: Case) -> str:
    """A table row: instructions of an operation, in all and of our own code."""
    source, database = bench.folder / f"{case.engine}-source", bench.folder / "copy"
    per_operation = []
    for make in (loader_command, bare_command):
        (few, few_own), (many, many_own) = (
            counted(make(amount, case, database), source, database, case.engine)
            for amount in (bench.sized(RECORDS, operations) for operations in (FEW, MANY))
        )
        per_operation.append([(many - few) / (MANY - FEW), (many_own - few_own) / (MANY - FEW)])
    (tool, tool_own), (plain, plain_own) = per_operation
    cells = [case.engine, case.shape, case.phase, f"{tool:,.0f}", f"{plain:,.0f}", f"{tool - plain:+,.0f}"]
    progress(f"  {case.engine}, {case.shape}, {case.phase}")
    return "| " + " | ".join([*cells, f"**{tool_own - plain_own:+,.0f}**"]) + " |"


def main() -> None:
    """Prints the table for the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", default=["leveldb", "sqlite"], choices=list(ENGINE_CALLS))
    parser.add_argument("--phases", nargs="+", default=["read"], choices=["read", "update", "blind"])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "loader")
    parser.add_argument("--dir", type=Path, default=ROOT / "build" / "instructions")
    given = parser.parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    bench = Bench(given.build.resolve(), given.dir.resolve(), RECORDS, MANY, 1)
    print("| engine | record | phase | loader | bare loop | difference | of it our own code |")
    print("|---|---|---|---|---|---|---|")
    for engine in given.engines:
        for shape in SHAPES:
            source = given.dir / f"{engine}-source"
            shutil.rmtree(source, ignore_errors=True)
            loader(bench, Case(engine, shape, "load"), source, "-p", "settle=auto")
            loader(bench.sized(RECORDS, WARM_UP), Case(engine, shape, "read"), source)
            for phase in given.phases:
                if (engine, phase) != ("sqlite", "blind"):
                    print(row(bench, Case(engine, shape, phase)), flush=True)
    shutil.rmtree(given.dir)


if __name__ == "__main__":
    main()
