"""The databases, one file each (docs/reference/databases.md). Uses only the standard library."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from opjoule.base.errors import BadInput, unknown
from opjoule.base.toml_file import read_toml

_FOLDER: Final = Path(__file__).parent / "databases"
_ORDER: Final = ("leveldb", "sqlite", "rocksdb", "lmdb", "berkeleydb", "flatfolder", "nestedfolder")
"""Databases that are listed first; the others follow in order of name."""

Command = tuple[str, ...]
"""Words of a command. Names in braces are replaced: each program, {data}, {port}, {secret}, {passfile}."""


@dataclass(frozen=True)
class ServerCommands:
    """How a server is set up, started and awaited on a board."""

    port: int
    address: str
    start: Command
    prepare: tuple[Command, ...] = ()
    """Commands run on its empty data folder before it is started."""
    ready: Command = ()
    """Command that succeeds once the server is ready; if empty, it is ready when it listens."""
    own_account: bool = False
    """True if root starts it under an account without privileges."""
    password: bool = False
    """True if it gets a password for the session, in {secret} for the server and in {passfile} for libpq's clients."""


@dataclass(frozen=True)
class Jar:
    """A program in Maven's central repository."""

    artifact: str
    """Group, name and version, separated by colons."""
    sha256: str


@dataclass(frozen=True)
class DrivenVersions:
    """Supported versions of a program, by the number before the first dot."""

    command: Command
    least: int
    most: int | None = None

    @property
    def words(self) -> str:
        """The range in words, for example "1 to 2"."""
        if self.most is None:
            return f"{self.least} or later"
        return str(self.least) if self.most == self.least else f"{self.least} to {self.most}"


@dataclass(frozen=True)
class Database:
    """One database."""

    name: str
    """Name for --db and the loader."""
    title: str
    """Name in text."""
    kind: Literal["loader", "server", "module", "library", "connection"]
    """loader: built into the loader; server: a process of its own on the board, started by the rig; module: a module of
    a job's Python; library: loaded by the job; connection: reached by the user's connection string."""
    in_loader: bool = True
    """Whether the loader can use it; other databases are only for the jobs of studies."""
    background_threads: int = 2
    """Number of threads for its own work besides operations."""
    asynchronous: str = ""
    settled: str = ""
    """Condition under which its writes have reached the medium, in words."""
    get: str = ""
    """Remedy if it is missing."""
    stand_in: str = ""
    """Substitute used in OpJoule's tests; empty if they used the database itself."""
    module: str = ""
    clients: tuple[str, ...] = ()
    """Python modules, each of which gives the job of a study access to a database that is built into the loader."""
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Program -> shell patterns of its possible places outside the PATH."""
    jars: Mapping[str, Jar] = field(default_factory=dict)
    """Program -> Java archive that is copied to a board without it."""
    version: Command = ()
    driven: Mapping[str, DrivenVersions] = field(default_factory=dict)
    """Program -> its supported versions; a program that is not listed may have any version."""
    server: ServerCommands | None = None

    @property
    def is_server(self) -> bool:
        """Whether it is a process of its own on the board."""
        return self.server is not None


@cache
def known_databases() -> tuple[Database, ...]:
    """Every database, in the order in which they are listed to the user."""
    names = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return tuple(_read(name) for name in [*_ORDER, *(name for name in names if name not in _ORDER)])


def _read(name: str) -> Database:
    entry: dict[str, Any] = _with_tuples(read_toml(_FOLDER / f"{name}.toml"))
    entry["jars"] = {program: Jar(**jar) for program, jar in entry.get("jars", {}).items()}
    entry["driven"] = {program: DrivenVersions(**stated) for program, stated in entry.get("driven", {}).items()}
    entry["server"] = ServerCommands(**entry["server"]) if "server" in entry else None
    return Database(name, **entry)


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_tuples(inner) for key, inner in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def is_server(name: str) -> bool:
    """Whether the database with this name is a server of its own; False for an unknown name."""
    database = database_called(name)
    return bool(database and database.is_server)


def background_threads(name: str) -> int:
    """Number of threads for a database's own work besides operations; 2 for an unknown name."""
    database = database_called(name)
    return database.background_threads if database else 2


def database_called(name: str) -> Database | None:
    """The database with this name; None for an unknown name."""
    return next((database for database in known_databases() if database.name == name), None)


def find_database(name: str) -> Database:
    """The database with this name for the loader. Raises: BadInput: there is none; names the most similar one."""
    database = database_called(name)
    if database and database.in_loader:
        return database
    if database:
        raise BadInput(
            f"the loader has no client for {database.title}: only the studies measure it (measure.py studies)"
        )
    if "," in name:
        raise BadInput(
            f"one measurement has one database, not '{name}': several are a campaign with db = [...] in its file "
            "(host/campaign.py --help)"
        )
    raise BadInput(unknown("database", name, [database.name for database in known_databases() if database.in_loader]))
