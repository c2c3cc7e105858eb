"""TOML: reading the tables of a file, converting a table to a typed struct, the selection of cells, writing values.

A wrong entry is reported in one line: file, key, value, and the allowed values.

Set-up reads tables before msgspec is installed. Therefore only functions that need msgspec import it.
"""

import itertools
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from opjoule.base.errors import BadInput, unknown

T = TypeVar("T")
Entry = Mapping[str, Any]
SHOWN: Final = 60
"""Maximum number of characters of a wrong value in an error message."""
_WORDS: Final = {
    "float": "a number",
    "int": "a whole number",
    "str": "text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "datetime": "a time",
}
"""msgspec's name of a type -> its description for users."""


def read_toml(path: Path, remedy: str = "") -> dict[str, Any]:
    """The tables of a file. Raises: OSError: it cannot be read. BadInput: not valid TOML; ends with `remedy`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        why = "its tables are nested too deep"
    except ValueError as error:  # no TOML, no UTF-8, or a number of thousands of digits
        why = str(error)
    raise BadInput(f"{path} is not valid TOML: {why}" + (f"; {remedy}" if remedy else ""))


def as_table(value: object, where: str) -> dict[str, Any]:
    """The value, if it is a table. Raises: BadInput: it is not a table."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be a table")
    return value


def as_struct(table: object, kind: type[T], where: str, inside: str = "", **known: object) -> T:
    """A table, with the tables inside it, as a value of a msgspec struct or a dataclass.

    Args:
        kind: type whose fields are the table's keys; a field's `Meta(description=...)` describes its values in errors.
        where: file, and the table if it is only a part of the file; errors begin with it.
        inside: dotted name of the table below `where`, with a dot at the end.
        known: fields that the caller has already read.
    Raises: BadInput: it is not a table, or a key is missing, unknown, or has a value of another type.
    """
    import msgspec  # noqa: PLC0415  # not installed yet while set-up reads tables

    hints = get_type_hints(kind, include_extras=True)
    values = dict(known)
    for key, value in as_table(table, f"{where} {inside}".rstrip(" .")).items():
        if key not in hints:
            names = [inside + name for name in sorted(hints)]
            raise BadInput(f"{where} {unknown('key', f'{inside}{key}', names)}")
        if key not in known:
            values[key] = _converted(value, hints[key], where, f"{inside}{key}")
    info: Any = msgspec.inspect.type_info(kind)
    if missing := [field.name for field in info.fields if field.required and field.name not in values]:
        raise BadInput(f"{where} {inside}{missing[0]} is missing")
    try:
        return kind(**values)
    except ValueError as error:
        raise BadInput(f"{where} {inside}{error}") from None


def _converted(value: Any, hint: Any, where: str, name: str) -> Any:
    """A value of a type hint, which may be a struct, or a tuple or dictionary of structs."""
    import msgspec  # noqa: PLC0415  # as in as_struct

    kinds = [part for part in (hint, *get_args(hint)) if isinstance(part, type)]
    structs = [kind for kind in kinds if is_dataclass(kind) or hasattr(kind, "__struct_fields__")]
    if structs and get_origin(hint) is dict:
        entries = as_table(value, f"{where} {name}").items()
        return {key: as_struct(entry, structs[0], where, f"{name}.{key}.") for key, entry in entries}
    if structs and isinstance(value, list) and get_origin(hint) is tuple:
        return tuple(as_struct(part, structs[0], where, f"{name}[{at}].") for at, part in enumerate(value))
    if structs and isinstance(value, dict):
        return as_struct(value, structs[0], where, f"{name}.")
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        words, _, place = str(error).partition(" - at `$")
        if not _description(hint):
            for index in re.findall(r"\[(\d+)\]", place):
                value, name = value[int(index)], f"{name}[{index}]"
        allowed = next(filter(None, map(_description, (hint, *get_args(hint)))), "") or _expected(words)
        raise BadInput(f"{where} {name} must be {allowed}, not {repr(value)[:SHOWN]}") from None


def _description(hint: Any) -> str:
    """Allowed values of a field from its own description; empty if it has none."""
    return next((note.description for note in getattr(hint, "__metadata__", ()) if note.description), "")


def _expected(words: str) -> str:
    """The type that msgspec expected, in words for the user."""
    expected = words.removeprefix("Expected ").partition(", got")[0]
    return re.sub(r"`(\w+)`", lambda match: _WORDS.get(match[1], match[1]), expected)


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


def toml_floats(values: Sequence[float]) -> str:
    """A TOML array."""
    return f"[{', '.join(map(toml_float, values))}]"


def toml_string(words: str) -> str:
    """A TOML basic string. JSON's escapes are valid in TOML; DEL needs an additional escape."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_float(value: float) -> str:
    """A TOML float with 10 digits."""
    text = f"{value:.10g}"
    return text if any(letter in text for letter in ".en") else f"{text}.0"
