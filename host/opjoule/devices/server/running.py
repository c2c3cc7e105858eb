"""A server database on the board: started, awaited, watched, stopped and cleaned by the rig.

The server runs on the board under test, so its energy is inside every window. It is stopped when this program or the
connection ends, as every workload is.
"""

from __future__ import annotations

import contextlib
import csv
import threading
from pathlib import Path

from opjoule.databases.registry import Database
from opjoule.devices.connection.dialogue import Dialogue
from opjoule.devices.connection.shell import Shell
from opjoule.devices.on_board import script
from opjoule.devices.programs.runner import Runner
from opjoule.devices.server.setup import LISTENS, ServerPrograms, ServerSetup
from opjoule.errors import DeviceFault, OpJouleError

START_LIMIT_S = 120.0
_PERIOD_S = 1.0
_WATCH = script("server_watch.sh")
_COLUMNS = ("host_ns", "uptime_s", "cpu_s", "rss_bytes", "read_bytes", "written_bytes")


class DatabaseServer:
    """One server on the board, from start to stop()."""

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
        """Starts it on an empty data directory and waits until it takes work.

        Args:
            data: directory on the measured medium; must not exist yet.
            tag: of its folder on the board; raw/TAG.csv gets its memory and I/O, about one row a second.
        Raises: DeviceFault: it is not there, its port is taken, or it does not start; says its last line.
        """
        self._shell, self._database = shell, database
        self._folder = f"{runner.folder}/{tag}"
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._setup = ServerSetup(shell, runner, database, given, data=data)
        self._run = runner.start([*self._setup.start], tag, None, pinned=False)
        self._samples = raw / f"{tag}.csv"
        self._dialogue = Dialogue(shell, ["sh", "-c", _WATCH, "sh", self._folder])
        self._threads.append(threading.Thread(target=self._drain, daemon=True))
        self._threads[0].start()
        self.url = self._setup.url
        try:
            self._await()
        except BaseException:
            with contextlib.suppress(OpJouleError):  # why it did not start is what matters
                self.stop()
            raise
        self._threads.append(threading.Thread(target=self._watch, daemon=True))
        self._threads[1].start()

    def _await(self) -> None:
        tries = str(int(START_LIMIT_S * 10))
        listens = self._shell.run(
            ["sh", "-c", LISTENS, "sh", self._setup.port, self._folder, tries, *self._setup.ready],
            limit_s=START_LIMIT_S + 30,
        )
        if listens.status != 0:
            why = "ended" if listens.status == 3 else f"accepts no work within {START_LIMIT_S:g} s"
            self._run.interrupt()
            self._run.wait()
            raise DeviceFault(
                f"'{self._setup.program}' on {self._shell.target} {why}: {self._run.complaint() or 'it said nothing'}; "
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
                    _, answer, host_ns = self._dialogue.ask()
                except OpJouleError:
                    return  # the server or the link has ended: the measurement says so
                hundredths, ticks, kib, read, written = (int(part) for part in answer.split())
                rows.writerow([host_ns, hundredths / 100, ticks / 100, kib * 1024, read, written])
                sink.flush()

    def stop(self) -> None:
        """Ends the server in order and removes its data; a lost link leaves that to the board and to `restore`."""
        self._ended.set()
        self._run.interrupt()
        self._run.wait()
        for thread in self._threads:
            thread.join()  # its last answer comes, or is given up by the dialogue
        self._dialogue.close()
        self._setup.stop(self._folder)
