"""Names of the databases, as the loader knows them, with their title."""

from __future__ import annotations

from dataclasses import dataclass

from opjoule.errors import BadInput
from opjoule.suggestion import unknown


@dataclass(frozen=True)
class Database:
    """One database: the loader's engine name and how it is written in prose."""

    name: str
    title: str
    is_server: bool = False
    """A process of its own on the board, started by the rig; the others run inside the loader."""
    background_threads: int = 2
    """That do its own work; with one, a flush interrupts a compaction (LevelDB's implementation notes)."""


_DATABASES = (
    Database("leveldb", "LevelDB", background_threads=1),
    Database("sqlite", "SQLite"),
    Database("rocksdb", "RocksDB"),
    Database("lmdb", "LMDB"),
    Database("berkeleydb", "Berkeley DB"),
    Database("flatfolder", "Flat folder"),
    Database("nestedfolder", "Nested folder"),
    Database("mongodb", "MongoDB", is_server=True),
)


def known_databases() -> tuple[Database, ...]:
    """Every database, in the order they are listed to the user."""
    return _DATABASES


def is_server(name: str) -> bool:
    """Whether the database of this name is a server of its own; False for an unknown name."""
    return any(database.is_server for database in _DATABASES if database.name == name)


def background_threads(name: str) -> int:
    """Threads that do the work of a database beside its operations; 2 for an unknown name."""
    return next((each.background_threads for each in _DATABASES if each.name == name), 2)


def find_database(name: str) -> Database:
    """The database called `name`.

    Raises: BadInput: no such database; names the known ones and the nearest.
    """
    for database in _DATABASES:
        if database.name == name:
            return database
    raise BadInput(unknown("database", name, [database.name for database in _DATABASES]))
