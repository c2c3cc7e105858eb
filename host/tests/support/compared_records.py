"""Finished records with given results, one or several in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from msgspec import convert
from opjoule.base.units import Quantity
from opjoule.results.answer import Answer
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.study_rows import StudyTable
from opjoule.results.long_table import means
from opjoule.runs.evaluation.quantities.definition import Quantities
from opjoule.runs.record.result import Conclusion
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.definition import StudyFolder

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
    return _run(means(answer_of(result, quantities).concluded, quantities), quantities)


def _run(
    means: Mapping[str, Quantity], quantities: Quantities, simulated: bool = False, **asked: object
) -> ComparedRun:
    about = Path("record"), simulated, {}, None, 0, "", "complete", "", False, asked, {}
    return ComparedRun(*about, means, quantities)


def phase_run(
    cell: Mapping[str, str],
    phase: str,
    block: int,
    means: Mapping[str, Quantity],
    *,
    simulated: bool = True,
    **about: Any,
) -> ComparedRun:
    """What a study's record shows of one phase of a cell."""
    run = _run(means, Quantities([]), simulated, cell=cell, block=block, **about.pop("asked", {}))
    return replace(run, phase=phase, **about)


def study_table(
    best: Mapping[str, str], rows: Sequence[ComparedRun], *, name: str = "s9", phases: Sequence[str] = (), **shown: Any
) -> StudyTable:
    """The table of a study with these phases; by default with those of the rows."""
    named = dict.fromkeys(phases or (row.phase for row in rows), "")
    return StudyTable(StudyFolder(name, Path(), "A study", phases=named, best=best, **shown), tuple(rows))
