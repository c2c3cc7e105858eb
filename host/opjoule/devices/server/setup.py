"""A server database's data folder on the board, set up, and the commands that start it there and await it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opjoule.databases.registry import Database, ServerCommands
from opjoule.devices.connection.sessions import remove_sessions
from opjoule.devices.connection.shell import Shell
from opjoule.devices.on_board import script
from opjoule.devices.programs.runner import Runner
from opjoule.devices.server.programs import check_programs, filled, find_programs
from opjoule.errors import DeviceFault

ACCOUNT = "nobody"
"""Account of a server that root may not be."""
ACCESS = "server-access"
"""Folder of the session with what clients need to be let in."""
LISTENS = script("server_listens.sh")
_MAKE_DATA = script("server_data.sh")
_PREPARE_LIMIT_S = 300.0
_IS_NOT_OURS = 9
"""Exit status where the data folder was not made: it was there already."""


@dataclass(frozen=True)
class ServerPrograms:
    """What the user says of a board's servers."""

    paths: Mapping[str, str] = field(default_factory=dict)
    """Program -> its path, where it is not looked for."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Database -> further options of its server."""


def check_server(shell: Shell, database: Database, given: ServerPrograms) -> None:
    """Sees that a server can be set up, before anything is made or prepared.

    Raises: DeviceFault: a program is missing or of another version than is driven, or its port is taken.
    """
    assert database.server, f"{database.name} is not a server"
    check_programs(shell, database, find_programs(shell, database, given.paths))
    _check_port(shell, database, database.server.port)


def _check_port(shell: Shell, database: Database, port: int) -> None:
    """Raises: DeviceFault: somebody listens there, whom the clients would reach in its place."""
    if shell.run(["sh", "-c", LISTENS, "sh", str(port), "/nowhere", "1"]).status == 0:
        raise DeviceFault(
            f"{database.title} needs port {port} of {shell.target}, which is taken: stop the program that "
            "listens there (ss -ltnp)"
        )


def server_address(commands: ServerCommands, runner: Runner) -> str:
    """What the clients on the board connect to."""
    places = {"port": str(commands.port), "passfile": f"{runner.folder}/{ACCESS}/passfile"}
    return filled((commands.address,), places)[0]


class ServerSetup:
    """One server on the board, ready to be started: by the rig, or by the job of a study."""

    def __init__(
        self,
        shell: Shell,
        runner: Runner,
        database: Database,
        given: ServerPrograms,
        *,
        data: str,
    ) -> None:
        """Makes its data folder and sets it up.

        Args:
            data: directory on the measured medium; must not exist yet.
        Raises: DeviceFault: it is not there, its port is taken, or it cannot be set up; says its last line.
        """
        assert database.server, f"{database.name} is not a server"
        self._shell, self._database, self._commands = shell, database, database.server
        self._data = data
        self._access = f"{runner.folder}/{ACCESS}"
        self.port = str(database.server.port)
        self.url = server_address(self._commands, runner)
        programs = find_programs(shell, database, given.paths)
        _check_port(shell, database, database.server.port)
        account, folder = self._make_data()
        self._place = f"{data}/server" if account else folder
        """Its folder, as everybody knows it."""
        try:
            places = {"data": folder, "port": self.port, "secret": f"{folder}/../secret", **programs}
            for command in self._commands.prepare:
                ran = shell.run([*account, *filled(command, places)], limit_s=_PREPARE_LIMIT_S)
                ran.checked(f"{database.title} cannot be set up on {shell.target}")
        except BaseException:
            self.stop()
            raise
        program = filled(self._commands.start, places)
        self.program = program[0]
        self.start = (*account, *program, *given.options.get(database.name, ()))
        self.ready = filled(self._commands.ready, {**places, "data": self._place})

    def to_json(self) -> dict[str, Any]:
        """What the job of a study needs that starts the server itself."""
        place = {"data": self._place, "port": int(self.port), "address": self.url}
        return {"title": self._database.title, "start": list(self.start), "ready": list(self.ready), **place}

    def stop(self, *more: str) -> None:
        """Removes the data of a server that has ended, and further folders; a lost link leaves that to `restore`."""
        if self._shell.is_up():
            remove_sessions(self._shell, [self._data, self._access, *more])

    def _make_data(self) -> tuple[list[str], str]:
        """Its data folder, and what clients need. Gives what it is started through, and the folder."""
        account = ACCOUNT if self._commands.own_account else ""
        password = secrets.token_hex(16) if self._commands.password else ""
        made = self._shell.run(
            ["sh", "-c", _MAKE_DATA, "sh", self._data, account, self._access], feed=password.encode()
        )
        if made.status not in (0, _IS_NOT_OURS):
            self.stop()
        made.checked("cannot make the server's data directory", "; run measure.py restore")
        folder, *through = made.text().rstrip("\n").split("\n")
        return [word for word in through if word], folder
