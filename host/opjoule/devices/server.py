"""A server database on the board: started, awaited, watched, stopped and cleaned by the rig.

The server runs on the board under test, so its energy is inside every window. It is stopped when this program or the
connection ends, as a loader is (run_on_board.sh).
"""

from __future__ import annotations

import contextlib
import csv
import subprocess
import threading
from pathlib import Path

from opjoule.devices.dialogue import Dialogue
from opjoule.devices.loader_process import LoaderProcess
from opjoule.devices.sessions import remove_sessions
from opjoule.devices.shell import Shell
from opjoule.errors import DeviceFault, OpJouleError

PORT = 27916
"""Not MongoDB's own 27017: a server that the board runs already is left alone."""
START_LIMIT_S = 120.0
_PERIOD_S = 1.0
_SCRIPT = (Path(__file__).parent / "run_on_board.sh").read_text()
_SILENCE_S = 20
_BEAT_S = 5.0

_WATCH = (Path(__file__).parent / "server_watch.sh").read_text()
_LISTENS = (Path(__file__).parent / "server_listens.sh").read_text()
_COLUMNS = ("host_ns", "uptime_s", "cpu_s", "rss_bytes", "read_bytes", "written_bytes")


class MongoServer:
    """One mongod on the board, from start to stop()."""

    def __init__(
        self,
        shell: Shell,
        *,
        mongod: str,
        options: list[str],
        data: str,
        folder: str,
        samples: Path,
        port: int = PORT,
    ) -> None:
        """Starts it on an empty data directory and waits until it listens.

        Args:
            mongod: the program, on the board's PATH or with its path.
            options: further arguments of mongod.
            data: directory on the measured medium; must not exist yet.
            folder: the board's folder for this run's files.
            samples: host file for its memory and I/O, about one row a second.
        Raises: DeviceFault: it is not there, does not start, or does not listen; says its last line.
        """
        self._shell = shell
        self._data = data
        self._folder = folder
        self._ended = threading.Event()
        made = shell.run(["sh", "-c", 'mkdir -p -- "$1" && mkdir -- "$2"', "sh", folder, data])
        if made.status != 0:
            raise DeviceFault(
                f"cannot make the server's data directory: {made.last_line()}; run measure.py restore"
            )
        command = [mongod, "--dbpath", data, "--port", str(port), "--bind_ip", "127.0.0.1", *options]
        wrapped = ["sh", "-c", _SCRIPT, "sh", folder, str(_SILENCE_S), *command]
        self._process = ServerProcess(shell.command(wrapped))
        self._samples = samples
        self._dialogue = Dialogue(shell, ["sh", "-c", _WATCH, "sh", folder])
        self._threads = [threading.Thread(target=self._beat, daemon=True)]
        self._threads[0].start()
        self.url = f"mongodb://127.0.0.1:{port}"
        try:
            self._await(mongod, port)
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
            self._process.end_input()
            self._process.wait()
            raise DeviceFault(
                f"'{mongod}' on {self._shell.target} {why}: {self._process.complaint() or 'it said nothing'}; "
                "give its path as mongod in rig.toml (docs/how-to/measure-mongodb.md)"
            )

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_S):
            self._process.beat()

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
        for thread in self._threads:
            thread.join()  # its last answer comes, or is given up by the dialogue
        self._dialogue.close()
        self._process.end_input()
        self._process.wait()
        if self._shell.is_up():
            remove_sessions(self._shell, [self._data, self._folder])


class ServerProcess(LoaderProcess):
    """The server's wrapper on the board, held by its standard input; its output is read and thrown away."""

    def __init__(self, command: list[str]) -> None:
        super().__init__(command, stdin=subprocess.PIPE)
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        for _ in self.lines():
            pass

    def beat(self) -> None:
        """Tells the board that the host is still there."""
        stdin = self._process.stdin
        if stdin and not stdin.closed:
            with contextlib.suppress(OSError):  # the connection is gone: the measurement says so
                stdin.write(".")
                stdin.flush()

    def end_input(self) -> None:
        """The board stops the server in order."""
        stdin = self._process.stdin
        if stdin and not stdin.closed:
            with contextlib.suppress(OSError):
                stdin.close()
