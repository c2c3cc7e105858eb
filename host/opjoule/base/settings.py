"""The one place where settings are checked: options, cells of campaigns, tables of TOML, options of a meter, JSON.

A setting is declared as a field of a msgspec struct or dataclass. Its type has the limits, and in `Meta(description=)`
the allowed values in words:

    Seconds = Annotated[float, Meta(ge=0, le=86400, description="a number of seconds from 0 to 86400")]

A wrong one is reported in one line: place, name, allowed values, value, and the most similar name if it is unknown.
What the code calls otherwise than a user's command or file has its key here; only options of cli/ spell it, too.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from opjoule.base.errors import BadInput, unknown

T = TypeVar("T")
MEDIUM: Final = "storage"
"""The medium's key: option, axis, column, and key of rig.toml, plans, records, results and certificates."""
MEDIUM_SENSOR: Final = f"{MEDIUM}_sensor"
"""Key of the sensor in the medium's own supply in run.json."""
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


def written(read: Callable[[str], object], allowed: str, **limits: Any) -> Meta:
    """Limits of a type whose values are written as text in a way of their own, such as 3% or 90min.

    Args:
        read: makes the value from the text. Raises: ValueError: it is not so written.
        allowed: the allowed values in words.
        limits: as of Meta, for the value.
    """
    return Meta(description=allowed, extra={"read": read}, **limits)


def named(values: Mapping[str, object]) -> Meta:
    """Limits of a type whose values have names."""

    def read(name: str) -> object:
        if name not in values:
            raise ValueError
        return values[name]

    return written(read, _one_of(values))


def _one_of(names: Collection[object]) -> str:
    """Some names in words; those of more than two as a list."""
    return " or ".join(map(str, names)) if len(names) < 3 else f"one of {', '.join(map(str, names))}"


def as_table(value: object, where: str) -> dict[str, Any]:
    """The value, if it is a table. Raises: BadInput: it is not a table."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be a table")
    return value


def as_struct(table: object, kind: type[T], where: str, inside: str = "", *, texts: bool = False, **known: object) -> T:
    """A table, with the tables inside it, as a value of a msgspec struct or a dataclass.

    Args:
        kind: type whose fields are the table's keys; `msgspec.field(name=)` gives a field another key.
        where: file, and the table if it is only a part of the file; errors begin with it.
        inside: dotted name of the table below `where`, with a dot at the end.
        texts: True if numbers may be written as texts, as on a command line.
        known: fields that the caller has already read.
    Raises: BadInput: it is not a table, or a key is missing, unknown, or has a value of another type.
    """
    hints, fields = hints_of(kind), _fields_of(kind)
    values = dict(known)
    for key, value in as_table(table, f"{where} {inside}".rstrip(" .")).items():
        if key not in fields:
            names = [inside + name for name in sorted(fields)]
            raise BadInput(f"{where} {unknown('key', f'{inside}{key}', names)}")
        if fields[key] not in known:
            values[fields[key]] = _entry(value, hints[fields[key]], where, f"{inside}{key}", texts=texts)
    required = _required(kind)
    if missing := [key for key, name in fields.items() if name in required and name not in values]:
        raise BadInput(f"{where} {inside}{missing[0]} is missing")
    try:
        return kind(**values)
    except ValueError as error:
        raise BadInput(f"{where} {inside}{error}") from None


def hints_of(kind: Any) -> Mapping[str, Any]:
    """Field -> its type with limits."""
    return _hints(kind)


_hints: Final = cache(partial(get_type_hints, include_extras=True))


def _fields_of(kind: Any) -> Mapping[str, str]:
    """Key in a file -> its field; they differ only where a msgspec struct says so."""
    if dataclasses.is_dataclass(kind):
        return {name: name for name in hints_of(kind)}
    return {field.encode_name: field.name for field in msgspec.structs.fields(kind)}


def _required(kind: Any) -> tuple[str, ...]:
    """Names of the fields without a default."""
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        fields = dataclasses.fields(kind)
        return tuple(field.name for field in fields if field.default is missing and field.default_factory is missing)
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.required)


def _entry(value: Any, hint: Any, where: str, name: str, *, texts: bool) -> Any:
    """A value of a type hint, which may contain structs."""
    kinds = [part for part in (hint, *get_args(hint)) if isinstance(part, type)]
    structs = [kind for kind in kinds if dataclasses.is_dataclass(kind) or hasattr(kind, "__struct_fields__")]
    if get_origin(hint) is dict and isinstance(value, dict):
        of_each = get_args(hint)[1]
        return {key: _entry(entry, of_each, where, f"{name}.{key}", texts=texts) for key, entry in value.items()}
    if structs and isinstance(value, list) and get_origin(hint) is tuple:
        return tuple(as_struct(part, structs[0], where, f"{name}[{at}].", texts=texts) for at, part in enumerate(value))
    if structs and isinstance(value, dict):
        return as_struct(value, structs[0], where, f"{name}.", texts=texts)
    try:
        return setting(value, hint, texts=texts)
    except ValueError as error:
        raise BadInput(f"{where} {name}{error}") from None


def setting(value: Any, hint: Any, *, texts: bool) -> Any:
    """One value of a type with limits.

    Args:
        texts: True if numbers may be written as texts.
    Raises: ValueError: " must be ..., not ...", or "[2] must be ..." for an element of a list.
    """
    made, kind = value, hint
    try:
        if texts and value is not None:
            made, kind = _read(value, hint)
        return msgspec.convert(made, kind, strict=not texts, dec_hook=_path)
    except msgspec.ValidationError as error:
        words, _, place = str(error).partition(" - at `$")
        at, inside = "", [] if _description(kind) else re.findall(r"\[(\d+)\]", place)
        value = made if inside else value
        for index in inside:
            value, at = value[int(index)], f"{at}[{index}]"
        raise ValueError(f"{at} must be {allowed(hint) or _expected(words)}, not {repr(value)[:SHOWN]}") from None
    except ValueError:
        raise ValueError(f" must be {allowed(hint)}, not {repr(value)[:SHOWN]}") from None


def _read(value: Any, hint: Any) -> tuple[Any, Any]:
    """A value as it was written, and the type that it must have, which is not None."""
    while get_origin(hint) is Annotated and not isinstance(hint.__metadata__[0], Meta):
        hint = hint.__origin__
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    if NoneType in get_args(hint) and len(kinds) == 1:
        return _read(value, kinds[0])
    if get_origin(hint) is tuple:
        return [_read(part, kinds[0])[0] for part in (value if isinstance(value, list | tuple) else [value])], hint
    is_text = hint is str or (get_origin(hint) is Literal and isinstance(get_args(hint)[0], str))
    if is_text and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value), hint
    limits = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Meta)]
    if isinstance(value, str) and (read := next(((note.extra or {}).get("read") for note in limits), None)):
        return read(value), hint
    return value, hint


def _path(kind: type, value: object) -> object:
    """A path; an empty one is refused, since it would mean the current folder."""
    if kind is not Path or not isinstance(value, str | Path):
        raise NotImplementedError
    if not str(value).strip():
        raise ValueError
    return Path(value)


def allowed(hint: Any) -> str:
    """Allowed values of a type, in words; empty if it does not say."""
    if hint is Path:
        return "a name, for example runs/bench"
    if get_origin(hint) is Literal:
        return _one_of(get_args(hint))
    return _description(hint) or next(filter(None, map(allowed, get_args(hint))), "")


def _description(hint: Any) -> str:
    notes = getattr(hint, "__metadata__", ())
    return next((note.description for note in notes if isinstance(note, Meta) and note.description), "")


def _expected(words: str) -> str:
    """The type that msgspec expected, in words for the user."""
    expected = words.removeprefix("Expected ").partition(", got")[0]
    return re.sub(r"`(\w+)`", lambda match: _WORDS.get(match[1], match[1]), expected)
