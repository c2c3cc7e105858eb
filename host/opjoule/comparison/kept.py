"""Compact copies of thousands of runs: equal texts once, and small objects for the numbers of result.json."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

FIELDS: Final = ("value", "u", "unit")


class Number(Mapping[str, Any]):
    """A number of result.json: it reads like its dict, and takes less memory."""

    __slots__ = ("_more", "_u", "_unit", "_value")

    def __init__(self, entry: Mapping[str, Any]) -> None:
        """Raises: KeyError: a field of FIELDS is missing."""
        self._value, self._u, self._unit = entry["value"], entry["u"], kept(entry["unit"])
        self._more = tuple((sys.intern(key), kept(entry[key])) for key in entry if key not in FIELDS)

    def __getitem__(self, key: str) -> Any:
        """A field. Raises: KeyError: it has none of this name."""
        if key in FIELDS:
            return getattr(self, f"_{key}")
        return dict(self._more)[key]

    def __iter__(self) -> Iterator[str]:
        """Names of its fields."""
        yield from FIELDS
        yield from dict(self._more)

    def __len__(self) -> int:
        """Number of its fields."""
        return len(FIELDS) + len(self._more)


def kept(contents: Any) -> Any:
    """The contents of a JSON file in less memory."""
    if isinstance(contents, str):
        return sys.intern(contents)
    if isinstance(contents, Mapping):
        if contents.keys() >= set(FIELDS):
            return Number(contents)
        return {sys.intern(key): kept(value) for key, value in contents.items()}
    return [kept(item) for item in contents] if isinstance(contents, list) else contents


def once(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Shared copy of equal texts by their names."""
    return _once(tuple(texts.items()))


@lru_cache(maxsize=4096)
def _once(texts: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {sys.intern(key): sys.intern(value) for key, value in texts}
