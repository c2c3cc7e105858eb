"""Contents of result.json: each quantity of the study with its unit, or the reason for its absence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from opjoule.base.units import Quantity
from opjoule.energy.budget import Budget
from opjoule.runs.evaluation.quantities.definition import Definition, Quantities
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.result import RESULT_SCHEMA

_KIND_KEYS: Final = ("count", "identifiable")
_ALIGNMENT_KEYS: Final = ("method", "checks")
"""Required keys that are not numbers."""


def result_json(entries: Mapping[str, object], *, simulated: bool, quantities: Quantities) -> dict[str, Any]:
    """The contents of result.json from the numbers of a run, as objects or in their JSON form.

    A missing quantity in place of a group (for example `latency_s`) counts for each of its numbers; other keys stay.
    Raises: ValueError: a required key is missing, a number has another unit, or a null has no reason.
    """
    wanted = dict.fromkeys(quantity.top for quantity in quantities if quantity.required)
    if absent := [key for key in wanted if key not in entries]:
        raise ValueError(f"result.json lacks {', '.join(absent)}: give the number, or missing() with its reason")
    contents: dict[str, Any] = plain(stated(entries))
    for key, value in contents.items():
        contents[key] = _whole_group(value, quantities.below(key))
    for quantity in quantities:
        for name, number in _numbers("", contents, quantity.key.split("."), quantity):
            _check_number(name, number, quantity.unit)
    if "alignment" in contents:
        _check_keys("alignment", contents["alignment"], _ALIGNMENT_KEYS)
    kinds = contents.get("by_operation", {})
    for kind, entry in {} if _is_absent(kinds) else kinds.items():
        _check_keys(f"by_operation.{kind}", entry, _KIND_KEYS)
    return {"schema": plain(RESULT_SCHEMA), "simulated": simulated, **contents}


def stated(entry: Any) -> Any:
    """An entry of result.json with the stated fields of each quantity and budget in it."""
    if isinstance(entry, Quantity):
        return entry.stated
    if isinstance(entry, Budget):
        return entry.stated()
    return {key: stated(value) for key, value in entry.items()} if isinstance(entry, Mapping) else entry


def _is_absent(entry: object) -> bool:
    """Whether the entry is a missing number, or a missing group."""
    return isinstance(entry, Mapping) and "reason" in entry and "value" in entry


def _whole_group(entry: Any, group: Sequence[Definition]) -> Any:
    """A group's numbers; a single absent number in its place counts for all of them."""
    names = {definition.key.partition(".")[2]: definition.unit for definition in group}
    if not _is_absent(entry) or any(not name or "*" in name for name in names):
        return entry
    return {name: dict(entry, unit=unit) for name, unit in names.items()} or entry


def _numbers(path: str, entry: Any, below: Sequence[str], definition: Definition) -> Iterator[tuple[str, Any]]:
    """Path and JSON form of each number of one quantity; several if its key contains a `*`."""
    if not below:
        yield path, entry
        return
    name, *rest = below
    if entry is None and not definition.required:
        return
    if not isinstance(entry, Mapping) or (name not in entry and name != "*"):
        if definition.required:
            raise ValueError(f"{path} lacks {name}")
        return
    if name == "*" and _is_absent(entry):
        return
    for key in entry if name == "*" else [name]:
        yield from _numbers(f"{path}.{key}".lstrip("."), entry[key], rest, definition)


def _check_keys(name: str, entry: object, wanted: Sequence[str]) -> None:
    absent = [key for key in wanted if not isinstance(entry, Mapping) or key not in entry]
    if absent:
        raise ValueError(f"{name} lacks {', '.join(absent)}")


def _check_number(name: str, entry: object, unit: str) -> None:
    if unit == "1" and isinstance(entry, int) and not isinstance(entry, bool):
        return
    if not isinstance(entry, Mapping) or not {"value", "u", "unit"} <= set(entry):
        raise ValueError(f"{name} is {entry!r}: give a Quantity, missing with its reason")
    if entry["unit"] != unit and not (entry["value"] is None and not entry["unit"]):
        raise ValueError(f"{name} is in '{entry['unit']}', expected '{unit}'")
    if None in (entry["value"], entry["u"]) and not str(entry.get("reason", "")).strip():
        raise ValueError(f"{name} has a null without a reason")
