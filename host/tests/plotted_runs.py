"""SYNTHETIC records of three databases on three media, for the tests of figures; numbers from a formula."""

import copy
from pathlib import Path

from report_record import RESULT, make_record, put_result

DATABASES = ("leveldb", "rocksdb", "sqlite")
MEDIA = ("sd", "ssd-usb2", "ssd-usb3")
ABOVE_IDLE = "marginal_energy_per_operation_j"


def scaled(entry, factor):
    """A number of result.json, or a group of them, times a factor."""
    if "value" not in entry:
        return {key: scaled(each, factor) if isinstance(each, dict) else each for key, each in entry.items()}
    made = dict(entry)
    for name in ("value", "u"):
        if isinstance(made[name], float):
            made[name] *= factor
    return made


def result(database, medium, block=1):
    """The usual made-up result, dearer and slower on the lesser media, with parts that are known for two of three."""
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
            own = made["by_operation"][kind]
            own["energy_per_operation_j"] = {"value": share * total / own["count"], "u": 1e-6, "unit": "J"}
            own["identifiable"] = True
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
