"""JSON files of a record: read with a check of their version, and always replaced as a whole.

Files of earlier schemas are read in the form of today: only words told the kinds of notices and the causes of missing
values.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, convert
from msgspec.structs import replace

from opjoule.base.errors import NewerSchema, OpJouleError, RecordFault
from opjoule.base.files import read_regular, write_whole
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Cause

T = TypeVar("T")


class Schema(msgspec.Struct, frozen=True):
    """Name and version of a file's schema."""

    name: str
    version: int


class _Head(msgspec.Struct):
    schema: Schema


DAMAGE: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors that damaged content raises in its reader."""


DEEPEST: Final = 50
"""Maximum depth of nested lists and objects."""
_STEERS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except newline and tab, marks of the writing direction, and halves of surrogate pairs, which no
file can contain. Source: ECMA-48; Unicode UAX 9."""
_UNESCAPED: Final = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPED: Final = re.compile("\\\\[bfru]")
"""The same characters in JSON text, where control characters are escaped; also matches some harmless escapes."""
_NESTING: Final = (dict, list)


def read_json(
    path: Path,
    schema: Schema,
    check: Callable[[dict[str, Any]], None] = lambda _: None,
    older: Mapping[int, Callable[[dict[str, Any], Path], dict[str, Any]]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Contents of a JSON file with this schema and version, as `visible` gives them.

    Args:
        check: called with the contents as the file has them.
        older: earlier version -> function that gives contents of that version in today's form.
    Raises:
        FileNotFoundError: there is no such file.
        RecordFault: it is unreadable, or has another schema or an older version.
        NewerSchema: it has a newer version.
    """
    try:
        text = read_regular(path).decode("utf-8")
        contents = json.loads(text, parse_constant=_not_finite)
        _check_depth(contents)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as fault:
        raise RecordFault(f"{path} cannot be read: {fault.strerror}") from None
    except (ValueError, RecursionError) as fault:
        raise RecordFault(f"{path} is corrupt: {str(fault).splitlines()[0]}") from None
    stated = as_value(contents, _Head, path).schema
    if stated.name != schema.name:
        raise RecordFault(f"{path}: contains '{visible(stated.name)}', expected '{schema.name}'")
    if stated.version > schema.version:
        raise NewerSchema(path, stated.name, stated.version, schema.version)
    if stated.version < schema.version and stated.version not in older:
        what = f"schema '{stated.name}' version {stated.version}"
        raise RecordFault(f"{path}: {what}, this program reads version {schema.version}")
    check(contents)
    if stated.version < schema.version:
        contents = older[stated.version](contents, path) | {"schema": plain(schema)}
    # Most files have no such character; one search of the text shows it without a visit to every value.
    return dict(_visible(contents) if _may_steer(text) else contents)


def _not_finite(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")


def _check_depth(contents: Any) -> None:
    """Raises: ValueError: lists and objects are nested deeper than in any record, too deep for recursive readers."""
    level = [contents] if isinstance(contents, _NESTING) else []
    for _ in range(DEEPEST):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, _NESTING)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST} deep")


def write_json(path: Path, contents: object) -> None:
    """Replaces a JSON file as a whole: temporary file, fsync, rename, fsync of the directory."""
    # Bytes of a name that are not valid UTF-8 become escapes, which JSON can read back.
    text = json.dumps(plain(contents), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, text.encode("utf-8", errors="backslashreplace"))


def as_value(entry: Any, kind: type[T], path: Path) -> T:
    """Typed value of an entry of a JSON file; unknown keys are ignored. Raises: RecordFault: names a wrong field."""
    try:
        return msgspec.convert(entry, kind, str_keys=True)
    except (*DAMAGE, OpJouleError) as fault:
        line = next(iter(str(fault).splitlines()), "")
        raise RecordFault(f"{path} is corrupt: {line:.200}") from None


def visible(value: Any) -> Any:
    """The value, which may come from a stranger, with control characters and direction marks escaped in every text."""
    return _visible(value) if _may_steer(json.dumps(value, ensure_ascii=False, default=str)) else value


def _may_steer(text: str) -> bool:
    """Whether JSON text may have a character that steers a terminal.

    Searches for single characters are many times as fast as one for a class; nearly every file is ASCII.
    """
    unescaped = "\x7f" in text if text.isascii() else _UNESCAPED.search(text)
    return bool(unescaped or ("\\" in text and _ESCAPED.search(text)))


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return _STEERS.sub(lambda match: match[0].encode("unicode_escape").decode(), value)
    if isinstance(value, dict):
        return {_visible(key): _visible(entry) for key, entry in value.items()}
    return [_visible(entry) for entry in value] if isinstance(value, list) else value


def plain(value: object) -> Any:
    """Builtin values for JSON: structs become objects, keys become text, numpy numbers become Python's."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_foreign)


def _foreign(value: object) -> object:
    import numpy as np  # noqa: PLC0415  # slow to load, and only needed where a record is written

    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written to a JSON file")


_WORDS: Final = (
    (re.compile(r".*interrupted by (the user|SIG).*"), NoticeKind.INTERRUPTED),
    (
        re.compile(r"(?P<line>.*too short to be representative.* samples are needed): (?P<remedy>.*)"),
        NoticeKind.TOO_SHORT,
    ),
    (re.compile(r"operations waited for .*"), NoticeKind.WAITED),
    (re.compile(r"busy computer: (?P<line>.*)"), NoticeKind.BUSY),
    (re.compile(r"unsteady repeats: (?P<line>.*)"), NoticeKind.UNSTEADY),
    (re.compile(r".* stands in for (?P<about>.+?): these are not (?P=about)'s figures"), NoticeKind.STAND_IN),
)
"""Lines that were written in these schemas -> their kinds."""


class _Found3(Struct, frozen=True):
    warnings: tuple[str, ...] = ()


class _Run3(Struct, frozen=True):
    faults: tuple[str, ...] = ()
    found: _Found3 = _Found3()
    withheld: dict[str, str] = {}


class _Result2(Struct, frozen=True):
    warnings: tuple[str, ...] = ()


def run_3(contents: dict[str, Any], path: Path) -> dict[str, Any]:
    """A run.json of version 3, whose faults, warnings and withheld groups were apart."""
    old = as_value(contents, _Run3, path)
    notices = {line: _notice(line, NoticeKind.FAULT) for line in (*old.faults, *old.withheld.values())}
    for group, line in old.withheld.items():
        notices[line] = replace(notices[line], withholds=(*notices[line].withholds, group))
    made = [*notices.values(), *(_notice(line, NoticeKind.NOTE) for line in old.found.warnings)]
    kept = {key: value for key, value in contents.items() if key not in ("faults", "withheld")}
    found = {key: value for key, value in contents.get("found", {}).items() if key != "warnings"}
    return {**kept, "found": found, "notices": plain(made)}


def result_2(contents: dict[str, Any], path: Path) -> dict[str, Any]:
    """A result.json of version 2, whose notices were lines, and whose missing values had no cause."""
    made = [_notice(line, NoticeKind.NOTE) for line in as_value(contents, _Result2, path).warnings]
    kept = {key: value for key, value in contents.items() if key != "warnings"}
    return result_3(kept | {"notices": plain(made)}, path)


_CAUSES: Final = (
    (re.compile(r"(repeat \d+: )?not found: the engine reported no .*"), Cause.NOT_REPORTED),
    (re.compile(f".*: {Cause.LOWER_BOUND}"), Cause.LOWER_BOUND),
    (re.compile(".* samples of idle at the end of the meter's range"), Cause.CLIPPED),
    *((re.compile(rf"(repeat \d+: )?{re.escape(cause)}(:.*)?", re.DOTALL), cause) for cause in Cause if cause),
)
"""Reasons that were written in these schemas -> their causes, the first that fits."""


def result_3(contents: dict[str, Any], path: Path) -> dict[str, Any]:  # called like its elders
    """A result.json of version 3, whose missing values had no cause."""
    return {key: _with_cause(value) for key, value in contents.items()}


def _with_cause(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    said = entry.get("reason")
    if "unit" not in entry or not isinstance(said, str):
        return {key: _with_cause(value) for key, value in entry.items()}
    found = _cause(said)
    return {**entry, "cause": found} if found else entry


@lru_cache(maxsize=1024)
def _cause(said: str) -> str | None:
    """The cause that a reason tells; most quantities of most records share a few reasons."""
    return next((str(cause) for words, cause in _CAUSES if words.fullmatch(said)), None)


def _notice(line: str, otherwise: NoticeKind) -> Notice:
    for words, kind in _WORDS:
        if match := words.fullmatch(line):
            return convert({"kind": kind, "line": line} | match.groupdict(), Notice)
    return Notice(otherwise, line)
