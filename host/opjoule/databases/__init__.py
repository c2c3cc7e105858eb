"""The databases that can be measured, and what the rig does differently for each."""

from opjoule.databases.registry import (
    Database,
    background_threads,
    database_called,
    find_database,
    is_server,
    known_databases,
)

__all__ = [
    "Database",
    "background_threads",
    "database_called",
    "find_database",
    "is_server",
    "known_databases",
]
