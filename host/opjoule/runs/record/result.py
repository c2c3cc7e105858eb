"""result.json (docs/reference/run-record.md): every quantity of its study, or the reason for its absence.

The job of a study reported results, too: its phases and the measured software (`raw/run-N.results.jsonl`).
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from opjoule.base.errors import RecordFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.clocks.clock_map import Check
from opjoule.runs.record.json_file import Schema, as_value, read_json, result_2, result_3
from opjoule.runs.record.run_record import RunRecord

ENERGY: Final = "energy"
"""Every energy and power of the run's windows."""
ABOVE_IDLE: Final = "above_idle"
"""Every figure that depends on idle power or on the end of settle."""
PER_OPERATION: Final = "per_operation"
"""Every figure that counts operations or is divided by their number."""


RESULT_SCHEMA: Final = Schema("result", 4)
NUMBER_MAX: Final = 1e300
"""Limit for the check of a damaged file; no quantity comes near it."""
_NUMBERS: Final = (int, float)


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
    notices: tuple[Notice, ...] = ()
    """What stands above the figures."""
    alignment: StatedAlignment | None = None
    timebase: StatedTimebase = StatedTimebase()
    by_repeat: dict[str, RepeatValues] = {}
    """Path of a quantity -> its values repeat by repeat."""
    shared: dict[str, dict[str, float]] = {}
    """Path of a quantity, or key of its uncertainty budget -> source -> contribution that other results have too."""
    numbers: Mapping[str, Any] = {}
    """The whole file; empty if there is none."""

    @property
    def too_short(self) -> bool:
        """True if the run was too short for any conclusion."""
        return any(notice.kind is NoticeKind.TOO_SHORT for notice in self.notices)


def stand_in(software: str, name: str) -> Notice:
    """The notice of a run in which other software was measured in place of `name`."""
    return Notice(NoticeKind.STAND_IN, f"{software} stands in for {name}: these are not {name}'s figures", about=name)


def read_result(directory: Path) -> Conclusion:
    """Reads result.json of a run directory. Raises: RecordFault: absent or corrupt. NewerSchema: a newer version."""
    path = directory / "result.json"
    try:
        contents = read_json(path, RESULT_SCHEMA, older={2: result_2, 3: result_3})
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
        kind = type(entry)  # what JSON gives has these types themselves
        if kind is str or entry is None or kind is bool:
            continue
        if isinstance(entry, dict):
            if "value" not in entry or "u" not in entry or "unit" not in entry:
                entries += entry.values()
            elif not _is_quantity(entry):
                return False
        elif isinstance(entry, list):
            entries += entry
        elif not _is_number(entry):
            return False
    return True


def _is_quantity(entry: dict[str, Any]) -> bool:
    numbers = _is_number(entry["value"]) and _is_number(entry["u"]) and _is_number(entry.get("k"))
    return numbers and (entry["u"] or 0.0) >= 0.0 and isinstance(entry["unit"], str)


def _is_number(entry: object) -> bool:
    if entry is None:
        return True
    return isinstance(entry, _NUMBERS) and not isinstance(entry, bool) and abs(entry) < NUMBER_MAX


_OF_PHASE: Final = ("phase", "mark", "cell", "operations", "answer", "not_supported", "figures")

SYNTHETIC: Final = "SYNTHETIC data"
"""Caveat of a job that takes a data set and made up its data."""
MONGODB_SERVER: Final = "mongodb.server"
"""Setting in which the loader names the server: MONGOD with its build, or another."""
MONGOD: Final = "mongod"


@dataclass(frozen=True)
class Software:
    """Measured software, by the name and version that it reports."""

    name: str
    stand_in: str = ""
    """Name of the software that it stands in for; empty if it does not stand in for another."""

    def __str__(self) -> str:
        return f"{self.name} (in place of {self.stand_in})" if self.stand_in else self.name


def job_results(record: RunRecord) -> tuple[list[dict[str, Any]], tuple[Software, ...]]:
    """(each phase of each run, each software once). Raises: RecordFault: a file that no job has written."""
    phases: list[dict[str, Any]] = []
    software: dict[Software, None] = {}
    for file in record.raw_files("run-*.results.jsonl"):
        for line in _lines(file):
            if "software" in line:
                software[Software(str(line["software"]), str(line.get("stand_in", "")))] = None
            else:
                phases.append(line)
    return phases, tuple(software)


def stand_in_caveat(name: str) -> str:
    """The caveat of a record in which other software was measured in place of `name`."""
    return f"not {name}: a stand-in"


def caveats_of(record: RunRecord) -> tuple[str, ...]:
    """What the software and the data of a record are not; nothing on software where its files cannot be read."""
    names: dict[str, None] = {}
    with suppress(RecordFault):
        names = dict.fromkeys(software.stand_in for software in job_results(record)[1] if software.stand_in)
    if record.run.summary.settings.get(MONGODB_SERVER, MONGOD).partition(" ")[0] != MONGOD:
        names["MongoDB"] = None
    study = record.document.get("plan", {}).get("study", {})
    takes_data = any("{dataset}" in part for part in study.get("command", ()))
    return (*map(stand_in_caveat, names), *([SYNTHETIC] if takes_data and not study.get("dataset") else []))


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
        for line in lines:
            known = isinstance(line, dict) and ("software" in line or all(key in line for key in _OF_PHASE))
            if not known:
                raise ValueError("a line does not describe a phase of a study")
        return lines
    except (OSError, ValueError) as error:
        raise RecordFault(f"{file}: not the output of a study's job ({error})") from None
