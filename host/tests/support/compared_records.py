"""Finished records with given results, one or several in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from msgspec import convert
from opjoule.results.answer import Answer
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.long_table import means
from opjoule.runs.evaluation.quantities.definition import Quantities
from opjoule.runs.record.result import Conclusion
from opjoule.runs.record.run_record import RunRecord

KEY = "marginal_energy_per_operation_j"


def made(place: Path, value: float, *, u: float = 0.0, simulated: bool = False, changes=None, **settings) -> Path:
    """A finished record whose headline is `value` J; `changes` are further numbers of its result."""
    commit, durability = settings.pop("commit", "abc"), settings.pop("durability", "async")
    blocks, reset = settings.pop("blocks", {}), settings.pop("reset", {})
    version = settings.pop("version", "1.23")
    options = {"db": "leveldb", "device": "rpi4", "storage": "sd", "study": "ycsb", "state": [], **settings}
    record = RunRecord.create(place, options, simulated=simulated)
    record.update(
        found={"opjoule": "0.1.0", "commit": commit, "storage": options["storage"]},
        plan={
            "study": {"name": "ycsb", "database": options["db"], **reset},
            "idle_s": 30.0,
            "settle_limit_s": 60.0,
        },
        loader={
            "run-1": {
                "database": options["db"],
                "database_version": version,
                "settings": {"durability": durability},
                "workload": {
                    "recordcount": str(options.get("records", 1000)),
                    "seed": str(options.get("seed", 1)),
                    **blocks,
                },
            }
        },
    )
    number = {"value": value, "u": u, "unit": "J/operation"}
    result = {"schema": {"name": "result", "version": 3}, "simulated": simulated, KEY: number}
    (place / "result.json").write_text(json.dumps({**result, **(changes or {})}))
    record.finish("complete")
    return place


def several(folder: Path, name: str, values, **settings) -> list[str]:
    """Makes a record of one setting for each value. Returns: their paths."""
    return [str(made(folder / f"{name}-{number}", value, **settings)) for number, value in enumerate(values)]


def answer_of(result: Mapping[str, object], quantities: Quantities) -> Answer:
    """The answer of a run without a record that has this result.json."""
    return Answer(cast("RunRecord", None), convert({**result, "numbers": result}, Conclusion), quantities)


def run_of(result: dict[str, object], quantities: Quantities) -> ComparedRun:
    """A run without settings that has this result.json."""
    about = Path("run"), False, {}, None, 0, "", "complete", "", False, {}, {}
    return ComparedRun(*about, means(answer_of(result, quantities).concluded, quantities), quantities)
