"""A loader process on this computer: its JSON lines as they come, from stdout and stderr."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import IO, Any

from opjoule.devices.operation_stream import OperationStream
from opjoule.errors import RigFault

_END_OF_STREAM = None
LINE_MAX = 1 << 20
"""Letters of a line; what comes without an end is taken apart there, and is no JSON then."""
COMPLAINT_MAX = 500


class LoaderProcess:
    """Runs one command and hands out its JSON lines; other lines of stderr are kept as its complaint."""

    def __init__(
        self, command: list[str], *, stdin: int = subprocess.DEVNULL, stream: OperationStream | None = None
    ) -> None:
        """Starts the loader; `stream` becomes its standard input."""
        self._stream = stream
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._complaint = ""
        try:
            # A session of its own: a Ctrl-C at the terminal reaches the host alone, which then stops it in order.
            self._process = subprocess.Popen(
                command,
                stdin=stream.output if stream else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            if stream:
                stream.stop()
            raise RigFault(
                f"cannot start {command[0]}: {error.strerror}; run host/measure.py doctor"
            ) from error
        if stream:
            stream.passed_on()
        assert self._process.stdout and self._process.stderr
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in (self._process.stdout, self._process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str]) -> None:
        while line := stream.readline(LINE_MAX):
            text = line.strip()
            try:
                parsed = json.loads(text)
            except (ValueError, RecursionError):
                parsed = None
            if isinstance(parsed, dict):
                self._lines.put(parsed)
            elif text:
                self._complaint = text[:COMPLAINT_MAX]
        self._lines.put(_END_OF_STREAM)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every JSON line until both streams have ended."""
        open_streams = len(self._readers)
        while open_streams:
            item = self._lines.get()
            if item is _END_OF_STREAM:
                open_streams -= 1
            else:
                yield item

    def interrupt(self) -> None:
        """SIGINT: the loader flushes its logs and ends."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        """Waits for the end; the exit status, negative for a signal. Nothing is done on the board."""
        for reader in self._readers:
            reader.join()
        status = self._process.wait()
        if self._stream:
            self._stream.stop()
        return status

    def fetch(self) -> None:
        """Its files are here already."""

    def complaint(self) -> str:
        """The last plain line on stderr, without the program's name."""
        return self._complaint.removeprefix("loader: ")
