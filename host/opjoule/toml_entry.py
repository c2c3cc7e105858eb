"""What a user's TOML files have in common: tables, axes, and cells that a table names. Standard library alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opjoule.errors import BadInput
from opjoule.suggestion import unknown

Entry = Mapping[str, Any]


def check_keys(entry: Entry, known: Iterable[str]) -> None:
    """Raises: BadInput: a key that is not among them; names the nearest."""
    for key in entry:
        if key not in known:
            raise BadInput(unknown("key", key, list(known)))


def table(entry: Entry, key: str) -> Entry:
    """The table [key]; empty where there is none. Raises: BadInput: it is something else."""
    value = entry.get(key, {})
    if not isinstance(value, dict):
        raise BadInput(f"{key} is not a table: write [{key}]")
    return value


def tables(entry: Entry, key: str) -> tuple[Entry, ...]:
    """All tables [[key]]. Raises: BadInput: it is something else."""
    values = entry.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise BadInput(f"{key} is not a list of tables: write [[{key}]]")
    return tuple(values)


def axis_values(name: str, values: Any) -> tuple[str, ...]:
    """The values of an axis, as texts. Raises: BadInput: none, or one twice."""
    if not isinstance(values, list) or not values:
        raise BadInput(f"[axes] {name}: give a list of values")
    texts = tuple(map(str, values))
    if len(set(texts)) < len(texts) or not all(text.strip() for text in texts):
        raise BadInput(f"[axes] {name}: name each value once")
    return texts


def check_match(match: Any, axes: Mapping[str, Sequence[str]]) -> None:
    """Sees that a table names cells. Raises: BadInput: no axis, or one or a value that there is not."""
    if not isinstance(match, dict) or not match:
        raise BadInput(
            'name the axes it is about: [[exclude]] storage = "emmc", or [[where]] when = { storage = "sd" }'
        )
    for name, wanted in match.items():
        if name not in axes:
            raise BadInput(unknown("axis", name, list(axes)))
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if str(value) not in axes[name]:
                raise BadInput(f"{name} = {value!r} is none of its values: {', '.join(axes[name])}")


def matches(match: Entry, cell: Mapping[str, str]) -> bool:
    """Has a cell the values that are named, one or a list for each axis?"""
    return all(
        cell.get(name) in [str(value) for value in (wanted if isinstance(wanted, list) else [wanted])]
        for name, wanted in match.items()
    )


def where_values(special: Iterable[Entry], cell: Mapping[str, str]) -> dict[str, Any]:
    """What the tables [[where]] that fit a cell say beside their `when`; later ones win."""
    values: dict[str, Any] = {}
    for entry in special:
        if matches(entry["when"], cell):
            values |= {key: value for key, value in entry.items() if key != "when"}
    return values


def combinations(values: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Each combination of the axes' values: axis -> value."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
