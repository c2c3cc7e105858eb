"""Study S2 on one store: for each record count a new database, then insert, update, get and remove through the loader.

Each phase is a run of the loader, which says on the board's clock when its operations began, when they ended, and when
the store was at rest and closed: joules are of all of it, latencies of the operations.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

from opjoule_marks import phase_between
from opjoule_study import LEAST_S, Results

KIB = 1024
BLOCK_BYTES = 4096
SPACE = 3
"""Most that a store takes of what is put in, compactions and overflow pages in it."""
OPERATIONS = {
    "insert": ("insertproportion", "insert"),
    "update": ("updateproportion", "update"),
    "get": ("readproportion", "read"),
    "remove": ("removeproportion", "remove"),
}
"""Phase -> the loader's property, and its name for the operation."""


def options():
    """The command line."""
    parser = argparse.ArgumentParser()
    for name in (
        "loader",
        "store",
        "size",
        "data",
        "text",
        "records",
        "operations",
        "seed",
        "storage",
        "results",
    ):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    low, high = asked.size[: -len("KiB")].split("-")
    asked.least_bytes, asked.most_bytes = max(int(low) * KIB, 1), int(high) * KIB
    asked.counts = [int(each) for each in asked.records.split(",")]
    asked.number = int(asked.operations)
    return asked


def properties(asked, records, further):
    """The loader's settings of one phase."""
    made = {
        "recordcount": records,
        "fieldcount": 1,
        "fieldlengthdistribution": "uniform",
        "minfieldlength": asked.least_bytes,
        "fieldlength": asked.most_bytes - 1,
        "updates": "blind",
        **dict.fromkeys((key for key, _ in OPERATIONS.values()), 0),
    }
    made.update(
        {"valuetext": asked.text or "generated"} if asked.data == "text" else {"valuecharacters": "any"}
    )
    made.update(further)
    return [part for key, value in made.items() for part in ("-p", f"{key}={value}")]


def loader(asked, command, records, further, *more):
    """The loader's command line for one phase."""
    program = [asked.loader, command, "--db", asked.store, "--path", f"{asked.storage}/database"]
    return [*program, "--seed", asked.seed, *properties(asked, records, further), *more]


def check(asked):
    """Has the loader check its settings, and says what the largest database takes."""
    records, further = max(asked.counts), {"readproportion": 1, "operationcount": 1}
    ran = subprocess.run(
        loader(asked, "run", records, further, "--check"), capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        sys.exit(ran.stderr.strip().splitlines()[-1])
    mean_bytes = (asked.least_bytes + asked.most_bytes) / 2
    print(json.dumps({"bytes": round(SPACE * (records + asked.number) * max(mean_bytes, BLOCK_BYTES))}))


def run(asked, phase, count, command, records, further, enough=lambda lasted_s: True):
    """One run of the loader, marked as a phase if it was long enough.

    Returns: its summary, and how many operations were marked; None: it was too short.
    """
    ran = subprocess.run(
        loader(asked, command, records, further), capture_output=True, text=True, check=False
    )
    sys.stderr.write(ran.stderr)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode != 0:
        said = ran.stderr.strip().splitlines()[-1:] or [f"the loader ended with status {ran.returncode}"]
        sys.exit(f"{phase}, {count} records: {said[0]}")
    at_ns = {line["phase"]: line["board_ns"] for line in lines if "phase" in line}
    start_ns, end_ns, summary = at_ns[f"{command}-start"], at_ns["closed"], lines[-1]["summary"]
    if not enough((end_ns - start_ns) * 1e-9):
        return summary, None
    phase_between(f"{phase}.{count}", start_ns, end_ns)
    return summary, summary["operations"]


def read(asked, phase, count, records, further, kind):
    """The study's gets; where they are too quick for joules, those are of a further run, of as many rounds as it takes.

    Returns: the summary of the study's own, and how many operations the joules are of.
    """
    summary, marked = run(
        asked, phase, count, "run", records, further, enough=lambda lasted_s: lasted_s >= LEAST_S
    )
    if marked is None:
        round_s = max(asked.number * summary["by_kind"][kind]["latency_s"]["mean"], 1e-6)
        further = {**further, "operationcount": asked.number * math.ceil(LEAST_S / round_s)}
        _, marked = run(asked, phase, count, "run", records, further)
    return summary, marked


def tell(results, phase, count, summary, kind, marked, **further):
    """What the loader says of one phase; `marked`: operations that its joules are of."""
    latency = summary["by_kind"][kind]["latency_s"]
    results.add(
        phase,
        mark=f"{phase}.{count}",
        cell={"records": str(count)},
        operations=marked,
        answer={"operations": summary["operations"], "bytes": summary["bytes"]},
        latency_mean_s=latency["mean"],
        latency_min_s=latency["min"],
        latency_max_s=latency["max"],
        settle_s=summary["settle_s"],
        peak_memory_bytes=summary["peak_memory_bytes"],
        stored_bytes=summary["database_bytes"],
        **further,
    )


def main():
    """All counts, smallest first."""
    asked = options()
    if asked.check:
        check(asked)
        return
    results = Results(asked.results)
    for count in asked.counts:
        loaded, marked = run(asked, "load", count, "load", count, {"insertproportion": 1})
        efficiency = loaded["bytes"] / loaded["database_bytes"]
        tell(results, "load", count, loaded, "insert", marked, space_efficiency=efficiency)
        for phase, (proportion, kind) in OPERATIONS.items():
            records = count if phase == "insert" else count + asked.number
            further = {proportion: 1, "operationcount": asked.number}
            if phase == "remove":
                further["requestdistribution"] = (
                    "sequential"  # each key once; keys are hashed, so in random order
                )
            if phase == "get":
                summary, marked = read(asked, phase, count, records, further, kind)
            else:
                summary, marked = run(asked, phase, count, "run", records, further)
            tell(results, phase, count, summary, kind, marked)
    print(f"{asked.store}: {len(asked.counts)} databases of {asked.size} records, {Path(asked.storage).name}")


if __name__ == "__main__":
    main()
