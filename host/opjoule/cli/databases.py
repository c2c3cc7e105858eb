"""`measure.py databases` and `studies`: what is built in, found on this computer, or missing and how to get it."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, Final

from opjoule.base.errors import OpJouleError
from opjoule.base.scripts import ROOT
from opjoule.base.units import counted
from opjoule.boards.binaries import failed_engines
from opjoule.boards.databases import Database, database_called, known_databases
from opjoule.boards.server import find_programs, program_version
from opjoule.boards.shell import LocalShell
from opjoule.cli.commands import Command
from opjoule.cli.options import Flag, Options
from opjoule.runs.studies.definition import StudyFolder
from opjoule.runs.studies.folder import known_studies

LOADER = ROOT / "build" / "loader" / "loader"
DEBIAN_PYTHON = "/usr/bin/python3"
"""The Python for which Debian packages Python modules."""


class ListingOptions(Options):
    """How databases, or studies, are listed."""

    json: Annotated[bool, Flag("print JSON on stdout")] = False


STUDIES: Final = Command(
    "studies",
    ListingOptions,
    "opjoule.cli.databases:run_studies",
    "Lists the studies that --study repeats: title, systems, which systems are missing on this computer and how to "
    "get them.",
)
DATABASES: Final = Command(
    "databases",
    ListingOptions,
    "opjoule.cli.databases:run_databases",
    "Lists the databases: built into the loader, found on this computer, or missing (with how to get them).",
)
COMMANDS: Final = (STUDIES, DATABASES)


@dataclass(frozen=True)
class Availability:
    """Whether one database is on this computer, which stands in for a simulated board."""

    there: bool
    words: str
    """Its place and version, or how to get it."""
    by_set_up: bool = False
    """Whether the set-up of a measurement installs it."""


def run_databases(options: ListingOptions) -> int:
    """Lists every database and where it is; exit status 0."""
    states = {database.name: availability(database) for database in known_databases()}
    if options.json:
        print(json.dumps([_plain(database, states[database.name]) for database in known_databases()], indent=1))
        return 0
    for database in known_databases():
        print(f"{database.name:<13} {database.title}: {states[database.name].words}")
        for study, state in for_studies(database).items():
            print(f"              study {study}: {state.words}")
        print(f"              asynchronous: {database.asynchronous}")
        if database.stand_in:
            print(f"              {database.stand_in}")
    return 0


def study_availability(study: StudyFolder, database: Database) -> Availability:
    """Availability for the job of one study on this computer; a job may need other things than the loader does."""
    inside = bool(study.workload) or any("{loader}" in part for part in study.command)
    state = availability(database) if inside or not database.clients else _client(database)
    packages = study.packages.get(database.name)
    if state.there or not packages:
        return state
    words = f"{state.words}; --study {study.name} --simulate installs {' '.join(packages)}"
    reached = not any(package.startswith("python3-") for package in packages) or _python() == DEBIAN_PYTHON
    if not reached:
        words += f" only for {DEBIAN_PYTHON}: put /usr/bin first on PATH"
    return Availability(False, words, by_set_up=reached)


def _client(database: Database) -> Availability:
    """Availability of a Python client module: the first that a job can use and this computer's python3 has."""
    shell = LocalShell()
    for module in database.clients:
        if shell.run(["python3", "-c", f"import {module}"]).status == 0:
            return Availability(True, f"found, Python module {module}")
    names = " or ".join(database.clients)
    return Availability(False, f"its Python module {names} is missing ({_python() or 'no python3'} does not have it)")


def _python() -> str:
    """The python3 on this computer's PATH; empty if there is none."""
    return LocalShell().run(["sh", "-c", "command -v python3"]).text().strip()


def for_studies(database: Database) -> dict[str, Availability]:
    """Study -> availability of this database for its job; only studies for which it differs from availability()."""
    return {
        study.name: state
        for study in known_studies()
        if any(database.name in values for values in study.axes.values())
        and (state := study_availability(study, database)) != availability(database)
    }


def availability(database: Database) -> Availability:
    """Whether a database is built into this computer's loader, found on the computer, or missing."""
    if database.kind == "loader":
        built = built_in()
        if database.name in built:
            return Availability(True, f"built in, version {built[database.name]}")
        if why := failed_engines(ROOT / "build").get(database.name):
            return Availability(False, f"cannot be built here: {why}; its next measurement tries again")
        return Availability(True, "not built yet: its first measurement installs its library and builds it")
    if database.kind == "module":
        return Availability(True, f"Python module {database.module}: {database.get}")
    if database.kind == "connection":
        return Availability(False, database.get)
    return _of_server(database.name, os.environ.get("PATH", ""))


@cache
def _of_server(name: str, path: str) -> Availability:
    """Availability of a server. It is looked for once on each PATH, because a study has many cells."""
    database, shell = database_called(name), LocalShell()
    assert database, name
    try:
        programs = find_programs(shell, database)
    except OpJouleError as error:
        return _by_jar(shell, database) or Availability(False, str(error))
    version = program_version(shell, database, programs)
    return Availability(True, f"found, {', '.join(programs.values())}{f', version {version}' if version else ''}")


def _by_jar(shell: LocalShell, database: Database) -> Availability | None:
    """Availability of a Java database whose archive the first measurement fetches; None if it cannot."""
    if not (database.jars and shutil.which("mvn")):
        return None
    try:
        find_programs(shell, database, given=dict.fromkeys(database.jars, ""))
    except OpJouleError:
        return None
    return Availability(True, f"found Java; its first measurement fetches {' '.join(database.jars)} with Maven")


def engines() -> dict[str, str]:
    """Engine -> version, from this computer's loader. Raises: OSError, SubprocessError: it does not run."""
    ran = subprocess.run([LOADER, "databases"], capture_output=True, text=True, check=True, timeout=60)
    rows = [line.split() for line in ran.stdout.splitlines()]
    return {row[0]: row[1] for row in rows if len(row) > 1}


@cache
def built_in() -> Mapping[str, str]:
    """Engine -> version, from this computer's loader, which is asked once; empty if it is not built yet."""
    try:
        return engines()
    except (OSError, subprocess.SubprocessError):
        return {}


def _plain(database: Database, state: Availability) -> dict[str, object]:
    return {
        "name": database.name,
        "title": database.title,
        "kind": database.kind,
        **asdict(state),
        "asynchronous": database.asynchronous,
        "settled": database.settled,
        "stand_in": database.stand_in,
        "background_threads": database.background_threads,
        "studies": {study: asdict(at_study) for study, at_study in for_studies(database).items()},
    }


def run_studies(options: ListingOptions) -> int:
    """Lists every study; exit status 0."""
    studies = known_studies()
    if options.json:
        print(json.dumps([_plain_study(study) for study in studies], indent=1))
        return 0
    for study in studies:
        cells = study.cells({})
        parts = len(study.parts(cells[0], 1.0, {}))
        many = f"{counted(len(cells), 'cell')}{f' of {parts} parts' if parts > 1 else ''}"
        print(f"{study.name:<10} {study.title} ({many})")
        for axis, values in study.axes.items():
            print(f"           {axis}: {', '.join(values)}")
        for name, figure in study.figures.items():
            print(f"           figure {name}: {figure.title}")
        for name, connection in study.connections.items():
            given = "needs" if connection.needed else "takes"
            print(f"           {name} {given}, by --connections: {connection.what}")
        for name, words in (*_missing_words(study).items(), *stand_ins(study).items()):
            print(f"           {name}: {words}")
    print("to measure one: host/measure.py --study NAME --device NAME [--scale X] [--simulate]")
    return 0


def missing(study: StudyFolder) -> dict[str, Availability]:
    """Databases of a study that this computer lacks, with how to get them."""
    states = {database.name: study_availability(study, database) for database in _databases(study)}
    return {name: state for name, state in states.items() if not state.there}


def _missing_words(study: StudyFolder) -> dict[str, str]:
    return {name: state.words for name, state in missing(study).items()}


def stand_ins(study: StudyFolder) -> dict[str, str]:
    """Databases of a study that OpJoule's own tests could not use -> what the tests used instead."""
    return {database.name: database.stand_in for database in _databases(study) if database.stand_in}


def _databases(study: StudyFolder) -> list[Database]:
    """Databases among the values of a study's axes: its systems, and what other axes name."""
    values = dict.fromkeys(value for axis in study.axes.values() for value in axis)
    return [database for value in values if (database := database_called(value))]


def _plain_study(study: StudyFolder) -> dict[str, object]:
    return {
        "name": study.name,
        "title": study.title,
        "axes": {axis: list(values) for axis, values in study.axes.items()},
        "within": list(study.within),
        "counts": {count: list(values) for count, values in study.counts.items()},
        "phases": dict(study.phases),
        "figures": {name: figure.title for name, figure in study.figures.items()},
        "missing": _missing_words(study),
        "connections": {
            name: {"what": given.what, "needed": given.needed} for name, given in study.connections.items()
        },
        "stand_ins": stand_ins(study),
    }
