"""conditions.json: the runs of one measurement in several conditions, and each condition's means.

Schema: docs/reference/run-record.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from opjoule.comparison.cell_mean import cell_mean
from opjoule.errors import OpJouleError, RecordFault
from opjoule.evaluation.quantities.definition import Definition
from opjoule.opened.answer import open_answer
from opjoule.record.directory import INDEX, has_index
from opjoule.record.json_file import Schema, as_value, read_json, write_json
from opjoule.record.run_record import RunRecord

SCHEMA: Final = Schema("conditions", 2)
NOT_MEASURED: Final = "not measured"
COMPLETE: Final = "complete"


@dataclass(frozen=True)
class ConditionRun:
    """One run in one condition, in the order of measuring."""

    block: int
    condition: Mapping[str, str]
    """Axis -> value."""
    folder: str
    """Its record's directory below the common one."""
    why: str = ""
    """Why there is no result; empty where there is one, or where it has not been measured yet."""
    status: str = NOT_MEASURED
    result: Mapping[str, Any] | None = None
    compared: Sequence[Definition] = field(default=(), repr=False)
    """What its study compares, the headline first."""
    rank: int = 0
    """Place of the condition among all, as they were asked for."""

    @classmethod
    def of(cls, block: int, condition: Mapping[str, str], number: int, rank: int = 0) -> ConditionRun:
        """One that has not been measured; `number` counts from 1."""
        words = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(condition.values()))
        return cls(block, condition, f"{number:02}-{words}", rank=rank)

    @property
    def name(self) -> str:
        """The condition in words."""
        return " ".join(self.condition.values())


def is_one_of_several(record: Path) -> bool:
    """Is a record one of the runs of its folder: named by an index there, or measured as a block beside another one?"""
    return has_index(record.parent) or (
        _is_block(record)
        and any(_is_block(sibling) for sibling in record.parent.iterdir() if sibling != record)
    )


def measured_again(runs: Sequence[ConditionRun]) -> dict[str, str]:
    """Folder of each run that did not come to its end -> that of the complete one that was measured in its place.

    Only the complete one counts, whatever can still be told from the other's raw files.
    """
    complete = {(run.block, run.name): run.folder for run in runs if run.status == COMPLETE}
    return {
        run.folder: complete[run.block, run.name]
        for run in runs
        if run.status != COMPLETE and (run.block, run.name) in complete
    }


def forget_run(record: Path) -> None:
    """Takes a deleted record out of its folder's index, where that names it."""
    directory = record.parent
    if not (directory / INDEX).exists():
        return
    try:
        runs, simulated = read_index(directory)
        programs = read_json(directory / INDEX, SCHEMA).get("programs", [])
    except OpJouleError:  # made anew by the next start of the campaign
        return
    left = [run for run in runs if run.folder != record.name]
    if left and len(left) < len(runs):
        write_index(directory, left, simulated=simulated, programs=programs)


def _is_block(directory: Path) -> bool:
    """Is it a record that was asked for as one block of several conditions?"""
    try:
        return "block" in RunRecord.open(directory).document.get("asked", {})
    except OpJouleError:
        return False


def write_index(
    directory: Path, runs: Sequence[ConditionRun], *, simulated: bool, programs: Iterable[str] = ()
) -> None:
    """Writes conditions.json: the runs, each condition's means as far as there are results.

    Args:
        programs: versions of OpJoule that the runs were made by.
    """
    entries = [
        {
            "block": run.block,
            "condition": dict(run.condition),
            "folder": run.folder,
            "rank": run.rank,
            "status": run.status,
            "why": run.why,
        }
        for run in runs
    ]
    directory.mkdir(parents=True, exist_ok=True)
    document = {
        "schema": SCHEMA,
        "simulated": simulated,
        "programs": list(programs),
        "runs": entries,
        "conditions": {name: means_of(runs, name) for name in names_of(runs)},
    }
    write_json(directory / INDEX, document)


def read_index(directory: Path) -> tuple[list[ConditionRun], bool]:
    """The runs that the index names, each with what its record says now; whether they are simulated.

    Raises: RecordFault: the index is missing or damaged. NewerSchema: it is of a newer version.
    """
    path = directory / INDEX
    try:
        document = read_json(path, SCHEMA)
    except FileNotFoundError:
        raise RecordFault(f"{path} is not there") from None
    index = as_value(document, _Index, path)
    named = [ConditionRun(run.block, run.condition, run.folder, run.why, rank=run.rank) for run in index.runs]
    return [as_recorded(directory, run) for run in named], index.simulated


class _Entry(Struct, frozen=True):
    block: int
    condition: dict[str, str]
    folder: str
    why: str = ""
    rank: int = 0


class _Index(Struct, frozen=True):
    simulated: bool
    runs: tuple[_Entry, ...]


def as_recorded(directory: Path, run: ConditionRun) -> ConditionRun:
    """The run as its record stands now: status and result, or why there is none."""
    place = directory / run.folder
    if not (place / "run.json").exists():
        return replace(run, why=run.why or NOT_MEASURED, status=NOT_MEASURED)
    try:
        record = RunRecord.open(place)
    except OpJouleError as error:
        return replace(run, why=str(error), status="unreadable")
    recorded = replace(run, status=record.status)
    try:
        answer = open_answer(record)
        if not answer.result:
            return replace(recorded, why=run.why or "; ".join(record.faults) or answer.problem)
        headline = answer.quantities.headline.key
        compared = sorted(answer.quantities.shown("compared"), key=lambda quantity: quantity.key != headline)
        return replace(recorded, why="", result=answer.result, compared=compared)
    except OpJouleError as error:
        return replace(recorded, why=run.why or "; ".join(record.faults) or str(error))


def names_of(runs: Sequence[ConditionRun]) -> list[str]:
    """Every condition once, in the order in which they were asked for; by name where the index does not say."""
    return list(dict.fromkeys(run.name for run in sorted(runs, key=lambda run: (run.rank, run.name))))


def compared_by(runs: Sequence[ConditionRun]) -> list[Definition]:
    """What the studies of the runs compare, each quantity once."""
    return list({quantity.key: quantity for run in runs for quantity in run.compared}.values())


def means_of(runs: Sequence[ConditionRun], name: str) -> dict[str, Any]:
    """Mean of every compared quantity over one condition's runs, by its key (comparison/cell_mean.py)."""
    again = measured_again(runs)
    condition_runs = [run for run in runs if run.name == name and run.folder not in again]
    results = [run.result for run in condition_runs if run.result]
    return {quantity.key: cell_mean(results, quantity) for quantity in compared_by(runs)}
