"""A server database on the board: started, awaited, watched, stopped and cleaned by the rig.

The server runs on the board under test, so its energy is inside every window. It is stopped when this program or the
connection ends, as every workload is.
"""

from __future__ import annotations

import contextlib
import csv
import threading
from dataclasses import dataclass
from pathlib import Path

from opjoule.devices.dialogue import Dialogue
from opjoule.devices.runner import Runner
from opjoule.devices.sessions import remove_sessions
from opjoule.devices.shell import Shell
from opjoule.errors import DeviceFault, OpJouleError

PORT = 27916
"""Not MongoDB's own 27017: a server that the board runs already is left alone."""
START_LIMIT_S = 120.0
_PERIOD_S = 1.0
_WATCH = (Path(__file__).parent / "server_watch.sh").read_text()
_LISTENS = (Path(__file__).parent / "server_listens.sh").read_text()
_COLUMNS = ("host_ns", "uptime_s", "cpu_s", "rss_bytes", "read_bytes", "written_bytes")


@dataclass(frozen=True)
class ServerProgram:
    """What is started as the server on a board."""

    path: str = "mongod"
    """On the board's PATH, or with its path."""
    options: tuple[str, ...] = ()


class MongoServer:
    """One mongod on the board, from start to stop()."""

    def __init__(
        self,
        shell: Shell,
        runner: Runner,
        program: ServerProgram,
        *,
        data: str,
        tag: str,
        raw: Path,
        port: int = PORT,
    ) -> None:
        """Starts it on an empty data directory and waits until it listens.

        Args:
            data: directory on the measured medium; must not exist yet.
            tag: of its folder on the board; raw/TAG.csv gets its memory and I/O, about one row a second.
        Raises: DeviceFault: it is not there, does not start, or does not listen; says its last line.
        """
        self._shell = shell
        self._data = data
        self._folder = f"{runner.folder}/{tag}"
        self._ended = threading.Event()
        made = shell.run(["mkdir", "--", data])
        if made.status != 0:
            raise DeviceFault(
                f"cannot make the server's data directory: {made.last_line()}; run measure.py restore"
            )
        command = [program.path, "--dbpath", data, "--port", str(port), "--bind_ip", "127.0.0.1"]
        self._run = runner.start([*command, *program.options], tag, None, pinned=False)
        self._samples = raw / f"{tag}.csv"
        self._dialogue = Dialogue(shell, ["sh", "-c", _WATCH, "sh", self._folder])
        self._threads = [threading.Thread(target=self._drain, daemon=True)]
        self._threads[0].start()
        self.url = f"mongodb://127.0.0.1:{port}"
        try:
            self._await(program.path, port)
        except BaseException:
            with contextlib.suppress(OpJouleError):  # why it did not start is what matters
                self.stop()
            raise
        self._threads.append(threading.Thread(target=self._watch, daemon=True))
        self._threads[1].start()

    def _await(self, mongod: str, port: int) -> None:
        tries = str(int(START_LIMIT_S * 10))
        listens = self._shell.run(
            ["sh", "-c", _LISTENS, "sh", str(port), self._folder, tries], limit_s=START_LIMIT_S + 30
        )
        if listens.status != 0:
            why = "ended" if listens.status == 3 else f"does not listen after {START_LIMIT_S:g} s"
            self._run.interrupt()
            self._run.wait()
            raise DeviceFault(
                f"'{mongod}' on {self._shell.target} {why}: {self._run.complaint() or 'it said nothing'}; "
                "give its path as mongod in rig.toml (docs/how-to/measure-mongodb.md)"
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
        if self._shell.is_up():
            remove_sessions(self._shell, [self._data, self._folder])
