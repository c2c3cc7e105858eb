"""The runs that a comparison is given: records, folders of several, and what each one was and found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opjoule.comparison.cell_mean import comparison_side
from opjoule.comparison.index import NOT_MEASURED, ConditionRun, measured_again, read_index
from opjoule.comparison.kept import kept
from opjoule.comparison.settings import RIG, Settings, settings_of, value_bytes
from opjoule.comparison.value_words import label
from opjoule.energy.comparison import Side
from opjoule.errors import BadInput, OpJouleError, RecordFault
from opjoule.evaluation.quantities.definition import Definition, Quantities
from opjoule.opened.answer import Banner, open_answer
from opjoule.record.directory import has_index
from opjoule.record.run_record import RunRecord
from opjoule.studies.definition import SYSTEM


@dataclass(frozen=True)
class ComparedRun:
    """One record with a result."""

    place: Path
    simulated: bool
    condition: Mapping[str, str]
    """Axis -> value, as its index says; empty of a record of its own."""
    index: Path | None
    """The folder whose index names it."""
    rank: int
    """Place of its condition among those of the index, as they were asked for."""
    subject: str
    """What was measured, in the words of its study: a database, a command line."""
    status: str
    started_utc: str
    """ISO 8601; empty where the record does not say."""
    trace_only: bool
    """No workload was run."""
    asked: Mapping[str, Any] = field(repr=False)
    settings: Settings = field(repr=False)
    numbers: Mapping[str, Any] = field(repr=False)
    """result.json."""
    quantities: Quantities = field(repr=False)
    repeats: int | None = None
    """Number of whole cycles whose mean its numbers are."""
    too_short: bool = False
    """Its own warning says that nothing can be concluded from it."""
    warnings: tuple[Banner, ...] = ()
    """How it ended, its faults and its notes."""

    def value(self, axis: str) -> str:
        """What it was in an axis, or in a group of settings, in words."""
        if axis in self.condition:
            return self.condition[axis]
        known = self.settings.get(axis, {})
        if axis == RIG:  # what was asked for under this name is a file
            return " ".join(known.values()) or "default"
        if axis == "value_size" and known:
            return value_bytes(known)
        if (asked := self.asked.get(axis)) is not None and not isinstance(asked, list | bool):
            return str(asked) if "," not in str(asked) else " ".join(known.values())
        return " ".join(known.values()) or "default"

    def words(self, axis: str) -> str:
        """The same for a figure: database and medium by their own names, nothing for what was not said."""
        if axis in ("db", SYSTEM):
            return self.subject
        known = self.value(axis)
        return "" if known == "default" and axis not in self.condition else label(axis, known)

    def side(self, quantity: Definition) -> Side:
        """A quantity with what it may share with other runs. Raises: ValueError: it has none; says why."""
        return comparison_side(self.numbers, quantity)


def gather(places: Iterable[str]) -> tuple[list[ComparedRun], list[str]]:
    """The runs of records, of folders that hold several, and of patterns of either; why others have no result.

    Raises: BadInput: a place that holds none. RecordFault: an index that is damaged.
    """
    by_place: dict[Path, ComparedRun] = {}
    left_out: list[str] = []
    for place in places:
        again: dict[Path, str] = {}
        inside = [one for match in _matching(place) for one in _inside(match, again)]
        if not inside:
            raise BadInput(
                f"{place} holds no record: give runs/NAME, a campaign's folder, or a pattern of them"
            )
        for path, run in inside:
            if path.resolve() in by_place:
                continue
            if run and (other := again.get(path)):
                left_out.append(f"{path}: ended early and was measured again as {other}")
                continue
            try:
                by_place[path.resolve()] = _read(path, run)
            except OpJouleError as error:
                left_out.append(f"{path}: {error}")
    return list(by_place.values()), left_out


def _matching(place: str) -> list[Path]:
    """The place itself, or what its pattern stands for. Raises: BadInput: nothing of that name."""
    path = Path(place)
    if place and path.exists():
        return [path]
    try:
        paths = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) if place else []
    except (ValueError, NotImplementedError, IndexError):  # what glob makes of "a**", of "" and of roots
        paths = []
    if not paths:
        raise BadInput(f"{place}: there is no such record or folder")
    return paths


def _inside(place: Path, again: dict[Path, str]) -> Iterator[tuple[Path, ConditionRun | None]]:
    """Every record in or below a folder, with what the index that names it says of it.

    Args:
        again: filled with the records that an index says were measured again, and as what.
    """
    for name, below, files in os.walk(place):
        folder = Path(name)
        below.sort()
        if has_index(folder):
            below.clear()
            index = read_index(folder)[0]
            again |= {folder / name: other for name, other in measured_again(index).items()}
            measured = (run for run in index if run.status != NOT_MEASURED)
            yield from ((folder / run.folder, run) for run in measured)
        elif "run.json" in files:
            below.clear()
            yield folder, None


def _read(path: Path, named: ConditionRun | None) -> ComparedRun:
    """Raises: RecordFault: unreadable, changed since it ended, or without a result."""
    record = RunRecord.open(path)
    answer = open_answer(record)
    if not answer.result:
        raise RecordFault("; ".join(record.faults) or answer.problem)
    return ComparedRun(
        path,
        record.simulated,
        named.condition if named else {},
        path.parent if named else None,
        named.rank if named else 0,
        answer.subject.name,
        record.status,
        record.run.found.started_utc or "",
        answer.trace_only,
        kept(record.document.get("asked", {})),
        settings_of(record.document),
        kept(answer.result),
        answer.quantities,
        answer.concluded.repeats,
        answer.concluded.too_short,
        tuple(answer.warnings),
    )
