"""result.json (docs/reference/run-record.md): every quantity of its study, or the reason for its absence."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from opjoule.base.errors import RecordFault
from opjoule.clocks.cross_check import Check
from opjoule.runs.record.json_file import Schema, as_value, read_json

RESULT_SCHEMA: Final = Schema("result", 2)
TOO_SHORT: Final = "too short to be representative"
"""Part of the warning of a run from which nothing can be concluded."""
WAITED: Final = "operations waited for"
"""Part of the warning of a run in which operations waited for a considerable part of the time."""
BUSY: Final = "busy computer"
"""First words of the warning of a simulated run during which other programs took the computer's processors."""
UNSTEADY: Final = "unsteady repeats"
"""First words of the warning of repeats that differ in their energy or their writes by more than chance."""
NUMBER_MAX: Final = 1e300
"""Limit for the check of a damaged file; no quantity comes near it."""
_WORDS: Final = (str, bool)
_NUMBERS: Final = (int, float)
_STAND_IN: Final = re.compile(r" stands in for (.+?): these are not \1's figures")


class StatedAlignment(Struct, frozen=True):
    """`alignment` without its numbers."""

    method: str | None = None
    """Evidence from which the clock map is made."""
    map: str = ""
    """Name of the map among the clock maps of run.json."""
    checks: tuple[Check, ...] = ()


class StatedTimebase(Struct, frozen=True):
    """`timebase` without its numbers."""

    clock: str = "meter"
    """Clock from which the seconds come: board, host or meter."""


class RepeatValues(Struct, frozen=True):
    """One figure repeat by repeat."""

    n: int
    unit: str
    values: tuple[float, ...]
    standard_deviation: float | None
    """None if there is only one repeat."""


class Conclusion(Struct, frozen=True):
    """Contents of result.json: numbers by their paths in the table of quantities, everything else as typed values."""

    schema: Schema = RESULT_SCHEMA
    simulated: bool = False
    repeats: int | None = None
    warnings: tuple[str, ...] = ()
    """Lines shown above the figures."""
    alignment: StatedAlignment | None = None
    timebase: StatedTimebase = StatedTimebase()
    by_repeat: dict[str, RepeatValues] = {}
    """Path of a quantity -> its values repeat by repeat."""
    numbers: Mapping[str, Any] = {}
    """The whole file; empty if there is none."""

    @property
    def too_short(self) -> bool:
        """True if its warnings state that the run was too short for any conclusion."""
        return any(map(says_too_short, self.warnings))


def says_too_short(line: str) -> bool:
    """True for the warning of a run from which nothing can be concluded."""
    return TOO_SHORT in line


def says_waited(line: str) -> bool:
    """True for the warning of a run in which operations waited for a considerable part of the time."""
    return WAITED in line.lower()


def stand_in_words(software: str, name: str) -> str:
    """The warning of a run in which other software was measured in place of `name`."""
    return f"{software} stands in for {name}: these are not {name}'s figures"


def stands_in_for(line: str) -> str:
    """Name of the software that was replaced, from the warning of a stand-in; empty for any other warning."""
    match = _STAND_IN.search(line)
    return match[1] if match else ""


def read_result(directory: Path) -> Conclusion:
    """Reads result.json of a run directory. Raises: RecordFault: absent or corrupt. NewerSchema: a newer version."""
    path = directory / "result.json"
    try:
        contents = read_json(path, RESULT_SCHEMA)
    except FileNotFoundError:
        why = "no result.json: the run did not end, see status in run.json"
        raise RecordFault(f"{directory}: {why}") from None
    if any(not isinstance(contents.get(name) or {}, dict) for name in ("by_operation", "by_activity")):
        raise RecordFault(f"{path} is corrupt: by_operation or by_activity is not an object")
    if not _is_sound(contents):
        raise RecordFault(f"{path} is corrupt: one of its numbers is not a number")
    return as_value(contents | {"numbers": contents}, Conclusion, path)


def _is_sound(contents: object) -> bool:
    """True if all values and uncertainties are null or numbers of a sensible size."""
    entries = [contents]
    for entry in entries:  # grows by what each entry contains
        if isinstance(entry, dict):
            if "value" not in entry or "u" not in entry or "unit" not in entry:
                entries += entry.values()
            elif not _is_quantity(entry):
                return False
        elif isinstance(entry, list):
            entries += entry
        elif not (isinstance(entry, _WORDS) or _is_number(entry)):
            return False
    return True


def _is_quantity(entry: dict[str, Any]) -> bool:
    numbers = _is_number(entry["value"]) and _is_number(entry["u"]) and _is_number(entry.get("k"))
    return numbers and (entry["u"] or 0.0) >= 0.0 and isinstance(entry["unit"], str)


def _is_number(entry: object) -> bool:
    if entry is None:
        return True
    return isinstance(entry, _NUMBERS) and not isinstance(entry, bool) and abs(entry) < NUMBER_MAX
