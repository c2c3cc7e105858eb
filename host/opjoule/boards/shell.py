"""Runs commands on a board, over ssh or on this computer, and programs whose output is read line by line.

A command is always an argument list.
"""

import contextlib
import json
import queue
import select
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from opjoule.base.errors import BadInput, DeviceFault, LinkFault, RigFault
from opjoule.base.passwords import masked

_SCRIPTS: Final = Path(__file__).parent / "on_board"
BEAT_S: Final = 5.0
"""Less than half of SILENCE_S."""
SILENCE_S: Final = 20
"""A program on a board that hears nothing from the host for this long ends."""


def script(name: str) -> str:
    """The text of a shell script that runs on a board, by its file name in on_board/."""
    return (_SCRIPTS / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Ran:
    """Outcome of one command."""

    status: int
    out: bytes
    err: str

    def text(self) -> str:
        """stdout as text."""
        return self.out.decode(errors="replace")

    def last_line(self) -> str:
        """The last plain line of its stderr, or its exit status in words."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        return lines[-1] if lines else f"it ended with status {self.status}"

    def checked(self, fault: str, remedy: str = "") -> Self:
        """This outcome, if successful. Raises: DeviceFault: `fault`, its last line and the remedy."""
        if self.status != 0:
            raise DeviceFault(f"{fault}: {self.last_line()}{remedy}")
        return self


class Shell(ABC):
    """A way to run commands on the board. Callers never build a command as a string."""

    target = "this computer"
    """Computer on which the commands run, for messages."""

    @property
    def hostname(self) -> str:
        """Network name of the board; empty for this computer."""
        return ""

    @abstractmethod
    def run(self, arguments: list[str], *, feed: bytes = b"", limit_s: float = 120.0) -> Ran:
        """Runs one command to its end. Raises: LinkFault: no connection, or it has not ended within limit_s."""

    def command(self, arguments: list[str]) -> list[str]:
        """The local command line that runs `arguments` on the board."""
        return without_nul(arguments)

    def begin(
        self, arguments: list[str], *, stderr: int = subprocess.PIPE, bufsize: int = 0
    ) -> subprocess.Popen[bytes]:
        """Starts a command with pipes, in its own session, so that a Ctrl-C at the terminal reaches only the host."""
        command, pipe = self.command(arguments), subprocess.PIPE
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=stderr, bufsize=bufsize, start_new_session=True
        )

    def is_up(self) -> bool:
        """False once the connection is lost."""
        return True

    def is_still_up(self) -> bool:
        """is_up() after a command ended as if the connection were lost: waits until that is certain."""
        return True

    def why_down(self) -> str:
        """The connection's last message."""
        return ""

    def reconnect(self, limit_s: float) -> bool:
        """Tries to reconnect for up to limit_s; returns whether that succeeded."""
        return True

    def close(self) -> None:
        """Closes the connection."""


class LocalShell(Shell):
    """This computer as the board: there is no connection that could fail."""

    def run(self, arguments: list[str], *, feed: bytes = b"", limit_s: float = 120.0) -> Ran:
        """Runs one command here."""
        try:
            ended = subprocess.run(
                self.command(arguments), input=feed, capture_output=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise DeviceFault(f"'{arguments[0]}' has not ended within {limit_s:g} s") from error
        except OSError as error:
            return Ran(127, b"", f"{arguments[0]}: {error.strerror}")
        return Ran(ended.returncode, ended.stdout, ended.stderr.decode(errors="replace"))


def without_nul(arguments: list[str]) -> list[str]:
    """The arguments, checked for NUL bytes, which no argument can contain. Raises: BadInput: a NUL byte."""
    for argument in arguments:
        if "\0" in argument:
            raise BadInput(f"{argument!r} holds a NUL byte, which no command can be given")
    return arguments


def end_by_input(process: subprocess.Popen[Any], limit_s: float) -> None:
    """Closes the input of a process that ends with it; kills it if that takes longer than `limit_s`."""
    assert process.stdin
    with contextlib.suppress(OSError):  # the connection is gone: the board ends it by itself
        process.stdin.close()
    try:
        process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def beat_until(ended: threading.Event, beat: Callable[[], object], name: str) -> None:
    """Calls `beat` every BEAT_S in its own thread, until `ended` is set or the program stops listening.

    `beat` raises OSError, ValueError (a closed pipe) or LinkFault if nobody listens; the next request to the program
    reports the reason.
    """

    def run() -> None:
        try:
            while not ended.wait(BEAT_S):
                beat()
        except (OSError, ValueError, LinkFault):
            return

    threading.Thread(target=run, name=name, daemon=True).start()


_ANSWER_S = 30.0
_END_OF_LINES = None
LINE_MAX = 1 << 20
"""Characters of a line; longer input without a line end is split there, and is not JSON then."""
COMPLAINT_MAX = 500
LOG_MAX = 64 << 20
"""Characters of plain output that are kept; the rest is dropped."""


class Dialogue:
    """A process on the board that answers each line immediately with one line: the board's clock, its pending writes.

    Started at the first request, and again after a lost connection. Thread-safe.
    """

    def __init__(self, shell: Shell, arguments: list[str]) -> None:
        self._shell = shell
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Starts the process now, so that the first answer does not wait for it."""
        with self._lock:
            self._running()

    def ask(self, question: str = "") -> tuple[str, int]:
        """(the answer, host_ns when it arrived).

        Raises: LinkFault: no answer within 30 s, or the process ended.
        """
        with self._lock:
            process = self._running()
            assert process.stdin and process.stdout
            try:
                process.stdin.write(question.encode() + b"\n")
                process.stdin.flush()
                answered = select.select([process.stdout], [], [], _ANSWER_S)[0]
                answer = process.stdout.readline() if answered else b""
                received_ns = time.monotonic_ns()
            except OSError:
                answer = b""
            if not answer.endswith(b"\n"):
                raise LinkFault(f"{self._shell.target} does not answer: {self._last_words()}")
            return answer.decode(errors="replace").strip(), received_ns

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


class LineProcess:
    """Runs one command and returns its JSON lines; its other lines go to a log, and the last one is its complaint."""

    def __init__(self, command: list[str], *, log: Path | None = None) -> None:
        """Starts the command, with a pipe to its standard input.

        Args:
            log: host file for its plain lines, created with the first one; None to keep only the last line.
        Raises: RigFault: it cannot be started.
        """
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._complaint = ""
        self._log_path, self._logged = log, 0
        self._log: IO[str] | None = None
        self._log_lock = threading.Lock()
        self._guard = threading.Lock()
        self._open_streams = 2
        self._all_read = threading.Event()
        try:
            # Its own session, so that a Ctrl-C at the terminal reaches only the host, which then stops it in order.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise RigFault(f"cannot start {command[0]}: {error.strerror}; run host/measure.py doctor") from error
        assert self._process.stdout and self._process.stderr
        for stream in (self._process.stdout, self._process.stderr):
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: IO[str]) -> None:
        try:
            with stream:
                self._take_lines(stream)
        finally:
            with self._guard:
                self._open_streams -= 1
                if self._open_streams == 0:
                    self._end_lines()

    def _take_lines(self, stream: IO[str]) -> None:
        while line := stream.readline(LINE_MAX):
            text = line.strip()
            try:
                parsed = json.loads(text)
            except (ValueError, RecursionError):
                parsed = None
            if isinstance(parsed, dict):
                self._lines.put(parsed)
            elif text:
                self._complaint = masked(text)[:COMPLAINT_MAX]
                self._keep(masked(line))

    def _end_lines(self) -> None:
        self._all_read.set()
        self._lines.put(_END_OF_LINES)

    def give_up(self, why: str) -> None:
        """Ends lines() and wait() although the output is still open, and kills the process, unless it has ended."""
        with self._guard:
            if self._all_read.is_set():
                return
            self._complaint = why
            self._process.kill()
            self._end_lines()

    def _keep(self, line: str) -> None:
        """Adds a plain line to the log; on a full disk only the log is lost, not the run."""
        if self._log_path is None:
            return
        with self._log_lock:
            try:
                self._log = self._log or self._log_path.open("w", encoding="utf-8", errors="replace")
                self._log.write(line[: max(LOG_MAX - self._logged, 0)])
                self._log.flush()
                self._logged += len(line)
            except OSError:
                self._log_path = None

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every JSON line until both streams have ended; to be called once."""
        while (item := self._lines.get()) is not _END_OF_LINES:
            yield item

    def wait(self) -> int:
        """Waits for the end; returns the exit status, negative for a signal."""
        self._all_read.wait()
        with self._log_lock:
            if self._log:
                self._log.close()
                self._log_path = None
        status = self._process.wait()
        if self._process.stdin:
            with contextlib.suppress(OSError):  # unread input is lost with it
                self._process.stdin.close()
        return status

    def complaint(self) -> str:
        """The last plain line, without the program's name."""
        return self._complaint.removeprefix("loader: ").removeprefix("probe: ")
