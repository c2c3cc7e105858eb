"""Finds a study.toml by the study's name or folder, reads and checks it.

Also reads the --connections file, in which a user gives access to databases that the rig does not start. Each line is
`NAME = ODBC connection string`, or NAME = path of a library; lines that begin with # are comments. The file may contain
passwords. It is copied to the board unchanged, readable only by its owner, and a record contains only the names in it.

Reference: docs/reference/studies.md.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from opjoule.base.errors import BadInput, unknown
from opjoule.base.scripts import STUDIES
from opjoule.base.settings import MEDIUM, as_struct
from opjoule.base.toml_file import axis_values, check_match, read_toml
from opjoule.runs.studies.definition import (
    FIGURE,
    SYSTEM,
    Connection,
    Counterpart,
    StudyFigure,
    StudyFolder,
    conclusion_of,
    whole_numbers,
)

PLACES: Final = (*(MEDIUM, "files", "parts", "loader", "server", "server_commands", "dataset", "connections", "seed"),)
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
    where = f"{path} is not a study:"
    if ("command" in entry) == ("workload" in entry):
        raise BadInput(f"{where} give either command (of its job) or workload (one of ycsb-workloads/)")
    kind: type[_JobStudy | _WorkloadStudy] = _JobStudy if "command" in entry else _WorkloadStudy
    read = as_struct(entry, kind, where)
    try:
        return _definition(name, place, read, entry)
    except BadInput as error:
        raise BadInput(f"{where} {error}") from None


def places(text: str) -> list[str]:
    """The names in braces in a text."""
    return _PLACE.findall(text)


_Words = tuple[str, ...]
_Whole = Annotated[int, Meta(ge=1)]
_WholeNumbers = Annotated[
    _Whole | Annotated[tuple[_Whole, ...], Meta(min_length=1)],
    Meta(description="a whole number of at least 1, or a list of them"),
]


class _Grid(msgspec.Struct, frozen=True):
    """How the best systems are drawn as a grid."""

    down: str
    across: _Words
    also: str = ""


class _Figure(msgspec.Struct, frozen=True):
    """What a figure compares, without the axes that it shows."""

    title: str
    by: Annotated[str | _Words, Meta(description="an axis, or a list of axes")]


class _Study(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of every study.toml."""

    title: str
    repeats: Annotated[int, Meta(ge=1, description="a whole number of at least 1")] = 1
    axes: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    counts: dict[str, _WholeNumbers] = {}
    exclude: tuple[dict[str, Any], ...] = ()
    where: tuple[dict[str, Any], ...] = ()
    said_of: dict[str, Any] = {}
    circular: dict[str, str] = {}
    observations: dict[str, str] = {}
    counterparts: tuple[Counterpart, ...] = ()
    conclusions: tuple[dict[str, Any], ...] = ()


class _JobStudy(_Study, frozen=True, kw_only=True):
    """The study.toml of a job on the board."""

    command: _Words
    files: _Words = ()
    within: _Words = ()
    unranked: _Words = ()
    constant: _Words = ()
    wheels: dict[str, str] = {}
    phases: dict[str, str] = {}
    cold: dict[str, str] = {}
    bars: dict[str, str] = {}
    best: dict[str, Literal["least", "most"]] = {}
    packages: dict[str, _Words] = {}
    connections: dict[str, Connection] = {}
    grid: _Grid | None = None
    per: str = ""


class _WorkloadStudy(_Study, frozen=True, kw_only=True):
    """The study.toml of a workload of the loader."""

    workload: str
    constants: dict[str, Any] = {}
    figures: dict[str, dict[str, Any]] = {}


def _definition(name: str, folder: Path, read: _JobStudy | _WorkloadStudy, entry: Mapping[str, Any]) -> StudyFolder:
    values = msgspec.structs.asdict(read)
    axes = {axis: axis_values(axis, of_axis) for axis, of_axis in read.axes.items()}
    counts = {count: whole_numbers(value) for count, value in read.counts.items()}
    named = {count: tuple(map(str, numbers)) for count, numbers in counts.items()}
    values |= {
        "axes": axes,
        "counts": counts,
        "beside": {axis: axis_values(axis, of_axis) for axis, of_axis in read.beside.items()},
        "conclusions": tuple(
            conclusion_of(one, "[[conclusions]]", {**axes, **named}, values.get("phases", {}))
            for one in read.conclusions
        ),
    }
    if isinstance(read, _JobStudy):
        values |= {
            "files": tuple(folder / file for file in read.files),
            "wheels": {system: folder / file for system, file in read.wheels.items()},
            "grid": entry.get("grid", {}),
        }
    else:
        values["figures"] = {key: _figure(figure, f"[figures.{key}]") for key, figure in read.figures.items()}
    made = StudyFolder(name=name, folder=folder, **values)
    _check(made)
    return made


def _figure(entry: Mapping[str, Any], where: str) -> StudyFigure:
    shows = {axis: values for axis, values in entry.items() if axis not in ("title", "by")}
    read = as_struct({key: entry[key] for key in ("title", "by") if key in entry}, _Figure, where)
    return StudyFigure(read.title, (read.by,) if isinstance(read.by, str) else read.by, shows)


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
