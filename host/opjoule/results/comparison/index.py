"""conditions.json: the runs of one measurement in several conditions, and each condition's means.

Schema: docs/reference/run-record.md.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from msgspec import Struct

from opjoule.base.errors import BadInput, OpJouleError, RecordFault
from opjoule.results.comparison.cell import ComparedCell
from opjoule.results.comparison.compared_run import ComparedRun, read_compared
from opjoule.runs.evaluation.quantities.definition import Definition
from opjoule.runs.record.directory import INDEX, check_inside, has_index
from opjoule.runs.record.json_file import Schema, as_value, read_json, write_json
from opjoule.runs.record.run_record import RunRecord

SCHEMA: Final = Schema("conditions", 2)
NOT_MEASURED: Final = "not measured"
COMPLETE: Final = "complete"


@dataclass(frozen=True)
class _Entry:
    """What the index says of one run."""

    block: int
    condition: dict[str, str]
    """Axis -> value."""
    folder: str
    """Directory of the run's record, below the campaign's."""
    rank: int = 0
    """Place of the condition among all conditions, in the requested order."""
    status: str = NOT_MEASURED
    why: str = ""
    """Reason why there is no result; empty if there is one, or if the run has not been measured yet."""


@dataclass(frozen=True)
class ConditionRun(_Entry):
    """One run in one condition, in the order of measuring."""

    run: ComparedRun | None = field(default=None, repr=False)
    """The run's result; None if there is none."""

    @classmethod
    def of(cls, block: int, condition: Mapping[str, str], number: int, rank: int = 0) -> Self:
        """A run that has not been measured; `number` counts from 1."""
        words = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(condition.values()))
        return cls(block, dict(condition), f"{number:02}-{words}", rank)

    @property
    def name(self) -> str:
        """The condition as text."""
        return " ".join(self.condition.values())


class _Index(Struct, frozen=True):
    """Contents of conditions.json."""

    schema: Schema
    simulated: bool
    programs: tuple[str, ...] = ()
    runs: tuple[_Entry, ...] = ()
    conditions: dict[str, Any] = {}
    """Condition -> means of its runs; for other programs."""


def is_one_of_several(record: Path) -> bool:
    """Whether an index lists the record, or it was measured as a block next to another."""
    return has_index(record.parent) or (
        _is_block(record) and any(_is_block(sibling) for sibling in record.parent.iterdir() if sibling != record)
    )


def measured_again(runs: Sequence[ConditionRun]) -> dict[str, str]:
    """Folder of each unfinished run -> folder of the complete run that replaces it; only the latter counts."""
    complete = {(run.block, run.name): run.folder for run in runs if run.status == COMPLETE}
    unfinished = {run.folder: (run.block, run.name) for run in runs if run.status != COMPLETE}
    return {folder: complete[cell] for folder, cell in unfinished.items() if cell in complete}


def forget_run(record: Path) -> None:
    """Removes a deleted record from its folder's index, if that lists it."""
    directory = record.parent
    if not (directory / INDEX).exists():
        return
    try:
        (runs, simulated), programs = read_index(directory), _read(directory).programs
    except OpJouleError:  # the next start of the campaign writes it again
        return
    left = [run for run in runs if run.folder != record.name]
    if left and len(left) < len(runs):
        write_index(directory, left, simulated=simulated, programs=programs)


def _is_block(directory: Path) -> bool:
    try:
        return "block" in RunRecord.open(directory).document.get("asked", {})
    except OpJouleError:
        return False


def write_index(
    directory: Path, runs: Sequence[ConditionRun], *, simulated: bool, programs: Iterable[str] = ()
) -> None:
    """Writes conditions.json; `programs`: versions of OpJoule that made the runs."""
    entries = [_Entry(run.block, run.condition, run.folder, run.rank, run.status, run.why) for run in runs]
    means = {name: means_of(runs, name) for name in names_of(runs)}
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / INDEX, _Index(SCHEMA, simulated, tuple(programs), tuple(entries), means))


def read_index(directory: Path) -> tuple[list[ConditionRun], bool]:
    """The runs that the index lists, each as its record is now; and whether they are simulated.

    Raises: RecordFault: the index is missing or damaged. NewerSchema: the index has a newer version.
    """
    index = _read(directory)
    for run in index.runs:
        _check_place(directory, run.folder)
    named = [ConditionRun(run.block, run.condition, run.folder, run.rank, why=run.why) for run in index.runs]
    return [as_recorded(directory, run) for run in named], index.simulated


def _read(directory: Path) -> _Index:
    path = directory / INDEX
    try:
        return as_value(read_json(path, SCHEMA), _Index, path)
    except FileNotFoundError:
        raise RecordFault(f"{path} is not there") from None


def _check_place(directory: Path, folder: str) -> None:
    """Raises: RecordFault: the index names a folder outside of its own, or one that a link leads to."""
    check_inside(directory, folder)
    if (directory / folder).resolve() != directory.resolve() / folder:
        raise RecordFault(f"{directory / INDEX}: {folder!r:.80} leads out of the folder: the index is not opened")


def as_recorded(directory: Path, run: ConditionRun) -> ConditionRun:
    """The run as its record is now: status and result, or the reason why there is none."""
    place = directory / run.folder
    if not (place / "run.json").exists():
        return replace(run, why=run.why or NOT_MEASURED, status=NOT_MEASURED)
    status = "unreadable"
    try:
        record = RunRecord.open(place)
        status = record.status
        return replace(run, why="", status=status, run=read_compared(record, run.condition, run.rank))
    except OpJouleError as error:
        return replace(run, why=run.why or str(error), status=status)


def gather(places: Iterable[str]) -> tuple[list[ComparedRun], list[str]]:
    """Runs of records, of folders with several records, and of patterns of either; and reasons for missing results.

    Raises: BadInput: a place without records. RecordFault: a damaged index.
    """
    by_place: dict[Path, ComparedRun] = {}
    left_out: dict[Path, str] = {}
    for place in places:
        read = [run for match in _matching(place) for run in _inside(match)]
        if not read:
            remedy = "give runs/NAME, a campaign's folder, or a pattern of them"
            raise BadInput(f"{place} holds no record: {remedy}")
        for path, run, why in read:
            if run is None:
                left_out.setdefault(path.resolve(), f"{path}: {why}")
            else:
                by_place.setdefault(path.resolve(), run)
    return list(by_place.values()), [line for path, line in left_out.items() if path not in by_place]


def _matching(place: str) -> list[Path]:
    """The place itself, or the paths that match its pattern. Raises: BadInput: nothing of that name."""
    path = Path(place)
    if place and path.exists():
        return [path]
    try:
        paths = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) if place else []
    except (ValueError, NotImplementedError, IndexError):  # from glob for "a**", "" and roots
        paths = []
    if not paths:
        raise BadInput(f"{place}: there is no such record or folder")
    return paths


def _inside(place: Path) -> Iterator[tuple[Path, ComparedRun | None, str]]:
    """Every record in or below a folder: its directory, the run, and the reason if there is none."""
    for name, below, files in os.walk(place):
        folder = Path(name)
        below.sort()
        if has_index(folder):
            below.clear()
            index = read_index(folder)[0]
            again = measured_again(index)
            for run in index:
                if run.folder in again:
                    why = f"ended early and was measured again as {again[run.folder]}"
                    yield folder / run.folder, None, why
                elif run.status != NOT_MEASURED:
                    yield folder / run.folder, run.run, run.why
        elif "run.json" in files:
            below.clear()
            try:
                yield folder, read_compared(RunRecord.open(folder)), ""
            except OpJouleError as error:
                yield folder, None, str(error)


def with_result(runs: Sequence[ConditionRun]) -> list[ComparedRun]:
    """The runs with a result, without those that were measured again."""
    again = measured_again(runs)
    return [run.run for run in runs if run.run and run.folder not in again]


def names_of(runs: Sequence[ConditionRun]) -> list[str]:
    """All conditions in the requested order, without duplicates; by name if the index has no order."""
    return list(dict.fromkeys(run.name for run in sorted(runs, key=lambda run: (run.rank, run.name))))


def compared_by(runs: Sequence[ConditionRun]) -> list[Definition]:
    """Quantities that the studies of the runs compare, without duplicates."""
    return list({quantity.key: quantity for run in runs if run.run for quantity in run.run.compared}.values())


def cell_of(runs: Sequence[ConditionRun], name: str) -> ComparedCell:
    """The runs of one condition that have a result."""
    return ComparedCell({}, with_result([run for run in runs if run.name == name]))


def means_of(runs: Sequence[ConditionRun], name: str) -> dict[str, Any]:
    """Mean of every compared quantity over one condition's runs, by its key."""
    return {quantity.key: cell_of(runs, name).stated(quantity) for quantity in compared_by(runs)}
