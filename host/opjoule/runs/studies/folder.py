"""Finds a study.toml by the study's name or folder, reads and checks it.

Also reads the --connections file, in which a user gives access to databases that the rig does not start. Each line is
`NAME = ODBC connection string`, or NAME = path of a library; lines that begin with # are comments. The file may contain
passwords. It is copied to the board unchanged, readable only by its owner, and a record contains only the names in it.

Reference: docs/reference/studies.md.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from opjoule.base.errors import BadInput, unknown
from opjoule.base.scripts import STUDIES
from opjoule.base.toml_file import axis_values, check_keys, check_match, read_toml, table, tables
from opjoule.runs.studies.definition import (
    FIGURE,
    SYSTEM,
    Connection,
    StudyFigure,
    StudyFolder,
    conclusions_of,
    counterparts_of,
    whole_numbers,
)

PLACES: Final = (
    *("storage", "files", "parts", "loader", "server", "server_commands", "dataset", "connections", "seed"),
)
"""Names that a command may contain in braces, besides its axes and counts."""
LOADED: Final = ("records", "operations")
_PLACE: Final = re.compile(r"\{([a-z_]+)\}")


def known_studies(folder: Path = STUDIES) -> list[StudyFolder]:
    """Every study with a folder here, ordered by name."""
    return [find_study(path.parent.name, folder) for path in sorted(folder.glob("*/study.toml"))]


def find_study(name: str, folder: Path = STUDIES) -> StudyFolder:
    """The study with this name or in this folder. Raises: BadInput: there is none, or its study.toml is not valid."""
    named = folder / name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else Path(name)
    place = named if named.is_dir() else Path(name)
    path = place / "study.toml"
    try:
        entry = read_toml(path)
    except OSError as error:
        names = [file.parent.name for file in sorted(folder.glob("*/study.toml"))]
        if place is named or "/" in name:
            raise BadInput(f"{path}: {error.strerror}; a study's folder contains a study.toml") from None
        raise BadInput(unknown("study", name, names)) from None
    try:
        return _definition(name, place, entry)
    except BadInput as error:
        raise BadInput(f"{path} is not a study: {error}") from None


def places(text: str) -> list[str]:
    """The names in braces in a text."""
    return _PLACE.findall(text)


def _definition(name: str, folder: Path, entry: Mapping[str, Any]) -> StudyFolder:
    kinds = [kind for kind in _READ if kind in entry]
    check_keys(entry, [key for kind in _READ if not kinds or kind in ("", *kinds) for key in _READ[kind]])
    if "title" not in entry:
        raise BadInput("title is missing")
    if len(kinds) != 1:
        raise BadInput("give either command (of its job) or workload (one of ycsb-workloads/)")
    values = {key: read(entry, key) for reads in _READ.values() for key, read in reads.items()}
    named = {name: tuple(map(str, numbers)) for name, numbers in values["counts"].items()}
    values |= {
        "files": tuple(folder / file for file in values["files"]),
        "wheels": {system: folder / file for system, file in values["wheels"].items()},
        "conclusions": conclusions_of(entry, {**values["axes"], **named}, values["phases"]),
    }
    made = StudyFolder(name=name, folder=folder, **values)
    _check(made)
    return made


def _text(entry: Mapping[str, Any], key: str) -> str:
    return str(entry.get(key, ""))


def _each(read: Callable[[str, Any], Any]) -> Callable[[Mapping[str, Any], str], dict[str, Any]]:
    """A reader of a table that reads each entry by its name."""
    return lambda entry, key: {name: read(name, value) for name, value in table(entry, key).items()}


def _figure(name: str, entry: Any) -> StudyFigure:
    if not isinstance(entry, dict) or "title" not in entry or "by" not in entry:
        raise BadInput(f"[figures.{name}] needs title, and by (the axis or axes that it compares)")
    shows = {axis: values for axis, values in entry.items() if axis not in ("title", "by")}
    by = entry["by"] if isinstance(entry["by"], list) else [entry["by"]]
    return StudyFigure(str(entry["title"]), _words(f"[figures.{name}] by", by), shows)


def _check(made: StudyFolder) -> None:
    """Checks that all names in a study refer to something. Raises: BadInput: one does not."""
    _check_cells(made)
    _check_places(made)
    values = list(dict.fromkeys(value for values in made.axes.values() for value in values))
    tables = (("wheels", made.wheels), ("packages", made.packages), ("connections", made.connections))
    for key, names in tables:
        for name in names:
            if name not in values:
                raise BadInput(unknown(f"database of [{key}]", name, values))
    named = {
        "unranked": made.unranked,
        "constant": made.constant,
        "[cold]": (*made.cold, *made.cold.values()),
        "[bars]": tuple(made.bars.values()),
        "[[counterparts]]": tuple(phase for part in made.counterparts for phase in part.phases),
    }
    for key, phases in named.items():
        for phase in phases:
            if phase not in made.phases:
                raise BadInput(unknown(f"phase of {key}", phase, made.phases))
    for measure, which in made.best.items():
        if which not in ("least", "most"):
            raise BadInput(f"[best] {measure} = {which!r}: write least or most")


def _check_places(made: StudyFolder) -> None:
    allowed = [*made.axes] if made.workload else [*PLACES, *made.axes, *made.counts]
    in_parts = {*made.within, *made.counts} if made.within else {"parts"}
    known = [name for name in allowed if name not in in_parts]
    for part in (*made.command, made.workload):
        for place in places(part):
            if place not in known:
                raise BadInput(unknown("place", f"{{{place}}}", [f"{{{name}}}" for name in known]))


def _check_cells(made: StudyFolder) -> None:
    for name in made.within:
        if name not in made.axes or name == SYSTEM:
            raise BadInput(unknown("axis of within", name, [axis for axis in made.axes if axis != SYSTEM]))
    _check_counts(made)
    for axis, values in made.beside.items():
        check_match({axis: list(values)}, made.axes)
    for match in made.exclude:
        check_match(match, {axis: values for axis, values in made.axes.items() if axis not in made.within})
    for match in (cells.get("when", {}) for cells in made.where):
        check_match(match, made.axes)
    if FIGURE in made.axes:
        raise BadInput(f"[axes] {FIGURE}: --only uses this name for [figures]; give the axis another name")
    for conclusion in made.conclusions:
        if conclusion.observation and conclusion.observation not in made.observations:
            raise BadInput(f"[[conclusions]] {conclusion.question!r}: no observation {conclusion.observation}")
    for figure in made.figures.values():
        check_match({**{axis: [*made.axes.get(axis, ())] for axis in figure.by}, **figure.shows}, made.axes)


def _check_counts(made: StudyFolder) -> None:
    for name, values in made.counts.items() if made.workload else ():
        if name not in LOADED or len(values) > 1:
            raise BadInput(f"[counts] {name}: a workload has exactly one value each of {' and '.join(LOADED)}")
    for cells in made.where:
        for name in cells if made.command else ():
            if name != "when" and name not in made.counts:
                raise BadInput(f"[[where]] {name}: give a count of [counts]")


def _grid(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    check_keys(entry, ("down", "across", "also"))
    if entry and not ("down" in entry and isinstance(entry.get("across"), list)):
        raise BadInput('[grid] needs down = "AXIS" and across = ["AXIS"]')
    return entry


def _connection(name: str, value: Any) -> Connection:
    if not isinstance(value, dict) or not isinstance(value.get("what"), str):
        raise BadInput(f'[connections] {name}: write {name} = {{ what = "what the user gives" }}')
    return Connection(value["what"], bool(value.get("needed", False)))


def _words(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise BadInput(f"{key} must be a list of words")
    return tuple(value)


def given_names(path: Path | None, study: StudyFolder) -> tuple[str, ...]:
    """Names of the databases in a --connections file; empty if there is no file.

    Raises: BadInput: the file cannot be read, a line has another form, or the study has no such database.
    """
    if path is None:
        return ()
    if not study.connections:
        raise BadInput(f"--connections {path}: study {study.name} uses no database that you provide")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text"
        raise BadInput(f"--connections {path}: {why}") from None
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not value:
            raise BadInput(f"{path}, line {number}: write NAME = CONNECTION")
        if name not in study.connections:
            raise BadInput(f"{path}, line {number}: {unknown('database', name, study.connections)}")
        if name in names:
            raise BadInput(f"{path}, line {number}: {name} is given twice")
        names.append(name)
    return tuple(names)


def is_reached(study: StudyFolder, cell: Mapping[str, str], given: Sequence[str]) -> bool:
    """Whether every database of a cell is started by the rig or given by the user."""
    return not any(value in _lacking(study, given) for value in cell.values())


def left_out(study: StudyFolder, only: Mapping[str, Sequence[str]], given: Sequence[str]) -> list[str]:
    """The connections that are missing for the requested cells, one line per database.

    Args:
        only: requested values by axis; all values of axes not given.
    """
    wanted = {value for axis, values in study.axes.items() for value in values if value in only.get(axis, values)}
    return [f"{name} = {study.connections[name].what}" for name in _lacking(study, given) if name in wanted]


def _lacking(study: StudyFolder, given: Sequence[str]) -> list[str]:
    return [name for name, connection in study.connections.items() if connection.needed and name not in given]


_READ: Final[Mapping[str, Mapping[str, Callable[[Mapping[str, Any], str], Any]]]] = {
    "": {
        "title": _text,
        "repeats": lambda entry, key: whole_numbers(key, entry.get(key, 1))[0],
        "axes": _each(axis_values),
        "beside": _each(axis_values),
        "counts": _each(whole_numbers),
        "exclude": tables,
        "where": tables,
        "said_of": table,
        **dict.fromkeys(("circular", "observations"), _each(lambda _, text: str(text))),
        "counterparts": lambda entry, _: counterparts_of(entry),
        "conclusions": tables,
    },
    "command": {
        **dict.fromkeys(
            ("command", "files", "within", "unranked", "constant"),
            lambda entry, key: _words(key, entry.get(key, [])),
        ),
        **dict.fromkeys(("wheels", "phases", "cold", "bars", "best"), _each(lambda _, text: str(text))),
        "packages": _each(lambda name, value: _words(f"[packages] {name}", value)),
        "connections": _each(_connection),
        "grid": lambda entry, key: _grid(table(entry, key)),
        "per": _text,
    },
    "workload": {"workload": _text, "constants": table, "figures": _each(_figure)},
}
"""Kind of study (empty for both kinds) -> its keys, which are fields of StudyFolder, and the reader of each."""
