"""Database servers on a port that the test chooses."""

from __future__ import annotations

from dataclasses import replace

from opjoule.databases.registry import Database, database_called


def server_on(name: str, port: int) -> Database:
    """A database whose server listens on another port, so that a server of this computer does not block it."""
    database = database_called(name)
    assert database.server
    return replace(database, server=replace(database.server, port=port))
