"""The runs that a comparison is given: records, folders of several, and what each one was and found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opjoule.campaign.index import NOT_MEASURED, has_index, read_index
from opjoule.campaign.settings import Settings, settings_of
from opjoule.energy.comparison import Side
from opjoule.errors import BadInput, OpJouleError
from opjoule.record.definition import Definition, Quantities, Topic
from opjoule.record.result import read_result
from opjoule.record.run_record import RunRecord
from opjoule.record.side import side_of
from opjoule.studies.results import wording_of

COUNTED = (Topic.USAGE, Topic.LATENCY)
"""Quantities of these state no uncertainty of one repeat: what is known of them is how much runs differ."""


@dataclass(frozen=True)
class ComparedRun:
    """One record with a result."""

    place: Path
    simulated: bool
    condition: Mapping[str, str]
    """Axis -> value, as its index says; empty of a record of its own."""
    index: Path | None
    """The folder whose index names it."""
    asked: Mapping[str, Any] = field(repr=False)
    settings: Settings = field(repr=False)
    numbers: Mapping[str, Any] = field(repr=False)
    """result.json."""
    quantities: Quantities = field(repr=False)

    def value(self, axis: str) -> str:
        """What it was in an axis, or in a group of settings, in words."""
        if axis in self.condition:
            return self.condition[axis]
        known = self.settings.get(axis, {})
        if (asked := self.asked.get(axis)) is not None and not isinstance(asked, list | bool):
            return str(asked) if "," not in str(asked) else " ".join(known.values())
        return " ".join(known.values()) or "default"

    def side(self, quantity: Definition) -> Side:
        """A quantity with what it may share with other runs. Raises: ValueError: it has none; says why."""
        if quantity.topic in COUNTED:
            return side_of(_as_counted(self.numbers, quantity.key), quantity)
        return side_of(self.numbers, quantity)


def _as_counted(numbers: Mapping[str, Any], key: str) -> dict[str, Any]:
    """result.json with a count that states no uncertainty as exact, as far as its own run goes."""
    name, _, rest = key.partition(".")
    inside = numbers.get(name, {})
    if rest:
        return {**numbers, name: _as_counted(inside, rest)}
    exact = inside.get("value") is not None and inside.get("u") is None
    return {**numbers, name: {**inside, "u": 0.0} if exact else inside}


def gather(places: Iterable[str]) -> tuple[list[ComparedRun], list[str]]:
    """The runs of records, of folders that hold several, and of patterns of either; why others have no result.

    Raises: BadInput: a place that holds none. RecordFault: an index that is damaged.
    """
    found: dict[Path, ComparedRun] = {}
    left_out: list[str] = []
    for place in places:
        inside = [one for each in _matching(place) for one in _inside(each)]
        if not inside:
            raise BadInput(
                f"{place} holds no record: give runs/NAME, a campaign's folder, or a pattern of them"
            )
        for path, condition, index in inside:
            if path.resolve() in found:
                continue
            try:
                found[path.resolve()] = _read(path, condition, index)
            except OpJouleError as error:
                left_out.append(f"{path}: {error}")
    return list(found.values()), left_out


def _matching(place: str) -> list[Path]:
    """The place itself, or what its pattern stands for. Raises: BadInput: nothing of that name."""
    path = Path(place)
    if place and path.exists():
        return [path]
    try:
        found = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) if place else []
    except (ValueError, NotImplementedError, IndexError):  # what glob makes of "a**", of "" and of roots
        found = []
    if not found:
        raise BadInput(f"{place}: there is no such record or folder")
    return found


def _inside(place: Path) -> Sequence[tuple[Path, Mapping[str, str], Path | None]]:
    """(record, condition, index) of a record, or of everything in a folder."""
    if has_index(place):
        runs = read_index(place)[0]
        return [(place / each.folder, each.condition, place) for each in runs if each.status != NOT_MEASURED]
    if (place / "run.json").exists():
        return [(place, {}, None)]
    inside = sorted(place.iterdir()) if place.is_dir() else []
    return [
        one for each in inside if has_index(each) or (each / "run.json").exists() for one in _inside(each)
    ]


def _read(path: Path, condition: Mapping[str, str], index: Path | None) -> ComparedRun:
    """Raises: RecordFault: unreadable, or without a result."""
    record = RunRecord.open(path)
    numbers = read_result(path).numbers
    return ComparedRun(
        path,
        record.simulated,
        condition,
        index,
        record.document.get("asked", {}),
        settings_of(record.document),
        numbers,
        wording_of(record.run).quantities_of(numbers),
    )
