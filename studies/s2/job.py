"""Study S2 on one store: for each record size and count a new database is loaded and worked on through the loader.

Each phase is a run of the loader, which says on the board's clock when its operations began, when they ended, and when
the store was at rest and closed: joules are of all of it, latencies of the operations.
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
"""Most that a store takes of what is put in, compactions and overflow pages in it."""
OPERATIONS = {
    "update": ("updateproportion", "update"),
    "get": ("readproportion", "read"),
    "insert": ("insertproportion", "insert"),
    "remove": ("removeproportion", "remove"),
}
"""Phase -> the loader's property, and its name for the operation. In this order updates and gets find as many records
as the database was loaded with; inserts add to them, and removals take as many away."""
LOOKED_AT = 1000
"""Most records whose values are looked at after the updates, outside of all phases."""
FLAT_FOLDER = "flatfolder"
"""The store whose records are files by the names of their keys, which Python reads, too."""
HEADER_BYTES = {1: 12, 3: 4}
"""By a stored record's first byte: bytes before the value of one field. Source: loader-cpp/include/loader/row.h."""


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
    """A database that the job makes and works on."""

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
        """All that the study asks for."""
        return self.count + len(OPERATIONS) * self.number

    @property
    def operation_bytes(self):
        """What one of them moves about."""
        return max((self.least_bytes + self.most_bytes) / 2, BLOCK_BYTES)


def sizes(words):
    """Least and most bytes of a record, from 0-1KiB or the like."""
    low, high = words[: -len("KiB")].split("-")
    return max(int(low) * KIB, 1), int(high) * KIB


class WorkDone:
    """Tells how far the job is: operations for the rate, bytes for what remains."""

    def __init__(self):
        self.operations = 0
        self.done_bytes = 0

    def within(self, database, more):
        """So many operations more are done in what runs now."""
        done = {
            "operations": self.operations + more,
            "done": self.done_bytes + more * database.operation_bytes,
        }
        print(json.dumps({"progress": done}), flush=True)

    def add(self, database, operations):
        """What ran is done."""
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
    """Has the loader check its settings, and says what the largest database takes and how much there is to do."""
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

    Returns: its summary, and how many operations were marked; None: it was too short.
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
    """The study's gets; where they are too quick for joules, those are of a further run, of as many rounds as it takes.

    Returns: the summary of the study's own, and how many operations the joules are of.
    """
    long_enough = {"enough": lambda lasted_s: lasted_s >= LEAST_S}
    summary, marked = run(asked, database, phase, "run", records, settings, **long_enough)
    if marked is None:
        round_s = max(database.number * summary["by_kind"][kind]["latency_s"]["mean"], 1e-6)
        settings = {**settings, "operationcount": database.number * math.ceil(LEAST_S / round_s)}
        _, marked = run(asked, database, phase, "run", records, settings)
    return summary, marked


def tell(results, database, phase, summary, kind, marked, **figures):
    """What the loader says of one phase; `marked`: operations that its joules are of."""
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
    """Digest of the values of the first records that were loaded, whatever an update has made of them; outside of all
    phases. The same for every store, in every run. Of a folder of files it is computed by Python alone as well.
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
                f"{asked.store} gives wrong answers: its files hold values of digest {by_files}, not {by_loader}"
            )
    return by_loader


def digest_of_files(asked):
    """The same of all files of a folder store: the sum of the CRC-32 of each key and value."""
    total = 0
    for path in Path(asked.storage, "database", "records").iterdir():
        stored = path.read_bytes()
        total += zlib.crc32(stored[HEADER_BYTES[stored[0]] :], zlib.crc32(path.name.encode()))
    return total


def work(asked, results, database):
    """One database: loaded, then worked on."""
    count = database.count
    loaded, marked = run(asked, database, "load", "load", count, {"insertproportion": 1})
    efficiency = loaded["bytes"] / loaded["database_bytes"]
    tell(results, database, "load", loaded, "insert", marked, space_efficiency=efficiency)
    for phase, (proportion, kind) in OPERATIONS.items():
        records = count + database.number if phase == "remove" else count
        settings = {proportion: 1, "operationcount": database.number}
        if phase == "remove":
            settings["requestdistribution"] = (
                "sequential"  # each key once; keys are hashed, so in random order
            )
        if phase == "get":
            summary, marked = read(asked, database, phase, records, settings, kind)
            summary["value_digest"] = digest(asked, database)
        else:
            summary, marked = run(asked, database, phase, "run", records, settings)
        tell(results, database, phase, summary, kind, marked)


def main():
    """All sizes and counts, smallest first."""
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
