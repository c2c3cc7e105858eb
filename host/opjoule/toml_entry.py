"""Common parts of a user's TOML files: tables, axes, and the selection of cells. Uses only the standard library."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opjoule.errors import BadInput, unknown

Entry = Mapping[str, Any]


def check_keys(entry: Entry, known: Iterable[str]) -> None:
    """Checks the keys of a table. Raises: BadInput: a key is not in `known`; names the most similar one."""
    for key in entry:
        if key not in known:
            raise BadInput(unknown("key", key, list(known)))


def table(entry: Entry, key: str) -> Entry:
    """The table [key]; empty if there is none. Raises: BadInput: it is not a table."""
    value = entry.get(key, {})
    if not isinstance(value, dict):
        raise BadInput(f"{key} is not a table: write [{key}]")
    return value


def tables(entry: Entry, key: str) -> tuple[Entry, ...]:
    """All tables [[key]]. Raises: BadInput: it is not a list of tables."""
    values = entry.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise BadInput(f"{key} is not a list of tables: write [[{key}]]")
    return tuple(values)


def axis_values(name: str, values: Any) -> tuple[str, ...]:
    """The values of an axis as text. Raises: BadInput: there is none, or one occurs twice."""
    if not isinstance(values, list) or not values:
        raise BadInput(f"[axes] {name}: give a list of values")
    texts = tuple(map(str, values))
    if len(set(texts)) < len(texts) or not all(text.strip() for text in texts):
        raise BadInput(f"[axes] {name}: name each value once")
    return texts


def check_match(match: Any, axes: Mapping[str, Sequence[str]]) -> None:
    """Checks that a table selects cells. Raises: BadInput: it names no axis, or an unknown axis or value."""
    if not isinstance(match, dict) or not match:
        raise BadInput(
            'name its axes, for example [[exclude]] storage = "emmc", or [[where]] when = { storage = "sd" }'
        )
    for name, wanted in match.items():
        if name not in axes:
            raise BadInput(unknown("axis", name, list(axes)))
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if str(value) not in axes[name]:
                raise BadInput(f"{name} = {value!r} must be one of {', '.join(axes[name])}")


def matches(match: Entry, cell: Mapping[str, str]) -> bool:
    """Whether a cell has the values in `match`, which are one value or a list for each axis."""
    return all(
        cell.get(name) in [str(value) for value in (wanted if isinstance(wanted, list) else [wanted])]
        for name, wanted in match.items()
    )


def where_values(special: Iterable[Entry], cell: Mapping[str, str]) -> dict[str, Any]:
    """Values from the [[where]] tables whose `when` matches a cell; later tables take precedence."""
    values: dict[str, Any] = {}
    for entry in special:
        if matches(entry["when"], cell):
            values |= {key: value for key, value in entry.items() if key != "when"}
    return values


def combinations(values: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """All combinations of the axes' values, each as axis -> value."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
