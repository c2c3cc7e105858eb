#!/usr/bin/env python3
"""Compares the loader's operations with those of the real YCSB: the same keys and values, the same distributions.

    loader-cpp/tests/against_ycsb.py [--jars build/ycsb] [--loader build/loader/loader] [--draws 1000000]

The jars are site.ycsb:core:0.17.0 and its dependencies, as pinned in host/requirements/ycsb.
host/tests/loader/test_against_ycsb.py fetches them and runs the same comparisons. YCSB runs its BasicDB, the loader
runs `loader trace`; two-sample chi-square tests compare their outputs. YCSB cannot be seeded, so its draws differ each
time. The significance is 0.000001 for each of the 19 tests, and a correct loader fails one run in about 50,000. Uses
only the standard library.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIGNIFICANCE = 1e-6
LEAST_EXPECTED = 10  # least expected number of draws in a bin; sparser bins are merged

READS = ["readproportion=1", "updateproportion=0"]
MOSTLY_READS = ["readproportion=0.999", "updateproportion=0", "insertproportion=0.001"]
PART = ["insertstart=300", "insertcount=500"]
DISTRIBUTIONS = {
    "uniform": [*READS, "requestdistribution=uniform"],
    "uniform part": [*READS, "requestdistribution=uniform", *PART],
    "zipfian": [*READS, "requestdistribution=zipfian"],
    "zipfian part": [*READS, "requestdistribution=zipfian", *PART],
    "zipfian with inserts": [*MOSTLY_READS, "requestdistribution=zipfian"],
    "shares in percent": [
        "readproportion=99.9", "updateproportion=0", "insertproportion=0.1", "requestdistribution=zipfian",
    ],
    "latest": [*READS, "requestdistribution=latest"],
    "hotspot": [*READS, "requestdistribution=hotspot", "hotspotdatafraction=0.1", "hotspotopnfraction=0.7"],
    "hotspot part": [*READS, "requestdistribution=hotspot", *PART],
    "exponential": [*READS, "requestdistribution=exponential"],
    "sequential": [*READS, "requestdistribution=sequential"],
    "ordered keys": [*READS, "requestdistribution=zipfian", "insertorder=ordered", "zeropadding=12"],
}  # fmt: skip
LOADS = {
    "hashed": [],
    "ordered": ["insertorder=ordered", "zeropadding=8"],
    "part": ["insertstart=100", "insertcount=300"],
}
SCAN_LENGTHS = ("uniform", "zipfian")
FIELD_LENGTHS = ("uniform", "zipfian", "histogram")
DRAWS = 1_000_000


class Tools:
    """Runs both programs; each method returns the output."""

    def __init__(self, jars: Path, loader: Path) -> None:
        self.classpath = str(jars / "*")
        self.loader_path = loader

    def ycsb(self, phase: str, settings: list[str]) -> bytes:
        """Output of the real YCSB: operation lines, with other lines around them."""
        command = [
            "java",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            self.classpath,
            "site.ycsb.Client",
        ]
        command.append("-load" if phase == "load" else "-t")
        command += ["-db", "site.ycsb.BasicDB", "-p", "basicdb.verbose=true"]
        return output_of([*command, "-p", "workload=site.ycsb.workloads.CoreWorkload"], settings)

    def loader(self, phase: str, settings: list[str]) -> bytes:
        """Output of the loader: operation lines."""
        return output_of([str(self.loader_path), "trace", "--phase", phase], settings)

    def both(self, phase: str, settings: list[str]) -> tuple[bytes, bytes]:
        """(the loader's output, YCSB's output); both run at the same time."""
        with ThreadPoolExecutor() as pool:
            ours = pool.submit(self.loader, phase, settings)
            return ours.result(), self.ycsb(phase, settings)


def output_of(command: list[str], settings: list[str]) -> bytes:
    """Standard output of a command with these settings."""
    command = command + [word for setting in settings for word in ("-p", setting)]
    with tempfile.TemporaryFile() as errors:
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, check=False)
        if ended.returncode != 0:
            errors.seek(0)
            raise SystemExit(f"failed: {' '.join(command)}: {errors.read()[-300:].decode(errors='replace')}")
    return ended.stdout


def keys_of(output: bytes, verb: bytes) -> list[bytes]:
    """Keys of the lines of one kind, in order."""
    return re.findall(rb"^" + verb + rb" \S+ (\S+)", output, re.MULTILINE)


def chi_square_p(a: Counter[Hashable], b: Counter[Hashable]) -> float:
    """p-value; null hypothesis: both counts are draws of one distribution (Wilson-Hilferty's normal approximation)."""
    n_a, n_b = sum(a.values()), sum(b.values())
    bins, sparse = [], [0, 0]
    for key in a.keys() | b.keys():
        if (a[key] + b[key]) * min(n_a, n_b) / (n_a + n_b) >= LEAST_EXPECTED:
            bins.append((a[key], b[key]))
        else:
            sparse = [sparse[0] + a[key], sparse[1] + b[key]]
    if sum(sparse) * min(n_a, n_b) / (n_a + n_b) >= LEAST_EXPECTED:
        bins.append((sparse[0], sparse[1]))
    freedom = len(bins) - 1
    if freedom < 1:
        return 1.0
    statistic = sum((x * math.sqrt(n_b / n_a) - y * math.sqrt(n_a / n_b)) ** 2 / (x + y) for x, y in bins)
    normal = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return 0.5 * math.erfc(normal / math.sqrt(2))


class Report:
    """Prints each comparison and collects those that failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def check(self, name: str, good: bool, text: str) -> None:
        """Prints one comparison as a line."""
        line = f"{name}: {text}"
        if not good:
            self.failed.append(line)
        print(f"{'ok  ' if good else 'FAIL'} {line}", flush=True)

    def same_distribution(self, name: str, ours: Counter[Hashable], theirs: Counter[Hashable]) -> None:
        """Prints a chi-square test as a line."""
        p = chi_square_p(ours, theirs)
        self.check(
            name,
            p >= SIGNIFICANCE,
            f"p = {p:.4g}, {sum(ours.values()):,} and {sum(theirs.values()):,} draws of {len(theirs):,} values",
        )


def values_of(line: bytes, fields: int) -> dict[bytes, bytes]:
    """The fields that an INSERT or UPDATE line writes."""
    body = line[line.index(b" [ ") + 3 : -2]
    names = [b"field%d" % i for i in range(fields)]
    starts = sorted((at, name) for name in names if (at := body.find(name + b"=")) >= 0)
    ends = [start - 1 for start, _ in starts[1:]] + [len(body)]
    return {name: body[start + len(name) + 1 : end] for (start, name), end in zip(starts, ends, strict=True)}


def inserts_of(output: bytes) -> list[bytes]:
    """The INSERT lines."""
    return [line for line in output.split(b"\n") if line.startswith(b"INSERT ")]


def compare_keys(tools: Tools, report: Report, draws: int, name: str) -> None:
    """Compares the keys of the requests of one distribution."""
    asked = ["recordcount=1000", f"operationcount={draws}", "fieldlength=1", *DISTRIBUTIONS[name]]
    # Only loaded keys: the count of an inserted key depends on when it was inserted, which differs from run to run.
    loaded = set(keys_of(tools.loader("load", asked), b"INSERT"))
    ours, theirs = (
        Counter[Hashable](key for key in keys_of(output, b"READ") if key in loaded)
        for output in tools.both("run", asked)
    )
    report.same_distribution(f"keys, {name}", ours, theirs)
    report.check(f"keys, {name}", set(ours) == set(theirs), "the same set of keys")


def compare_load(tools: Tools, report: Report, name: str) -> None:
    """Compares what a load inserts: the same keys in the same order, and with dataintegrity the same values."""
    asked = ["recordcount=1000", "fieldcount=3", "fieldlength=70", "dataintegrity=true", *LOADS[name]]
    ours, theirs = (
        [(line.split(b" ")[2], values_of(line, 3)) for line in inserts_of(output)]
        for output in tools.both("load", asked)
    )
    report.check(
        f"load, {name}",
        ours == theirs and len(ours) > 0,
        f"{len(ours)} and {len(theirs)} records, keys and values the same in the same order",
    )


def compare_mix(tools: Tools, report: Report, draws: int) -> None:
    """Compares the kinds of operations, and the fields that they request."""
    shares = {"read": 0.4, "update": 0.3, "scan": 0.1, "insert": 0.1, "readmodifywrite": 0.1}
    # More operations than draws, because scans and inserts choose no field.
    asked = ["recordcount=1000", f"operationcount={draws * 5 // 4}", "fieldlength=1", "readallfields=false"]
    asked += ["maxscanlength=5", *(f"{kind}proportion={share}" for kind, share in shares.items())]
    outputs = tools.both("run", asked)
    ours, theirs = (Counter[Hashable](re.findall(rb"^([A-Z]+) usertable", out, re.MULTILINE)) for out in outputs)
    report.same_distribution("kinds", ours, theirs)
    chosen = re.compile(rb"^(READ|UPDATE) \S+ \S+ \[ (field\d)[ =]", re.MULTILINE)
    ours, theirs = (Counter[Hashable](chosen.findall(out)) for out in outputs)
    report.same_distribution("fields", ours, theirs)


def compare_scan_lengths(tools: Tools, report: Report, draws: int, name: str) -> None:
    """Compares the numbers of records that scans request."""
    asked = ["recordcount=1000", f"operationcount={draws}", "scanproportion=1", "readproportion=0"]
    asked += ["updateproportion=0", "maxscanlength=50", f"scanlengthdistribution={name}"]
    length = re.compile(rb"^SCAN \S+ \S+ (\d+)", re.MULTILINE)
    ours, theirs = (Counter[Hashable](length.findall(output)) for output in tools.both("run", asked))
    report.same_distribution(f"scan lengths, {name}", ours, theirs)


def compare_field_lengths(tools: Tools, report: Report, draws: int, name: str) -> None:
    """Compares the lengths of values of one distribution."""
    fields = 10
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as histogram:
        histogram.write("BlockSize\t10\n0\t2\n1\t3\n2\t4\n3\t1\n")
        histogram.flush()
        asked = [f"recordcount={draws // fields}", f"fieldcount={fields}", "fieldlength=40"]
        asked += [f"fieldlengthdistribution={name}", f"fieldlengthhistogram={histogram.name}"]
        asked += ["minfieldlength=5"] if name == "uniform" else []
        outputs = tools.both("load", asked)
    ours, theirs = (
        Counter[Hashable](len(value) for line in inserts_of(out) for value in values_of(line, fields).values())
        for out in outputs
    )
    report.same_distribution(f"field lengths, {name}", ours, theirs)


def compare_characters(tools: Tools, report: Report, draws: int) -> None:
    """Compares the characters of random values by their place in YCSB's groups of six."""
    asked = [f"recordcount={draws // 60}", "fieldcount=1", "fieldlength=60"]
    counts = []
    for output in tools.both("load", asked):
        seen: Counter[Hashable] = Counter()
        for line in inserts_of(output):
            seen.update((i % 6, c) for i, c in enumerate(values_of(line, 1)[b"field0"]))
        counts.append(seen)
    report.check(
        "characters",
        set(counts[0]) == set(counts[1]),
        f"{len(counts[0])} and {len(counts[1])} pairs of place and character, the same",
    )


def main() -> None:
    """Runs every comparison. Exits with 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path, default=ROOT / "build" / "ycsb")
    parser.add_argument("--loader", type=Path, default=ROOT / "build" / "loader" / "loader")
    parser.add_argument("--draws", type=int, default=DRAWS)
    arguments = parser.parse_args()
    tools, report, draws = Tools(arguments.jars, arguments.loader), Report(), arguments.draws
    for name in LOADS:
        compare_load(tools, report, name)
    for name in DISTRIBUTIONS:
        compare_keys(tools, report, draws, name)
    compare_mix(tools, report, draws)
    for name in SCAN_LENGTHS:
        compare_scan_lengths(tools, report, draws, name)
    for name in FIELD_LENGTHS:
        compare_field_lengths(tools, report, draws, name)
    compare_characters(tools, report, draws)
    print(f"{len(report.failed)} failed; significance {SIGNIFICANCE:g} each")
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
