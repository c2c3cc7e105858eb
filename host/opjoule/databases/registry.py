"""The databases, one file each (docs/reference/databases.md). Standard library alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from opjoule.errors import BadInput
from opjoule.suggestion import unknown
from opjoule.toml_file import read_toml

_FOLDER: Final = Path(__file__).parent
_ORDER: Final = ("leveldb", "sqlite", "rocksdb", "lmdb", "berkeleydb", "flatfolder", "nestedfolder")
"""Databases that are listed first; the others follow by name."""

Command = tuple[str, ...]
"""Words of a command. Names in braces are replaced: each program, {data}, {port}, {secret}, {passfile}."""


@dataclass(frozen=True)
class ServerCommands:
    """How a server is set up, started and awaited on a board."""

    port: int
    address: str
    start: Command
    prepare: tuple[Command, ...] = ()
    """Commands on its empty data folder, before it is started."""
    ready: Command = ()
    """Succeeds once it takes work; without, it is ready when it listens."""
    own_account: bool = False
    """Root starts it as an account without rights."""
    password: bool = False
    """True if it gets a password for the session: {secret} holds it for the server, {passfile} for libpq's clients."""


@dataclass(frozen=True)
class Jar:
    """A program in Maven's central repository."""

    artifact: str
    """Group, name and version, with colons."""
    sha256: str


@dataclass(frozen=True)
class DrivenVersions:
    """Supported versions of a program, by the number before the first dot."""

    command: Command
    least: int
    most: int | None = None

    @property
    def words(self) -> str:
        """The range in words, as "1 to 2"."""
        if self.most is None:
            return f"{self.least} or later"
        return str(self.least) if self.most == self.least else f"{self.least} to {self.most}"


@dataclass(frozen=True)
class Database:
    """One database."""

    name: str
    """Name that --db and the loader know."""
    title: str
    """Name in prose."""
    kind: Literal["loader", "server", "module", "library", "connection"]
    """Inside the loader; a process of its own on the board, started by the rig; a module of a job's Python; a library
    that the job loads; or what a connection string of the user's leads to."""
    in_loader: bool = True
    """Whether the loader can work on it; the others are for the jobs of studies."""
    background_threads: int = 2
    """Number of threads for its own work, beside operations."""
    asynchronous: str = ""
    settled: str = ""
    """When its writes have reached the medium, in words."""
    get: str = ""
    """Remedy if it is missing."""
    stand_in: str = ""
    """Substitute that OpJoule's tests used; empty if they used the database itself."""
    module: str = ""
    clients: tuple[str, ...] = ()
    """Modules of Python, any of which lets the job of a study work on what is otherwise inside the loader."""
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Program -> where it may be beside the PATH, as patterns of the shell."""
    jars: Mapping[str, Jar] = field(default_factory=dict)
    """Program -> the Java archive that is brought to a board which does not have it."""
    version: Command = ()
    driven: Mapping[str, DrivenVersions] = field(default_factory=dict)
    """Program -> its versions that are driven; any of the others."""
    server: ServerCommands | None = None

    @property
    def is_server(self) -> bool:
        """Is it a process of its own on the board?"""
        return self.server is not None


@cache
def known_databases() -> tuple[Database, ...]:
    """Every database, in the order they are listed to the user."""
    names = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return tuple(_read(name) for name in [*_ORDER, *(name for name in names if name not in _ORDER)])


def _read(name: str) -> Database:
    entry: dict[str, Any] = _with_tuples(read_toml(_FOLDER / f"{name}.toml"))
    entry["jars"] = {program: Jar(**jar) for program, jar in entry.get("jars", {}).items()}
    entry["driven"] = {
        program: DrivenVersions(**stated) for program, stated in entry.get("driven", {}).items()
    }
    entry["server"] = ServerCommands(**entry["server"]) if "server" in entry else None
    return Database(name, **entry)


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_tuples(inner) for key, inner in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def is_server(name: str) -> bool:
    """Whether the database of this name is a server of its own; False for an unknown name."""
    database = database_called(name)
    return bool(database and database.is_server)


def background_threads(name: str) -> int:
    """Threads that do the work of a database beside its operations; 2 for an unknown name."""
    database = database_called(name)
    return database.background_threads if database else 2


def database_called(name: str) -> Database | None:
    """The database of this name; None for an unknown one."""
    return next((database for database in known_databases() if database.name == name), None)


def find_database(name: str) -> Database:
    """The database of this name, which the loader works on. Raises: BadInput: there is none; names the nearest."""
    database = database_called(name)
    if database and database.in_loader:
        return database
    if database:
        raise BadInput(
            f"the loader has no client for {database.title}: only the studies measure it (measure.py studies)"
        )
    raise BadInput(
        unknown("database", name, [database.name for database in known_databases() if database.in_loader])
    )
