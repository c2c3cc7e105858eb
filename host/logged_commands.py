"""The commands of set-up: each writes into a log, and none outlives a set-up that was interrupted."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from plain_folder import ROOT

_RUNNING: set[subprocess.Popen[bytes]] = set()
_ENDED = threading.Event()


class SetupError(Exception):
    """Set-up cannot go on; the text says what to do."""


def say(line: str) -> None:
    """One line of progress; stdout stays free for results."""
    sys.stderr.write(line + "\n")  # in one piece: lanes speak side by side
    sys.stderr.flush()


def logged(command: list[str], log: Path) -> None:
    """Runs one command with its output in `log`; its last lines go into the error when it fails.

    Raises: SetupError: it failed, or end_running() ended it.
    """
    if _ENDED.is_set():
        raise SetupError("set-up was interrupted")
    with log.open("ab") as sink:
        sink.write(("$ " + " ".join(command) + "\n").encode())
        sink.flush()
        running = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, cwd=ROOT)
        _RUNNING.add(running)
        try:
            status = running.wait()
        except BaseException:
            running.terminate()
            running.wait()
            raise
        finally:
            _RUNNING.discard(running)
    if status != 0:
        tail = "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-15:])
        raise SetupError(
            f"This command failed (its whole output is in {log}):\n  {' '.join(command)}\n{tail}"
        )


def end_running() -> None:
    """Asks the commands of other threads to stop; none starts from then on."""
    _ENDED.set()
    for running in list(_RUNNING):
        running.terminate()
