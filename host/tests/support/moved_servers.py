"""Database servers on a port that the test chooses."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from opjoule.boards.binaries import find_program
from opjoule.boards.databases import Database, database_called
from opjoule.boards.probe import Probe
from opjoule.boards.runner import PROBE_FOLDER, Runner
from opjoule.boards.server import DatabaseServer, ServerPrograms
from opjoule.boards.shell import LocalShell

BUILD = Path(__file__).resolve().parents[3] / "build"


def server_on(name: str, port: int) -> Database:
    """A database whose server listens on another port, so that a server of this computer does not block it."""
    database = database_called(name)
    assert database.server
    return replace(database, server=replace(database.server, port=port))


@contextlib.contextmanager
def postgresql_for_jobs(folder: Path, session: str, port: int) -> Iterator[str]:
    """Runs a PostgreSQL on a port of the test, as the rig starts it for a job. Yields: its address."""
    shell, program = LocalShell(), str(find_program(BUILD, platform.machine(), "probe"))
    runner, data = Runner(shell, program, str(folder / session)), str(folder / f"{session}-postgresql")
    with contextlib.closing(Probe(shell, program, f"{folder / session}/{PROBE_FOLDER}", [])):
        made = DatabaseServer(
            shell,
            runner,
            server_on("postgresql", port),
            ServerPrograms(),
            data=data,
            tag="server-1",
            raw=folder,
        )
        try:
            yield made.url
        finally:
            made.stop()
