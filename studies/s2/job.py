"""Study S2 on one store: for each record size and count, the loader loads a new database and does operations on it.

The phases follow one another in one process of the loader, on the open store. The loader reports, on the board's clock,
when the operations of a phase began and ended, and when their writes were on the medium. The joules are those of the
whole time, the latencies those of the operations.
"""

import argparse
import json
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
    "insert": ("insertproportion", "insert"),
    "get": ("readproportion", "read"),
    "update": ("updateproportion", "update"),
    "remove": ("removeproportion", "remove"),
}
"""Phase -> (the loader's property, its name for the operation), in the paper's order."""
GROWN = 5
"""Largest size to which inserts may grow a database, as a multiple of its records."""
DEFAULT_DURABILITY = {"sqlite": "sync", "lmdb": "sync"}
"""Durability of the stores that sync each commit unless they are told otherwise; the others do not sync."""
BULK = 500
"""Records in one transaction of SQLite's load."""
CLOSE = "close"
"""Phase in which a store writes what it still has in memory, and closes."""
LOOKED_AT = 1000
"""Largest flat folder whose files Python reads as well."""
FOLDERS = ("flatfolder", "nestedfolder")
FLAT_FOLDER = FOLDERS[0]
"""The store that keeps each record in a file named by its key, which Python can also read."""
HEADER_BYTES = {1: 12, 3: 4}
"""First byte of a stored record -> bytes before the value of one field. Source: loader-cpp/include/loader/row.h."""


def options():
    """The command line."""
    parser = argparse.ArgumentParser()
    for name in ("loader", "store", "durability", "data", "text", "parts", "seed", "results"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--storage", dest="folder", default="")
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
    def inserts(self):
        """Number of inserts: fewer than `number` if the database would grow too much."""
        return min(self.number, (GROWN - 1) * self.count)

    @property
    def grown(self):
        """Number of records after the inserts."""
        return self.count + self.inserts

    @property
    def operations(self):
        """Number of all operations of the study on this database."""
        return self.grown + (len(OPERATIONS) - 1) * self.number

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
        **({f"{asked.store}.updates": "in-place"} if asked.store in FOLDERS else {}),
        "durability": durability(asked),
        "seed": asked.seed,
    }
    made.update({"valuetext": asked.text or "generated"} if asked.data == "text" else {"valuecharacters": "any"})
    made.update(settings)
    return [part for key, value in made.items() for part in ("-p", f"{key}={value}")]


def durability(asked):
    """The loader's durability, async or sync; `default` is what the store does if it is told nothing."""
    if asked.durability != "default":
        return asked.durability
    return DEFAULT_DURABILITY.get(asked.store, "async")


def phases_of(database, seed):
    """(phase, settings of the loader) after the load, in order. Each phase draws its own keys and values."""
    for at, (phase, (proportion, _)) in enumerate(OPERATIONS.items(), 1):
        records = database.count if phase == "insert" else database.grown
        number = database.inserts if phase == "insert" else database.number
        settings = {"recordcount": records, "operationcount": number, "seed": seed + at}
        settings.update(of_one_kind(proportion))
        yield phase, {**settings, "putback": "true"} if phase == "remove" else settings
        if phase == "get":  # enough of them for joules
            yield phase, {**settings, "operationcount": 0, "maxexecutiontime": LEAST_S}
    each_once = {"operationcount": database.grown, "requestdistribution": "sequential", "valuedigest": "true"}
    yield CLOSE, {"recordcount": database.grown, **of_one_kind("readproportion"), **each_once}


def of_one_kind(proportion):
    """Shares of the kinds of operations: all of them are of one kind."""
    return {**dict.fromkeys((key for key, _ in OPERATIONS.values()), 0), proportion: 1}


def loader(asked, database, command, records, settings, *more):
    """The loader's command line for one phase."""
    program = [asked.loader, command, "--db", asked.store, "--path", f"{asked.folder}/database"]
    return [*program, *properties(asked, database, records, settings), *more]


def check(asked):
    """Makes the loader check its settings, and reports the space of the largest database and the amount of work."""
    for database in asked.databases:
        settings = {"readproportion": 1, "operationcount": 1}
        command = loader(asked, database, "run", database.count, settings, "--check")
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            sys.exit(ran.stderr.strip().splitlines()[-1])
    needed = max(SPACE * database.grown * database.operation_bytes for database in asked.databases)
    moved = sum(database.operations * database.operation_bytes for database in asked.databases)
    print(json.dumps({"bytes": round(needed), "operations": round(moved)}))


class Ended(NamedTuple):
    """A phase of the loader that has ended."""

    start_ns: int
    settle_ns: int
    """End of its operations."""
    end_ns: int
    summary: dict


def run(asked, database, command, phases):
    """Runs one process of the loader: a load or run, then the runs that follow it on the open store.

    Args:
        phases: (phase, settings) of each.
    Returns: (phase, Ended) of each.
    """
    names, settings = [name for name, _ in phases], phases[0][1]
    then = [" ".join(f"{key}={value}" for key, value in more.items()) for _, more in phases[1:]]
    words = [part for more in then for part in ("--then", more)]
    line = loader(asked, database, command, database.count, settings, "--progress", *words)
    ended, at_ns, said = [], {}, ""
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ran:
        for text in ran.stdout:
            entry = json.loads(text) if text.startswith("{") else {}
            if "progress" in entry:
                PROGRESS.within(database, entry["progress"]["operations"])
            elif "phase" in entry:
                at_ns[entry["phase"]] = entry["board_ns"]
            elif "summary" in entry:
                summary = entry["summary"]
                end_ns = at_ns.get("closed", at_ns["settle-end"])
                start_ns = at_ns[f"{summary['command']}-start"]
                ended.append(Ended(start_ns, at_ns["settle-start"], end_ns, summary))
                PROGRESS.add(database, summary["operations"])
            else:
                said = text.strip()
                sys.stderr.write(text)
    if ran.returncode != 0:
        why = said or f"the loader ended with status {ran.returncode}"
        sys.exit(f"{names[max(len(ended), 1) - 1]}, {database.count} records of {database.size}: {why}")
    return [(names[at], one) for at, one in enumerate(ended)]


def mark(database, phase):
    """The name that a phase is marked by."""
    return f"{phase}.{database.size}.{database.count}"


def cell(database):
    """The axes that the job varies."""
    return {"size": database.size, "records": str(database.count)}


def tell(results, database, phase, ended):
    """Marks a phase and writes the loader's results of it.

    Args:
        ended: its runs. The joules are those of all of them, latencies and memory those of the first.
    """
    summary = ended[0].summary
    kind = "insert" if phase == "load" else OPERATIONS[phase][1]
    latency = summary["by_kind"][kind]["latency_s"]
    phase_between(mark(database, phase), ended[0].start_ns, ended[-1].end_ns)
    results.made_by(f"{summary['database']} {summary['database_version']}")
    results.add(
        phase,
        mark=mark(database, phase),
        cell=cell(database),
        operations=sum(run.summary["operations"] for run in ended),
        answer={name: summary[name] for name in ("operations", "bytes")},
        latency_mean_s=latency["mean"],
        latency_min_s=latency["min"],
        latency_max_s=latency["max"],
        settle_s=sum(run.summary["settle_s"] for run in ended),
        peak_memory_bytes=summary["peak_memory_bytes"],
        stored_bytes=ended[-1].summary["database_bytes"],
    )


def look_at_files(asked, by_loader):
    """Compares the loader's digest of all values with plain Python's, for a folder of files."""
    by_files = digest_of_files(asked)
    if by_files != by_loader:
        sys.exit(f"{asked.store} gives wrong answers: the digest of its files is {by_files}, not {by_loader}")


def digest_of_files(asked):
    """The same digest of all files of a folder store: the sum of the CRC-32 of each key and value."""
    total = 0
    for path in Path(asked.folder, "database", "records").iterdir():
        stored = path.read_bytes()
        total += zlib.crc32(stored[HEADER_BYTES[stored[0]] :], zlib.crc32(path.name.encode()))
    return total


def work(asked, results, database):
    """Loads one database, then runs the other phases on it."""
    load = ("load", {"insertproportion": 1})
    after = list(phases_of(database, int(asked.seed)))
    if asked.store == "sqlite":  # an open store's transactions have one size
        load[1]["sqlite.batch"] = BULK
        ended = run(asked, database, "load", [load]) + run(asked, database, "run", after)
    else:
        ended = run(asked, database, "load", [load, *after])
    last = ended[-1][1]
    if asked.store == FLAT_FOLDER and database.grown <= LOOKED_AT:
        look_at_files(asked, last.summary["value_digest"])
    for phase in ("load", *OPERATIONS):
        runs = [run for name, run in ended if name == phase]
        tell(results, database, phase, runs)
    stored = last.summary
    phase_between(mark(database, CLOSE), last.settle_ns, last.end_ns)
    results.add(
        CLOSE,
        mark=mark(database, CLOSE),
        cell=cell(database),
        answer={name: stored[name] for name in ("operations", "bytes", "value_digest")},
        stored_bytes=stored["database_bytes"],
        space_efficiency=stored["bytes"] / stored["database_bytes"],
    )


def main():
    """Runs all sizes and counts, smallest first."""
    asked = options()
    if asked.check:
        check(asked)
        return
    results = Results(asked.results)
    for database in asked.databases:
        work(asked, results, database)
    print(f"{asked.store}: {len(asked.databases)} databases, {Path(asked.folder).name}")


if __name__ == "__main__":
    main()
