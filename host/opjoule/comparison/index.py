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
from opjoule.comparison.index_file import INDEX, has_index
from opjoule.errors import OpJouleError, RecordFault
from opjoule.evaluation.quantities.definition import Definition
from opjoule.opened.answer import open_answer
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
        _is_block(record) and any(_is_block(each) for each in record.parent.iterdir() if each != record)
    )


def measured_again(runs: Sequence[ConditionRun]) -> dict[str, str]:
    """Folder of each run that did not come to its end -> that of the complete one that was measured in its place.

    Only the complete one counts, whatever can still be told from the other's raw files.
    """
    complete = {(each.block, each.name): each.folder for each in runs if each.status == COMPLETE}
    return {
        each.folder: complete[each.block, each.name]
        for each in runs
        if each.status != COMPLETE and (each.block, each.name) in complete
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
    left = [each for each in runs if each.folder != record.name]
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
            "block": each.block,
            "condition": dict(each.condition),
            "folder": each.folder,
            "rank": each.rank,
            "status": each.status,
            "why": each.why,
        }
        for each in runs
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
    named = [
        ConditionRun(each.block, each.condition, each.folder, each.why, rank=each.rank) for each in index.runs
    ]
    return [as_recorded(directory, each) for each in named], index.simulated


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
    found = replace(run, status=record.status)
    try:
        answer = open_answer(record)
        if not answer.result:
            return replace(found, why=run.why or "; ".join(record.faults) or answer.problem)
        headline = answer.quantities.headline.key
        compared = sorted(answer.quantities.shown("compared"), key=lambda each: each.key != headline)
        return replace(found, why="", result=answer.result, compared=compared)
    except OpJouleError as error:
        return replace(found, why=run.why or "; ".join(record.faults) or str(error))


def names_of(runs: Sequence[ConditionRun]) -> list[str]:
    """Every condition once, in the order in which they were asked for; by name where the index does not say."""
    return list(dict.fromkeys(each.name for each in sorted(runs, key=lambda each: (each.rank, each.name))))


def compared_by(runs: Sequence[ConditionRun]) -> list[Definition]:
    """What the studies of the runs compare, each quantity once."""
    return list({each.key: each for run in runs for each in run.compared}.values())


def means_of(runs: Sequence[ConditionRun], name: str) -> dict[str, Any]:
    """Mean of every compared quantity over one condition's runs, by its key (comparison/cell_mean.py)."""
    again = measured_again(runs)
    own = [each for each in runs if each.name == name and each.folder not in again]
    results = [each.result for each in own if each.result]
    return {each.key: cell_mean(results, each) for each in compared_by(runs)}
