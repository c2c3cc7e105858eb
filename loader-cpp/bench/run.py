#!/usr/bin/env python3
"""Compares the loader with the bare loops of its engines, and with other YCSB tools, on this computer.

    loader-cpp/bench/run.py                          every engine, 500,000 records; rewrites docs/benchmarks.md
    loader-cpp/bench/run.py --engines leveldb --records 50000 --pairs 3 --out -
    loader-cpp/bench/run.py --ycsb-cpp PATH/ycsb     with YCSB-cpp (also --go-ycsb PATH, --ycsb FOLDER)

The tools run alternately, pair by pair, so that other work on the computer disturbs both. A ratio is the median of the
pairs' ratios. Uses only the standard library. Builds `loader` and `bare-loop` first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from targets import LOG_BYTES, LOG_MIB, LOG_NS, MEMORY_MIB, START_MS, THREADS_RATIO, Targets, ratios
from tools import (
    ENGINES,
    PAIR_ENGINES,
    SHAPES,
    Bench,
    Case,
    Figures,
    GoYcsb,
    JavaYcsb,
    Peer,
    Tool,
    YcsbCpp,
    bare,
    fresh,
    loader,
    loader_command,
    output_of,
    progress,
)

ROOT = Path(__file__).resolve().parents[2]
ONE_FIELD = "1 x 1000 B"
SECTIONS = ["engines", "operation log", "memory", "threads", "start"]
INPUTS = {
    "drawn": "draw the same keys and values with the\n  loader's own code, one at a time",
    "ready": "have keys and values ready before their\n  clock starts",
}


def interleaved(bench: Bench, case: Case, tools: dict[str, Tool]) -> dict[str, list[Figures]]:
    """Runs every tool once in each round; the first tool changes from round to round."""
    figures: dict[str, list[Figures]] = {name: [] for name in tools}
    names = list(tools)
    for turn in range(bench.pairs):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            # The bare loop reads the loader's database: the engine's state is then the same for both.
            owner = "loader" if case.phase != "load" and name == "bare" else name
            place = bench.folder / f"{case.engine}-{owner}"
            if case.phase == "load":
                fresh(place)
            figures[name].append(tools[name](bench, case, place))
        progress(f"  {case.engine}, {case.shape}, {case.phase}: {turn + 1} of {bench.pairs}")
    return figures


def median_of(figures: list[Figures], what: str) -> float:
    """Median of one figure over the rounds."""
    return float(statistics.median(getattr(one, what) for one in figures))


def ratio_text(tool: list[Figures], other: list[Figures], what: str, inverse: bool = False) -> str:
    """Median and range of the pairs' ratios of tool to bare loop; above 1 the tool is better."""
    values = ratios(tool, other, what, inverse)
    return f"**{statistics.median(values):.3f}** ({min(values):.2f} to {max(values):.2f})"


def case_rows(case: Case, figures: dict[str, list[Figures]]) -> list[str]:
    """Table rows, one for each tool except the bare loop."""
    rows = []
    plain = figures["bare"]
    for name, tool in figures.items():
        if name == "bare":
            continue
        cells = [
            *(case.engine, case.shape, case.phase, name),
            f"{median_of(tool, 'throughput_per_s') / 1000:,.0f}",
            f"{median_of(plain, 'throughput_per_s') / 1000:,.0f}",
            ratio_text(tool, plain, "throughput_per_s"),
            f"{median_of(tool, 'cpu_us'):.2f}",
            f"{median_of(plain, 'cpu_us'):.2f}",
            ratio_text(tool, plain, "cpu_us", inverse=True),
            f"{median_of(tool, 'peak_mib'):.1f}",
            "" if tool[0].anonymous_mib is None else f"{median_of(tool, 'anonymous_mib'):.1f}",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def compared(bench: Bench, case: Case, tools: dict[str, Tool], targets: Targets) -> list[str]:
    """Measures one case. Returns: its table rows."""
    figures = interleaved(bench, case, tools)
    targets.against_bare(case, figures["loader"], figures["bare"])
    return case_rows(case, figures)


def engine_table(bench: Bench, engines: list[str], peers: list[Peer], targets: Targets) -> str:
    """Table of every engine, record shape and phase."""
    columns = [
        *("engine", "record", "phase", "tool", "tool kop/s", "bare kop/s", "throughput ratio"),
        *("tool CPU us/op", "bare CPU us/op", "CPU ratio", "peak RSS MiB", "RssAnon MiB"),
    ]
    rows = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for engine in engines:
        tools: dict[str, Tool] = {"loader": loader, "bare": bare}
        tools |= {peer.name: peer for peer in peers if engine in peer.settings}
        for shape in SHAPES:
            load, read = Case(engine, shape, "load"), Case(engine, shape, "read")
            rows += compared(bench, load, tools, targets)
            # A run that settles, or the last load's background work would disturb the first reads.
            loader(bench, read, bench.folder / f"{engine}-loader", "-p", "settle=auto")
            rows += compared(bench, read, tools, targets)
            if engine == "null":
                continue
            # Peers have no blind update, and they update other fields.
            alone: dict[str, Tool] = {"loader": loader, "bare": bare}
            for phase in ("update", "blind") if engine in PAIR_ENGINES else ("update",):
                rows += compared(bench, Case(engine, shape, phase), alone, targets)
            for name in tools:
                fresh(bench.folder / f"{engine}-{name}")
    return "\n".join(rows)


def operation_log(bench: Bench, targets: Targets) -> str:
    """Cost of the operation log: 10 million operations of the generator alone, with and without the log."""
    bench = bench.sized(bench.records, 1_000_000)
    case = Case("null", "10 x 100 B", "read")
    log = bench.folder / "operations.oplog"
    extra_ns, sizes, extra_mib = [], [], []
    for _ in range(bench.pairs):
        without = loader(bench, case, bench.folder / "none")
        logged = loader(bench, case, bench.folder / "none", "--op-log", str(log))
        extra_ns.append((logged.cpu_us - without.cpu_us) * 1000)
        extra_mib.append((logged.anonymous_mib or 0) - (without.anonymous_mib or 0))
        sizes.append(log.stat().st_size / bench.count(case))
    log.unlink()
    middle, least, most = statistics.median(extra_ns), min(extra_ns), max(extra_ns)
    targets.at_most("operation log: processor time of an operation", LOG_NS, middle, "ns")
    targets.at_most(
        "operation log: memory for 10 million operations, one thread",
        LOG_MIB,
        statistics.median(extra_mib),
        "MiB",
    )
    return (
        f"{bench.count(case):,} reads without a database, with and without the log: {middle:.1f} ns of processor time "
        f"an operation ({least:.1f} to {most:.1f}), {statistics.median(sizes):.2f} bytes, "
        f"{statistics.median(extra_mib):.2f} MiB of memory. "
        "The clock is read in both: once an operation, and once a batch."
    )


def log_bytes(bench: Bench, engine: str, targets: Targets) -> str:
    """Bytes of an operation in the log of a real engine, whose operations take longer."""
    database, log = fresh(bench.folder / "log-size"), bench.folder / "operations.oplog"
    texts = []
    for phase in ("load", "read"):
        case = Case(engine, ONE_FIELD, phase)
        loader(bench, case, database, "--op-log", str(log))
        size = log.stat().st_size / bench.count(case)
        targets.at_most(f"operation log: bytes of an operation, {engine}, {phase}", LOG_BYTES, size, "B")
        texts.append(f"{size:.2f} bytes an operation of a {phase}")
    log.unlink()
    fresh(database)
    return f"With {engine}: {', '.join(texts)}."


def memory(bench: Bench, targets: Targets) -> str:
    """Anonymous memory of loads of 4 GB in which every operation is logged."""
    lines = []
    for engine in ("null", "leveldb"):
        big = bench.sized(400_000 if engine == "null" else 4_000_000, 1)
        database, log = fresh(bench.folder / "memory"), bench.folder / "operations.oplog"
        figures = loader(big, Case(engine, ONE_FIELD, "load"), database, "--op-log", str(log))
        targets.at_most(
            f"anonymous memory, 4 GB loaded and logged, {engine}",
            MEMORY_MIB[engine],
            figures.anonymous_mib or 0,
            "MiB",
        )
        lines.append(f"- {engine}: {figures.anonymous_mib:.1f} MiB anonymous, {figures.peak_mib:.1f} MiB peak RSS.")
        log.unlink()
        fresh(database)
    return "Load of 4,000,000 records of 1000 B with an operation log:\n\n" + "\n".join(lines)


def threads(bench: Bench, engines: list[str], targets: Targets) -> str:
    """Throughput of four threads and of one: reads, and half reads, half updates."""
    rows = ["| engine | operations | 1 thread kop/s | 4 threads kop/s | ratio |", "|---|---|---|---|---|"]
    halves = ["-p", "readproportion=0.5", "-p", "updateproportion=0.5"]
    for engine in (engine for engine in engines if engine != "null"):
        database = fresh(bench.folder / "threads")
        loader(bench, Case(engine, ONE_FIELD, "load"), database, "-p", "settle=auto")
        for name, mix in (("reads", []), ("half updates", halves)):
            case = Case(engine, ONE_FIELD, "read")
            pairs = []
            for _ in range(bench.pairs):
                runs = [loader(bench, case, database, "--threads", count, *mix) for count in ("1", "4")]
                pairs.append([run.throughput_per_s for run in runs])
            one, four = (statistics.median(pair[i] for pair in pairs) / 1000 for i in (0, 1))
            ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
            targets.add(
                f"{engine}, {name}: 4 threads against 1",
                f"at least {THREADS_RATIO:g}",
                f"{ratio:.2f}",
                ratio >= THREADS_RATIO,
                "threads",
            )
            rows.append(f"| {engine} | {name} | {one:,.0f} | {four:,.0f} | **{ratio:.2f}** |")
            progress(f"  threads: {engine}, {name}")
        fresh(database)
    about = (
        f"{bench.operations:,} operations on {bench.records:,} records. If other work shares the processors, four threads\n"
        "also get a larger share of them than one thread. Ratios above 1 then overstate the gain.\n\n"
    )
    return about + "\n".join(rows)


def start_times(bench: Bench, engines: list[str], targets: Targets) -> str:
    """Time from the start of the process to that of the run phase, when database and threads are ready."""
    texts = []
    small = bench.sized(10_000, 100)
    for engine in engines:
        database = fresh(bench.folder / "start")
        loader(small, Case(engine, ONE_FIELD, "load"), database, "-p", "settle=auto")
        times_ms = []
        for _ in range(11):
            command = loader_command(small, Case(engine, ONE_FIELD, "read"), database)
            before_ns = time.monotonic_ns()
            lines = output_of(command).splitlines()
            start_ns = next(json.loads(line)["board_ns"] for line in lines if '"run-start"' in line)
            times_ms.append((start_ns - before_ns) / 1e6)
        targets.at_most(
            f"{engine}: start to first operation, 10,000 records",
            START_MS,
            statistics.median(times_ms),
            "ms",
            "start",
        )
        texts.append(f"{engine} {statistics.median(times_ms):.1f}")
        fresh(database)
    return "From the start of the process to the first operation [ms], median of 11: " + ", ".join(texts) + "."


def introduction(bench: Bench, peers: list[Peer]) -> str:
    """Introduction of the page: the measurement and the computer."""
    load_average = os.getloadavg()[2]
    company = (
        "shared with other work: throughput ratios scatter, so read the ratios of processor time"
        if load_average > 0.5
        else "nothing else ran on it"
    )
    asked = " ".join(sys.argv[1:])
    whole = (
        f"\n- The processor time of {', '.join(peer.name for peer in peers)} is that of its whole process, including opening."
        if peers
        else ""
    )
    return (
        f"Written by `loader-cpp/bench/run.py {asked}`. The tools run alternately on one computer. A ratio is the\n"
        "median of the pairs' ratios (their range in brackets); above 1 the tool is faster or cheaper. The absolute\n"
        "figures hold for this computer only.\n\n"
        f"Computer: {platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}, load average of\n"
        f"the 15 minutes before: {load_average:.1f} ({company}).\n\n"
        f"- {bench.records:,} records, {bench.operations:,} reads or updates by YCSB's Zipfian, 1 thread, {bench.pairs} pairs, the\n"
        "  loader's default engine settings.\n"
        "- `null` is no database, with ten times the amounts. Its bare loop makes keys and values the plain way, with the\n"
        "  standard library.\n"
        f"- The other bare loops {INPUTS[bench.inputs]}. They\n"
        "  move one value of 1000 B, on SQLite as many columns as the record has fields. They read and update the database\n"
        "  that the loader wrote.\n"
        "- `update` is YCSB's: get, merge, put (SQLite: its statement), of whole records; `blind` is a put alone."
        f"{whole}"
    )


def report(bench: Bench, engines: list[str], peers: list[Peer], only: list[str]) -> str:
    """The whole page, with the targets first."""
    targets = Targets()
    sections = {
        "engines": lambda: engine_table(bench, engines, peers, targets),
        "operation log": lambda: operation_log(bench, targets) + "\n\n" + log_bytes(bench, "leveldb", targets),
        "memory": lambda: memory(bench, targets),
        "threads": lambda: threads(bench, engines, targets),
        "start": lambda: start_times(bench, engines, targets),
    }
    body = [f"## {name.capitalize()}\n\n{sections[name]()}" for name in sections if name in only]
    head = ["# Benchmarks of the loader", introduction(bench, peers), "## Targets", targets.table()]
    return "\n\n".join([*head, *body]) + "\n"


def build(folder: Path) -> None:
    """Brings `loader` and `bare-loop` up to date."""
    source = ROOT / "loader-cpp"
    subprocess.run(["cmake", "-S", source, "-B", folder, "-G", "Ninja"], check=True, stdout=subprocess.DEVNULL)
    quiet = subprocess.DEVNULL
    subprocess.run(["cmake", "--build", folder, "--target", "loader", "bare-loop"], check=True, stdout=quiet)


def main() -> None:
    """Runs the benchmark that the command line asks for, and writes its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--operations", type=int, default=500_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="sections to measure")
    parser.add_argument(
        "--inputs",
        choices=sorted(INPUTS),
        default="drawn",
        help="of the bare loops: when keys and values are made",
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "loader")
    parser.add_argument("--dir", type=Path, default=ROOT / "build" / "bench", help="folder for the databases")
    parser.add_argument("--out", default=str(ROOT / "docs" / "benchmarks.md"), help="file for the page; '-' is stdout")
    parser.add_argument("--ycsb-cpp", type=Path, help="the binary of an installed YCSB-cpp")
    parser.add_argument("--go-ycsb", type=Path, help="the binary of an installed go-ycsb")
    parser.add_argument("--ycsb", type=Path, help="the folder of an installed Java YCSB")
    given = parser.parse_args()
    peers: list[Peer] = []
    if given.ycsb_cpp:
        peers.append(YcsbCpp(given.ycsb_cpp.resolve()))
    if given.go_ycsb:
        peers.append(GoYcsb(given.go_ycsb.resolve()))
    if given.ycsb:
        peers.append(JavaYcsb(given.ycsb.resolve() / "bin" / "ycsb.sh"))
    build(given.build)
    given.dir.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        given.build.resolve(), given.dir.resolve(), given.records, given.operations, given.pairs, given.inputs
    )
    text = report(bench, given.engines, peers, given.only)
    if given.out == "-":
        print(text)
    else:
        Path(given.out).write_text(text)


if __name__ == "__main__":
    main()
