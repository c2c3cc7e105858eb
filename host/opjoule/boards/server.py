"""A server database on the board: finding programs, setting up the data folder, starting, watching and cleaning up."""

import contextlib
import csv
import re
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opjoule.base.errors import DeviceFault, OpJouleError
from opjoule.boards.databases import Command, Database, ServerCommands
from opjoule.boards.runner import Runner
from opjoule.boards.sessions import remove_sessions
from opjoule.boards.shell import Dialogue, Shell, script

ACCOUNT = "nobody"
"""Account of a server that must not run as root."""
ACCESS = "server-access"
"""Folder of the session with the clients' access data."""
START_LIMIT_S = 120.0
_PREPARE_LIMIT_S = 300.0
_PERIOD_S = 1.0
_COLUMNS = ("host_ns", "uptime_s", "cpu_s", "rss_bytes", "read_bytes", "written_bytes")
_IS_NOT_OURS = 9
"""Exit status if the data folder was not created because it already existed."""
_FIND, _MAKE_DATA = script("find_program.sh"), script("server_data.sh")
_LISTENS, _WATCH = script("server_listens.sh"), script("server_watch.sh")


def find_programs(shell: Shell, database: Database, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Program -> its path on the board.

    Args:
        given: paths that the user states.
    Raises: DeviceFault: a program is missing; says how to install it.
    """
    paths = dict(given or {})
    for name, places in database.programs.items():
        if name in paths:
            continue
        if not (path := program_path(shell, name, places)):
            raise DeviceFault(f"'{name}' of {database.title} is not on {shell.target}: {database.get}")
        paths[name] = path
    return paths


def program_path(shell: Shell, name: str, places: Sequence[str]) -> str:
    """Path of a program on the board; empty if it is not found."""
    ran = shell.run(["sh", "-c", _FIND, "sh", name, *places])
    return ran.text().strip().splitlines()[-1] if ran.status == 0 else ""


def program_version(shell: Shell, database: Database, programs: Mapping[str, str]) -> str:
    """Output of its version command, for example "15.18"; empty if there is none."""
    return _stated_version(shell, database.version, programs) if database.version else ""


def _stated_version(shell: Shell, command: Command, programs: Mapping[str, str]) -> str:
    said = shell.run(list(filled(command, programs)))
    number = re.search(r"\d+(\.\d+)*", said.text() + said.err)
    return number[0] if said.status == 0 and number else ""


def filled(command: Command, places: Mapping[str, str]) -> Command:
    """A command with its placeholders filled in."""

    def put(part: str) -> str:
        for name, value in places.items():
            part = part.replace(f"{{{name}}}", value)
        return part

    return tuple(put(part) for part in command)


@dataclass(frozen=True)
class ServerPrograms:
    """The user's settings for a board's servers."""

    paths: Mapping[str, str] = field(default_factory=dict)
    """Program -> its path, if it is not to be searched for."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Database -> additional options of its server."""


def check_server(shell: Shell, database: Database, given: ServerPrograms) -> None:
    """Checks that a server can be set up, before anything is created or prepared.

    Raises: DeviceFault: a program is missing or has an unsupported version, or its port is in use.
    """
    assert database.server, f"{database.name} is not a server"
    programs = find_programs(shell, database, given.paths)
    for name, path in programs.items():
        if not path.endswith(".jar") and not program_path(shell, path, ()):
            raise DeviceFault(
                f"{shell.target} does not have {path}, which rig.toml names as {database.title}'s "
                f"{name}; {database.get}"
            )
    for name, driven in database.driven.items():
        stated = _stated_version(shell, driven.command, programs)
        major = int(stated.partition(".")[0] or 0)
        if not driven.least <= major <= (major if driven.most is None else driven.most):
            raise DeviceFault(
                f"{programs[name]} on {shell.target} is version {stated or 'unknown'}, and {database.title} needs "
                f"{name} {driven.words}: {database.get}"
            )
    _check_port(shell, database, database.server.port)


def _check_port(shell: Shell, database: Database, port: int) -> None:
    """Checks a port. Raises: DeviceFault: it is in use, so that clients would reach another server."""
    if shell.run(["sh", "-c", _LISTENS, "sh", str(port), "/nowhere", "1"]).status == 0:
        raise DeviceFault(
            f"{database.title} needs port {port} of {shell.target}, which is taken: stop the program that "
            "listens there (ss -ltnp)"
        )


def server_address(commands: ServerCommands, runner: Runner) -> str:
    """Address that the clients on the board connect to."""
    places = {"port": str(commands.port), "passfile": f"{runner.folder}/{ACCESS}/passfile"}
    return filled((commands.address,), places)[0]


class ServerSetup:
    """One server on the board, ready to be started by the rig or by a study's job."""

    def __init__(self, shell: Shell, runner: Runner, database: Database, given: ServerPrograms, *, data: str) -> None:
        """Creates the data folder and sets the server up.

        Args:
            data: directory on the measured medium; must not exist yet.
        Raises: DeviceFault: a program is missing, the port is in use, or the set-up failed; gives its last line.
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
        """The server's folder, by a path that all users can see."""
        try:
            places = {"data": folder, "port": self.port, "secret": f"{folder}/../secret", **programs}
            for command in self._commands.prepare:
                ran = shell.run([*account, *filled(command, places)], limit_s=_PREPARE_LIMIT_S)
                ran.checked(f"{database.title} cannot be set up on {shell.target}")
        except BaseException:
            self._remove()
            raise
        program = filled(self._commands.start, places)
        self.program = program[0]
        self.start = (*account, *program, *given.options.get(database.name, ()))
        self.ready = filled(self._commands.ready, {**places, "data": self._place})

    def to_json(self) -> dict[str, Any]:
        """Data for a study's job that starts the server itself."""
        place = {"data": self._place, "port": int(self.port), "address": self.url}
        return {"title": self._database.title, "start": list(self.start), "ready": list(self.ready), **place}

    def stop(self) -> None:
        """Removes the data of a server that has ended; after a lost link, `restore` does so."""
        self._remove()

    def _remove(self, *more: str) -> None:
        if self._shell.is_up():
            remove_sessions(self._shell, [self._data, self._access, *more])

    def _make_data(self) -> tuple[list[str], str]:
        """Creates the server's data folder and the clients' access data; returns the start prefix and the folder."""
        account = ACCOUNT if self._commands.own_account else ""
        password = secrets.token_hex(16) if self._commands.password else ""
        made = self._shell.run(
            ["sh", "-c", _MAKE_DATA, "sh", self._data, account, self._access], feed=password.encode()
        )
        if made.status not in (0, _IS_NOT_OURS):
            self._remove()
        made.checked("cannot make the server's data directory", "; run measure.py restore")
        folder, *through = made.text().rstrip("\n").split("\n")
        return [word for word in through if word], folder


class DatabaseServer(ServerSetup):
    """One server on the board, started by the rig; it runs until stop().

    It runs on the board under test, so its energy is inside every window. It is stopped when this program or the
    connection ends, like every workload.
    """

    def __init__(
        self,
        shell: Shell,
        runner: Runner,
        database: Database,
        given: ServerPrograms,
        *,
        data: str,
        tag: str,
        raw: Path,
    ) -> None:
        """Starts the server on an empty data directory and waits until it accepts work.

        Args:
            data: directory on the measured medium; must not exist yet.
            tag: of its folder on the board; raw/TAG.csv gets its memory and I/O, about one row a second.
        Raises: DeviceFault: a program is missing, the port is in use, or it does not start; gives its last line.
        """
        super().__init__(shell, runner, database, given, data=data)
        self._folder = f"{runner.folder}/{tag}"
        self._ended = threading.Event()
        self._run = runner.start([*self.start], tag, None, pinned=False)
        self._samples = raw / f"{tag}.csv"
        self._dialogue = Dialogue(shell, ["sh", "-c", _WATCH, "sh", self._folder])
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._drain, self._watch)]
        self._threads[0].start()
        try:
            self._await()
        except BaseException:
            with contextlib.suppress(OpJouleError):  # the reason for the failed start is the error to report
                self.stop()
            raise
        self._threads[1].start()

    def _await(self) -> None:
        tries = str(int(START_LIMIT_S * 10))
        listens = self._shell.run(
            ["sh", "-c", _LISTENS, "sh", self.port, self._folder, tries, *self.ready],
            limit_s=START_LIMIT_S + 30,
        )
        if listens.status != 0:
            why = "ended" if listens.status == 3 else f"accepts no work within {START_LIMIT_S:g} s"
            self._run.interrupt()
            self._run.wait()
            raise DeviceFault(
                f"'{self.program}' on {self._shell.target} {why}: {self._run.complaint() or 'it said nothing'}; "
                f"{self._database.get}"
            )

    def _drain(self) -> None:
        for _ in self._run.lines():
            pass

    def _watch(self) -> None:
        with self._samples.open("w", newline="") as sink:
            rows = csv.writer(sink)
            rows.writerow(_COLUMNS)
            while not self._ended.wait(_PERIOD_S):
                try:
                    answer, host_ns = self._dialogue.ask()
                except OpJouleError:
                    return  # the server or the link has ended: the measurement reports it
                hundredths, ticks, kib, read_bytes, written_bytes = (int(part) for part in answer.split())
                rows.writerow([host_ns, hundredths / 100, ticks / 100, kib * 1024, read_bytes, written_bytes])
                sink.flush()

    def stop(self) -> None:
        """Stops the server in order and removes its data; after a lost link, the board and `restore` do so."""
        self._ended.set()
        self._run.interrupt()
        self._run.wait()
        for thread in filter(threading.Thread.is_alive, self._threads):
            thread.join()  # its last answer arrives, or the dialogue gives up
        self._dialogue.close()
        self._remove(self._folder)
