"""The commands of set-up: each writes to a log, and all end when set-up is interrupted."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from plain_folder import ROOT

_RUNNING: set[subprocess.Popen[bytes]] = set()
_ENDED = threading.Event()


class SetupError(Exception):
    """Set-up cannot continue; the text states what to do."""


class Interrupted(SetupError):
    """The user ended set-up."""


def say(line: str) -> None:
    """Prints one line of progress on stderr; stdout is kept for results."""
    sys.stderr.write(line + "\n")  # in one write, because several lanes print at the same time
    sys.stderr.flush()


def logged(command: list[str], log: Path) -> None:
    """Runs one command with its output in `log`. If it fails, the error contains the last lines.

    Raises: SetupError: it failed. Interrupted: end_running() ended it.
    """
    if _ENDED.is_set():
        raise Interrupted("set-up was interrupted")
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
    if status != 0 and _ENDED.is_set():
        raise Interrupted("set-up was interrupted")
    if status != 0:
        tail = "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-15:])
        raise SetupError(
            f"This command failed (its whole output is in {log}):\n  {' '.join(command)}\n{tail}"
        )


def end_running() -> None:
    """Asks the commands of other threads to stop; no command starts afterwards."""
    _ENDED.set()
    for running in list(_RUNNING):
        running.terminate()
