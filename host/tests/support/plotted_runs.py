"""SYNTHETIC records of three databases on three media, for the tests of figures; numbers from a formula."""

import copy
from pathlib import Path

from opjoule.results.comparison.index import ConditionRun, as_recorded, write_index
from opjoule.runs.record.run_record import RunRecord
from report_record import RESULT, make_record, put_result

DATABASES = ("leveldb", "rocksdb", "sqlite")
MEDIA = ("sd", "ssd-usb2", "ssd-usb3")
ABOVE_IDLE = "marginal_energy_per_operation_j"
TOLD = {"read": 2e-4, "update": 1.5e-3}
"""What an operation of each kind costs all told, on the best medium with the first database [J]."""
UNTOLD = "too few windows: 3"
"""Reason why a record does not state that of SQLite's reads."""


def scaled(entry, factor):
    """A number of result.json, or a group of them, times a factor."""
    if "value" not in entry:
        return {key: scaled(value, factor) if isinstance(value, dict) else value for key, value in entry.items()}
    made = dict(entry)
    for name in ("value", "u"):
        if isinstance(made[name], float):
            made[name] *= factor
    return made


def result(database, medium, block=1):
    """The usual made-up result, dearer and slower on lesser media; for two of three databases, the parts are known.

    What a read costs all told is not identifiable for the third.
    """
    factor = (1 + DATABASES.index(database)) * (6.0, 2.0, 1.0)[MEDIA.index(medium)] * (1 + 0.04 * (block - 1))
    made = copy.deepcopy(RESULT)
    for key in (
        "energy_j",
        "marginal_energy_j",
        ABOVE_IDLE,
        "energy_per_operation_j",
        "latency_s",
        "duration_s",
    ):
        made[key] = scaled(made[key], factor)
    for key in ("throughput_per_s", "bandwidth_bytes_per_s", "cpu_fraction"):
        made[key] = scaled(made[key], 1 / factor)
    if database != "sqlite":
        total = made["marginal_energy_j"]["value"]
        part = {"u": 0.02 * total, "unit": "J"}
        for name, share in (("flush", 0.1), ("compaction", 0.25), ("write_back", 0.15), ("tail", 0.05)):
            made["by_activity"][name] = {"value": share * total, **part}
        for kind, share in (("read", 0.1), ("update", 0.3)):
            entry_of_kind = made["by_operation"][kind]
            entry_of_kind["energy_per_operation_j"] = {
                "value": share * total / entry_of_kind["count"],
                "u": 1e-6,
                "unit": "J",
            }
            entry_of_kind["identifiable"] = True
    for kind, joules in TOLD.items():
        told = {"value": joules * factor, "u": 0.02 * joules * factor, "unit": "J"}
        if (database, kind) == ("sqlite", "read"):
            told = {"value": None, "u": None, "unit": "J", "reason": UNTOLD}
        made["by_operation"][kind]["all_told_energy_per_operation_j"] = told
    return made


def make_runs(folder: Path, *, blocks=1, simulated=True):
    """A record of each database on each medium, in each block."""
    for block in range(1, blocks + 1):
        for database in DATABASES:
            for medium in MEDIA:
                place = folder / f"{database}-{medium}-{block}"
                make_record(place, simulated=simulated, db=database, storage=medium)
                put_result(place, result(database, medium, block))
    return folder


def make_campaign(folder: Path, *, blocks=2, drift_per_run=0.0):
    """The same records as a campaign's folder, in the order of measuring, a minute a run.

    The requested order has the lesser media first. The last cell's first run failed and was measured again. The energy
    above idle of an operation is multiplied by 1 + n * drift_per_run in the n-th run.
    """
    make_runs(folder, blocks=blocks)
    order = [(database, medium) for database in DATABASES for medium in MEDIA]
    runs, number = [], 0
    for block in range(1, blocks + 1):
        for database, medium in order if block % 2 else order[::-1]:
            place = folder / f"{database}-{medium}-{block}"
            numbers = result(database, medium)
            numbers[ABOVE_IDLE] = scaled(numbers[ABOVE_IDLE], 1 + number * drift_per_run)
            RunRecord.open(place).update(found={"started_utc": f"2026-01-02T03:{number:02}:00+00:00"})
            put_result(place, numbers)
            (place / "report.html").write_text("<title>its own page</title>")
            rank = order.index((database, medium))
            runs.append(ConditionRun(block, {"db": database, "storage": medium}, place.name, rank=rank))
            number += 1
    last = {"db": DATABASES[-1], "storage": MEDIA[-1]}
    make_record(folder / "failed", status="failed", **last)
    (folder / "failed/report.html").write_text("<title>its own page</title>")
    runs.append(ConditionRun(1, last, "failed", rank=len(order) - 1))
    write_index(folder, [as_recorded(folder, run) for run in runs], simulated=True)
    return folder
