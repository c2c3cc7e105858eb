"""Runs commands on a board, over ssh or on this computer; a command is always an argument list."""

import contextlib
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from opjoule.base.errors import BadInput, DeviceFault, LinkFault

BEAT_S: Final = 5.0
"""Less than half of SILENCE_S."""
SILENCE_S: Final = 20
"""A program on a board that hears nothing from the host for this long ends."""


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
