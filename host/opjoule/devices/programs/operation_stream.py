"""Operations made by a program on this computer and carried to the loader on the board, as text, while it runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from opjoule.errors import RigFault


class OperationStream:
    """The program that makes the operations, and where they have to travel, the one that carries them."""

    def __init__(self, command: list[str], log: Path) -> None:
        """Starts the program; what it says on stderr goes to `log`.

        Raises: RigFault: it cannot be started.
        """
        # Nobody would end it if this process were killed: it goes on without a reader.
        with_host = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with log.open("wb") as words:
                self._maker = subprocess.Popen(
                    [*with_host, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=words,
                    start_new_session=True,
                )
        except OSError as error:
            raise RigFault(f"cannot start {command[0]}: {error.strerror}") from error
        self._carrier: subprocess.Popen[bytes] | None = None

    def carry(self, command: list[str]) -> None:
        """Pipes the operations into another program, which takes them to the board."""
        assert self._maker.stdout
        self._carrier = subprocess.Popen(
            command,
            stdin=self._maker.stdout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._maker.stdout.close()  # the carrier has its own end now: once it is gone, the program has none

    def stop(self) -> None:
        """Ends both, whatever they are at."""
        for process in (self._maker, self._carrier):
            if process is None:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
