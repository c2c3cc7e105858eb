"""One measurement at a time on a board: a lock on the board, held as long as this host is connected."""

import select
import subprocess
import threading

from opjoule.base.errors import DeviceFault
from opjoule.boards.connection.shell import SILENCE_S, Shell, beat_until, end_by_input
from opjoule.boards.on_board import script

_ANSWER_S = 30.0
_RELEASE_S = 30.0
_HOLD = script("hold_lock.sh")


class BoardLock:
    """Requested at creation; confirm() waits for the answer, so that other work can continue meanwhile."""

    def __init__(self, shell: Shell, folder: str, wait_s: int = 0) -> None:
        """Requests the lock of the board's `folder`, repeatedly for up to wait_s."""
        self._wait_s = wait_s
        self._shell = shell
        command = ["sh", "-c", _HOLD, "sh", folder, str(SILENCE_S), str(wait_s)]
        self._process = shell.begin(command, stderr=subprocess.DEVNULL)
        self._ended = threading.Event()
        assert self._process.stdin
        stdin = self._process.stdin
        beat_until(self._ended, lambda: stdin.write(b"."), "board-lock")

    def confirm(self) -> None:
        """Waits until the lock is held. Raises: DeviceFault: another measurement holds it, or no answer."""
        assert self._process.stdout
        answered = select.select([self._process.stdout], [], [], _ANSWER_S + self._wait_s)[0]
        answer = self._process.stdout.readline().strip() if answered else b""
        if answer == b"taken":
            raise DeviceFault(
                f"another measurement is running on {self._shell.target}: wait until it ends (after a lost "
                f"connection that takes up to {SILENCE_S} s)"
            )
        if answer != b"held":
            raise DeviceFault(f"{self._shell.target} cannot lock its working folder: install flock and timeout there")

    def close(self) -> None:
        """Releases the lock, and waits until the board has released it, so that a new request can follow at once."""
        self._ended.set()
        end_by_input(self._process, _RELEASE_S)
