"""A board under test, composed of its parts: connection, preparation, probe, programs, medium, server database.

A real board behind ssh, this computer as the board, the virtual board and the simulated one differ in their parts.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opjoule.base.errors import DeviceFault, OpJouleError
from opjoule.base.settings import MEDIUM
from opjoule.boards.binaries import Programs
from opjoule.boards.databases import database_called
from opjoule.boards.medium import FOLDER as KEPT_FOLDER
from opjoule.boards.medium import KeptDatabases, read_free_bytes
from opjoule.boards.preparation import Preparation
from opjoule.boards.probe import PERIOD_MS, Probe
from opjoule.boards.runner import PROBE_FOLDER, Disturbance, Runner, RunningDisturbance
from opjoule.boards.runner import TAG as DISTURBANCE
from opjoule.boards.server import (
    DatabaseServer,
    ServerPrograms,
    ServerSetup,
    check_server,
    server_address,
)
from opjoule.boards.sessions import database_folder, remove_sessions, stop_and_fetch
from opjoule.boards.shell import Shell
from opjoule.boards.state_gate import StateWatch


@dataclass(frozen=True)
class ProbeOptions:
    """How the probe watches a board."""

    sync: str | None = None
    """Carrier of the sync line; None for none."""
    period_ms: int = PERIOD_MS
    extra: tuple[str, ...] = ()
    """Options of `probe serve`."""
    under: tuple[str, ...] = ()
    """A command that starts each program whose use is counted, followed by the program's command line."""
    start: Callable[[Shell, str, str, list[str]], Probe] = Probe
    """Function that starts the probe: a simulated board's clock differs from its computer's."""


class Board:
    """One board of the rig, for one session."""

    def __init__(
        self,
        name: str,
        cores: int,
        shell: Shell,
        programs: Programs,
        *,
        facts: Mapping[str, Any],
        session: str,
        kept: str = "",
        preparation: Preparation,
        probe: ProbeOptions,
        pin: str = "",
        disturbance: Disturbance | None = None,
        server: ServerPrograms | None = None,
    ) -> None:
        """Stores the parts; nothing is changed yet.

        Args:
            facts: known facts of the board before its preparation, for run.json.
            session: the board's folder of this session's files; it has the session's name. An interrupted session
                leaves its files to `restore`, never to the next run.
            kept: folder of loaded databases that outlast the session; empty for the one on the medium.
            pin: processors that workloads are restricted to.
        """
        self.name, self.cores = name, cores
        self.shell = shell
        self.programs = programs
        self.preparation = preparation
        self.medium = medium = preparation.medium
        self.kept = KeptDatabases(shell, kept or f"{medium.path.rstrip('/')}/{KEPT_FOLDER}")
        boot_id = str(facts.get("boot_id", ""))
        self.runner = Runner(shell, programs.probe, session, pin=pin, under=probe.under, boot_id=boot_id)
        self._session = session.rpartition("/")[2]
        self._options = probe
        self._probe: Probe | None = None
        self._programs = server or ServerPrograms()
        self._server: ServerSetup | None = None
        self._servers = 0
        self._facts = facts
        self._disturbance = disturbance
        self._disturbing: RunningDisturbance | None = None

    def facts(self) -> dict[str, Any]:
        """All known facts of the board, its programs and its medium, for run.json."""
        return {
            "connection": self.shell.target,
            "loader_sha256": self.programs.loader_sha256,
            "probe_sha256": self.programs.probe_sha256,
            f"{MEDIUM}_path": self.medium.path,
            f"{MEDIUM}_free_bytes": self.free_bytes(),
            "disturbance": self._disturbance,
            **self._facts,
        }

    def free_bytes(self) -> int | None:
        """Upper bound of the medium's free space, exact after prepare() [B]; None if unknown."""
        return read_free_bytes(self.shell, self.medium)

    def prepare(self) -> list[str]:
        """Brings the board into its measuring state and starts the probe; returns a line for each action.

        Raises: BadInput, DeviceFault: a step that the measurement requires has failed. LinkFault.
        """
        done = self.preparation.prepare()
        options = ["--path", self.medium.path, "--period-ms", str(self._options.period_ms)]
        options += ["--sync", self._options.sync] if self._options.sync else []
        folder = f"{self.runner.folder}/{PROBE_FOLDER}"
        options += self._options.extra
        self._probe = self._options.start(self.shell, self.programs.probe, folder, options)
        if self._disturbance:
            self._disturbing = RunningDisturbance(self.runner, self._disturbance, self.medium.path)
            done.append(f"DISTURBED on purpose: {self._disturbance.about}")
        return done

    @property
    def probe(self) -> Probe:
        """The probe, which runs after prepare()."""
        assert self._probe, "the board is not prepared"
        return self._probe

    @property
    def has_sync_line(self) -> bool:
        """Whether the meter sees edges that the board generates."""
        return self._options.sync is not None

    def watch_state(self) -> StateWatch | None:
        """The state gate, to be started after prepare(); None if there is no board to watch."""
        return self.preparation.watch_state(self.probe.steering)

    def restore(self) -> list[str]:
        """Undoes prepare(); returns a line for each failure. Never raises for a board that is gone."""
        self._stop_disturbance()
        return self.preparation.restore()

    def _stop_disturbance(self) -> None:
        running, self._disturbing = self._disturbing, None
        if running:
            running.stop()

    def start_database(self, database: str, raw: Path) -> None:
        """Starts the server of a server database, with its samples in `raw`; does nothing for other databases.

        Raises: DeviceFault: it does not start.
        """
        described = database_called(database)
        if described and described.is_server:
            self._servers += 1
            data = database_folder(self.medium.path, self._session, database)
            tag = f"server-{self._servers}"
            self._server = DatabaseServer(
                self.shell, self.runner, described, self._programs, data=data, tag=tag, raw=raw
            )

    def check_server(self, database: str, paths: Mapping[str, str] | None = None) -> None:
        """Checks that the server of a server database can be started; does nothing for other databases.

        Args:
            paths: program -> its path, for programs that were copied to the board.
        Raises: DeviceFault: a program is missing or has an unsupported version, or its port is in use.
        """
        described = database_called(database)
        if described and described.is_server:
            check_server(self.shell, described, self._programs_with(paths or {}))

    def _programs_with(self, paths: Mapping[str, str]) -> ServerPrograms:
        return replace(self._programs, paths={**paths, **self._programs.paths})

    def set_up_server(self, database: str, paths: Mapping[str, str]) -> dict[str, Any]:
        """Sets up a server that a study's job starts and stops; returns the data that the job needs.

        Args:
            paths: program -> its path, for programs that were copied to the board.
        Raises: DeviceFault: it cannot be set up.
        """
        described = database_called(database)
        assert described, f"{database} is not a database"
        data = database_folder(self.medium.path, self._session, database)
        self._server = ServerSetup(self.shell, self.runner, described, self._programs_with(paths), data=data)
        return self._server.to_json()

    def database_path(self, database: str) -> str:
        """A separate directory below the medium's path; for a server database its address."""
        described = database_called(database)
        if described and described.server:
            return server_address(described.server, self.runner)
        return database_folder(self.medium.path, self._session, database)

    def make_folder(self, path: str) -> None:
        """Creates a folder from database_path(). Raises: DeviceFault: it cannot be created."""
        made = self.shell.run(["mkdir", "--", path])
        made.checked(f"cannot make {path} on the board", "; run measure.py restore")

    def remove_database(self, database: str) -> None:
        """Removes this session's database of a name, or its server; after a lost link, `restore` does so."""
        described = database_called(database)
        if described and described.is_server:
            server, self._server = self._server, None
            if server:
                server.stop()
            return
        path = database_folder(self.medium.path, self._session, database)
        if "/" in database or not database:
            raise DeviceFault(f"refusing to remove {path}: '{database}' is no database's name")
        if self.shell.is_up():
            remove_sessions(self.shell, [path])

    def end_probe(self, raw: Path) -> None:
        """Ends the probe and moves its remaining files to raw/; after a lost link, `restore` does so."""
        self._stop_disturbance()
        if self._probe is None:
            return
        self._probe.close()
        with contextlib.suppress(OpJouleError, OSError):  # the error that ended the run has been reported
            if self.shell.is_up():
                stop_and_fetch(self.shell, f"{self.runner.folder}/{PROBE_FOLDER}", raw)

    def close(self) -> None:
        """Ends server and probe, removes this session's files on the board and closes the connection."""
        with contextlib.suppress(OpJouleError):  # the board is gone: `restore` cleans up
            if self._server:
                self._server.stop()
        self._stop_disturbance()
        if self._probe:
            self._probe.close()
        self.preparation.close()
        with contextlib.suppress(OpJouleError):
            if self.shell.is_up():
                folder = self.runner.folder
                made_here = ("files", PROBE_FOLDER, DISTURBANCE)
                remove_sessions(self.shell, [f"{folder}/{name}" for name in made_here])
                self.shell.run(["rmdir", "--", folder])  # keeps files that could not be fetched
        self.shell.close()
