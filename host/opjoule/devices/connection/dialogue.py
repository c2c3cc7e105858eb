"""A process on the board that answers each line with one line at once: the board's clock, its pending writes."""

from __future__ import annotations

import select
import subprocess
import threading
import time

from opjoule.devices.connection.shell import Shell
from opjoule.errors import LinkFault

_ANSWER_S = 30.0


class Dialogue:
    """Started at the first question, and again after the connection was lost. Safe from several threads."""

    def __init__(self, shell: Shell, arguments: list[str]) -> None:
        self._shell = shell
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Starts the process now, so that the first answer does not wait for it."""
        with self._lock:
            self._running()

    def ask(self, question: str = "") -> tuple[int, str, int]:
        """(host_ns when the question left, the answer, host_ns when it arrived).

        Raises: LinkFault: no answer within 30 s, or the process ended.
        """
        with self._lock:
            process = self._running()
            assert process.stdin and process.stdout
            try:
                sent_ns = time.monotonic_ns()
                process.stdin.write(question.encode() + b"\n")
                process.stdin.flush()
                answered = select.select([process.stdout], [], [], _ANSWER_S)[0]
                answer = process.stdout.readline() if answered else b""
                received_ns = time.monotonic_ns()
            except OSError:
                answer = b""
            if not answer.endswith(b"\n"):
                raise LinkFault(f"{self._shell.target} does not answer: {self._last_words()}")
            return sent_ns, answer.decode(errors="replace").strip(), received_ns

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            if not self._shell.is_up():
                raise LinkFault(f"the connection to {self._shell.target} is lost: {self._shell.why_down()}")
            self._process = self._shell.begin(self._arguments)
        return self._process

    def _last_words(self) -> str:
        process, self._process = self._process, None
        assert process and process.stderr and process.stdin
        process.kill()
        process.wait()
        words = process.stderr.read().decode(errors="replace").strip().splitlines()
        return words[-1] if words else self._shell.why_down() or f"no answer within {_ANSWER_S:g} s"

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()
                self._process = None
