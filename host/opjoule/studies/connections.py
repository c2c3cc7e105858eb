"""The file of --connections: what a user gives for databases that the rig does not start. Standard library alone.

A line each, `NAME = ODBC connection string`, or the path of a library; lines that begin with # say nothing. It may hold
passwords: it is copied to the board as it is, readable by its owner alone, and nothing of it but the names comes into
a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opjoule.errors import BadInput
from opjoule.studies.definition import StudyFolder
from opjoule.suggestion import unknown


def given_names(path: Path | None, study: StudyFolder) -> tuple[str, ...]:
    """Names of the databases in a --connections file; empty if there is no file.

    Raises: BadInput: the file cannot be read, a line is none of its form, or the study has no such database.
    """
    if path is None:
        return ()
    if not study.connections:
        raise BadInput(f"--connections {path}: study {study.name} uses no database of yours")
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
            raise BadInput(f"{path}, line {number}: write NAME = what its connection is")
        if name not in study.connections:
            raise BadInput(f"{path}, line {number}: {unknown('database', name, study.connections)}")
        if name in names:
            raise BadInput(f"{path}, line {number}: {name} is there twice")
        names.append(name)
    return tuple(names)


def is_reached(study: StudyFolder, cell: Mapping[str, str], given: Sequence[str]) -> bool:
    """Whether the rig starts, or the user gives, every database of a cell."""
    return not any(value in _lacking(study, given) for value in cell.values())


def left_out(study: StudyFolder, only: Mapping[str, Sequence[str]], given: Sequence[str]) -> list[str]:
    """What the user has to give to have every cell that is asked for measured, one line per database.

    Args:
        only: of an axis, the values that are asked for; all of the others.
    """
    asked = {
        value for axis, values in study.axes.items() for value in values if value in only.get(axis, values)
    }
    return [f"{name} = {study.connections[name].what}" for name in _lacking(study, given) if name in asked]


def _lacking(study: StudyFolder, given: Sequence[str]) -> list[str]:
    return [name for name, connection in study.connections.items() if connection.needed and name not in given]
