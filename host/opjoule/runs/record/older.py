"""Files of earlier schemas in today's form: only words told the kinds of notices and the causes of missing values."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, convert
from msgspec.structs import replace

from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Cause
from opjoule.runs.record.json_file import as_value, plain

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
