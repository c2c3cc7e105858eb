"""Study S2 on one store: for each record size and count, the loader loads a new database and runs operations on it.

Each phase is a run of the loader. The loader reports, on the board's clock, when its operations began and ended, and
when the store had come to rest and was closed. The joules are those of the whole time, the latencies those of the
operations.
"""

import argparse
import json
import math
import subprocess
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

from opjoule_marks import phase_between
from opjoule_study import LEAST_S, Results

KIB = 1024
BLOCK_BYTES = 4096
SPACE = 3
"""Largest ratio of a store's size to the data put in, including compactions and overflow pages."""
OPERATIONS = {
    "update": ("updateproportion", "update"),
    "get": ("readproportion", "read"),
    "insert": ("insertproportion", "insert"),
    "remove": ("removeproportion", "remove"),
}
"""Phase -> (the loader's property, its name for the operation). In this order, updates and gets find the records with
which the database was loaded; inserts then add records, and removals remove the same number."""
LOOKED_AT = 1000
"""Maximum number of records whose values are checked after the updates, outside of all phases."""
FLAT_FOLDER = "flatfolder"
"""The store that keeps each record in a file named by its key, which Python can also read."""
HEADER_BYTES = {1: 12, 3: 4}
"""First byte of a stored record -> bytes before the value of one field. Source: loader-cpp/include/loader/row.h."""


def options():
    """The command line."""
    parser = argparse.ArgumentParser()
    for name in ("loader", "store", "data", "text", "parts", "seed", "storage", "results"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    asked.databases = [
        SizedStore(part["size"], count, *sizes(part["size"]), part["operations"][0])
        for part in json.loads(asked.parts)
        for count in part["records"]
    ]
    return asked


class SizedStore(NamedTuple):
    """A database that the job creates and measures."""

    size: str
    """The size of its records, in words."""
    count: int
    least_bytes: int
    most_bytes: int
    """Length of a record; every record is shorter than `most_bytes`."""
    number: int
    """Operations of each phase after the load."""

    @property
    def operations(self):
        """Number of all operations of the study on this database."""
        return self.count + len(OPERATIONS) * self.number

    @property
    def operation_bytes(self):
        """Bytes that one operation moves, approximately."""
        return max((self.least_bytes + self.most_bytes) / 2, BLOCK_BYTES)


def sizes(words):
    """(least, most) bytes of a record, from text such as 0-1KiB."""
    low, high = words[: -len("KiB")].split("-")
    return max(int(low) * KIB, 1), int(high) * KIB


class WorkDone:
    """Reports the progress of the job: operations for the rate, bytes for the remaining time."""

    def __init__(self):
        self.operations = 0
        self.done_bytes = 0

    def within(self, database, more):
        """Reports that `more` operations are done in the current run."""
        done = {
            "operations": self.operations + more,
            "done": self.done_bytes + more * database.operation_bytes,
        }
        print(json.dumps({"progress": done}), flush=True)

    def add(self, database, operations):
        """Adds the operations of a finished run."""
        self.within(database, operations)
        self.operations += operations
        self.done_bytes += operations * database.operation_bytes


PROGRESS = WorkDone()


def properties(asked, database, records, settings):
    """The loader's settings of one phase."""
    made = {
        "recordcount": records,
        "fieldcount": 1,
        "fieldlengthdistribution": "uniform",
        "minfieldlength": database.least_bytes,
        "fieldlength": database.most_bytes - 1,
        "updates": "blind",
        "removes": "blind",
        **dict.fromkeys((key for key, _ in OPERATIONS.values()), 0),
    }
    made.update(
        {"valuetext": asked.text or "generated"} if asked.data == "text" else {"valuecharacters": "any"}
    )
    made.update(settings)
    return [part for key, value in made.items() for part in ("-p", f"{key}={value}")]


def loader(asked, database, command, records, settings, *more):
    """The loader's command line for one phase."""
    program = [asked.loader, command, "--db", asked.store, "--path", f"{asked.storage}/database"]
    return [*program, "--seed", asked.seed, *properties(asked, database, records, settings), *more]


def check(asked):
    """Makes the loader check its settings, and reports the space of the largest database and the amount of work."""
    for database in asked.databases:
        settings = {"readproportion": 1, "operationcount": 1}
        command = loader(asked, database, "run", database.count, settings, "--check")
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            sys.exit(ran.stderr.strip().splitlines()[-1])
    needed = max(
        SPACE * (database.count + database.number) * database.operation_bytes for database in asked.databases
    )
    moved = sum(database.operations * database.operation_bytes for database in asked.databases)
    print(json.dumps({"bytes": round(needed), "operations": round(moved)}))


def run(asked, database, phase, command, records, settings, enough=lambda lasted_s: True):
    """One run of the loader, marked as a phase if it was long enough.

    Returns: (its summary, number of marked operations); None in place of the number if it was too short.
    """
    line = loader(asked, database, command, records, settings, "--progress")
    lines, said = [], ""
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ran:
        for text in ran.stdout:
            entry = json.loads(text) if text.startswith("{") else {}
            if "progress" in entry:
                PROGRESS.within(database, entry["progress"]["operations"])
            elif entry:
                lines.append(entry)
            else:
                said = text.strip()
                sys.stderr.write(text)
    if ran.returncode != 0:
        why = said or f"the loader ended with status {ran.returncode}"
        sys.exit(f"{phase}, {database.count} records of {database.size}: {why}")
    at_ns = {line["phase"]: line["board_ns"] for line in lines if "phase" in line}
    start_ns, end_ns, summary = at_ns[f"{command}-start"], at_ns["closed"], lines[-1]["summary"]
    if not enough((end_ns - start_ns) * 1e-9):
        return summary, None
    phase_between(mark(database, phase), start_ns, end_ns)
    return summary, summary["operations"]


def mark(database, phase):
    """The name that a phase is marked by."""
    return f"{phase}.{database.size}.{database.count}"


def read(asked, database, phase, records, settings, kind):
    """Runs the study's gets. If they are too quick for joules, a further run of enough rounds gives the joules.

    Returns: (summary of the study's own run, number of operations to which the joules belong).
    """
    long_enough = {"enough": lambda lasted_s: lasted_s >= LEAST_S}
    summary, marked = run(asked, database, phase, "run", records, settings, **long_enough)
    if marked is None:
        round_s = max(database.number * summary["by_kind"][kind]["latency_s"]["mean"], 1e-6)
        settings = {**settings, "operationcount": database.number * math.ceil(LEAST_S / round_s)}
        _, marked = run(asked, database, phase, "run", records, settings)
    return summary, marked


def tell(results, database, phase, summary, kind, marked, **figures):
    """Writes the loader's results of one phase; `marked`: number of operations to which its joules belong."""
    latency = summary["by_kind"][kind]["latency_s"]
    results.made_by(f"{summary['database']} {summary['database_version']}")
    results.add(
        phase,
        mark=mark(database, phase),
        cell={"size": database.size, "records": str(database.count)},
        operations=marked,
        answer={name: summary[name] for name in ("operations", "bytes", "value_digest") if name in summary},
        latency_mean_s=latency["mean"],
        latency_min_s=latency["min"],
        latency_max_s=latency["max"],
        settle_s=summary["settle_s"],
        peak_memory_bytes=summary["peak_memory_bytes"],
        stored_bytes=summary["database_bytes"],
        **figures,
    )
    PROGRESS.add(database, summary["operations"])


def digest(asked, database):
    """Digest of the current values of the records that were loaded first, computed outside of all phases.

    It is the same for every store in every run. For a folder of files, Python also computes it without the loader.
    """
    number = min(database.count, LOOKED_AT)
    settings = {"readproportion": 1, "operationcount": number, "requestdistribution": "sequential"}
    command = loader(asked, database, "run", database.count, {**settings, "valuedigest": "true"})
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"values of {database.count} records of {database.size}: {ran.stderr.strip()}")
    by_loader = json.loads(ran.stdout.splitlines()[-1])["summary"]["value_digest"]
    if asked.store == FLAT_FOLDER and number == database.count:
        by_files = digest_of_files(asked)
        if by_files != by_loader:
            sys.exit(
                f"{asked.store} gives wrong answers: the digest of its files is {by_files}, not {by_loader}"
            )
    return by_loader


def digest_of_files(asked):
    """The same digest of all files of a folder store: the sum of the CRC-32 of each key and value."""
    total = 0
    for path in Path(asked.storage, "database", "records").iterdir():
        stored = path.read_bytes()
        total += zlib.crc32(stored[HEADER_BYTES[stored[0]] :], zlib.crc32(path.name.encode()))
    return total


def work(asked, results, database):
    """Loads one database, then runs the other phases on it."""
    count = database.count
    loaded, marked = run(asked, database, "load", "load", count, {"insertproportion": 1})
    efficiency = loaded["bytes"] / loaded["database_bytes"]
    tell(results, database, "load", loaded, "insert", marked, space_efficiency=efficiency)
    for phase, (proportion, kind) in OPERATIONS.items():
        records = count + database.number if phase == "remove" else count
        settings = {proportion: 1, "operationcount": database.number}
        if phase == "remove":
            settings["requestdistribution"] = (
                "sequential"  # each key once; the order is random, because keys are hashed
            )
        if phase == "get":
            summary, marked = read(asked, database, phase, records, settings, kind)
            summary["value_digest"] = digest(asked, database)
        else:
            summary, marked = run(asked, database, phase, "run", records, settings)
        tell(results, database, phase, summary, kind, marked)


def main():
    """Runs all sizes and counts, smallest first."""
    asked = options()
    if asked.check:
        check(asked)
        return
    results = Results(asked.results)
    for database in asked.databases:
        work(asked, results, database)
    print(f"{asked.store}: {len(asked.databases)} databases, {Path(asked.storage).name}")


if __name__ == "__main__":
    main()
