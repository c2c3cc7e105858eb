"""The commands of set-up: each writes to a log, and all end when set-up is interrupted."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

from plain_folder import ROOT

_RUNNING: set[subprocess.Popen[bytes]] = set()
_ENDED = threading.Event()
_UNREACHED = (
    r"Temporary failure (?:resolving|in name resolution)|Could not (?:resolve|connect)|Unable to connect|"
    r"Network is unreachable|No route to host|Name or service not known|Failed to establish a new connection|"
    r"dns error|UnknownHost|Unknown host|[Cc]onnection (?:timed out|refused)"
)
"""What apt, pip, uv and Maven say where they do not reach an address."""
_ABSENT = r"Unable to locate package|has no installation candidate"
"""What apt says of a package if its lists are empty, as when its update has reached nothing."""
_LASTING = (
    (r"No space left on device|Disk quota exceeded|not enough free space", "a disk is full: free some space"),
    (r"[Cc]ertificate.verify.failed|CERTIFICATE_VERIFY_FAILED|invalid peer certificate|certificate is NOT trusted",
     "a certificate is not trusted: behind a proxy of your own give pip its certificate (PIP_CERT, SSL_CERT_FILE)"),
    (r"Read-only file system", "a file system is read-only: make it writable, or clone to another place"),
)  # fmt: skip
"""What programs say -> what is the matter with the computer, and what to do."""
_NO_MEMORY = r"Killed signal terminated|virtual memory exhausted|Cannot allocate memory|out of memory allocating"
"""What compilers say if memory does not suffice; a smaller file may still be compiled."""


class SetupError(Exception):
    """Set-up cannot continue; the text states what to do."""


class Lasting(SetupError):
    """Every further command would fail, too: no network, a full disk, no root rights."""


class Interrupted(Lasting):
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
        begin = sink.tell()
        try:
            running = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, cwd=ROOT)
        except FileNotFoundError:
            raise SetupError(f"{command[0]} is not installed (host/packages.txt lists what is needed)") from None
        _RUNNING.add(running)
        if _ENDED.is_set():  # end_running() has come between the question above and this
            running.terminate()
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
        _raise_reason(log, begin)
        tail = "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-15:])
        raise SetupError(f"This command failed (its whole output is in {log}):\n  {' '.join(command)}\n{tail}")


def _raise_reason(log: Path, begin: int) -> None:
    """Raises an error in one line if the output of a log's last command shows what is the matter with the computer.

    Args:
        begin: byte of the log at which that output begins. Commands before it may tell why apt knows no package.
    """
    text = log.read_bytes()
    said, before = (part.decode(errors="replace") for part in (text[begin:], text[:begin]))
    where = f"(the whole output is in {log})"
    unreached = re.search(_UNREACHED, said) or (re.search(_ABSENT, said) and re.search(_UNREACHED, before))
    if unreached:
        remedy = "check the connection, or name a mirror or proxy in the settings of apt and pip"
        raise Lasting(f"there is no way to the network ({unreached[0]}): {remedy} {where}")
    for pattern, reason in _LASTING:
        if re.search(pattern, said):
            raise Lasting(f"{reason} {where}")
    if re.search(_NO_MEMORY, said):
        raise SetupError(f"not enough memory for a compiler: close other programs, or add swap {where}")


def end_running() -> None:
    """Asks the commands of other threads to stop; no command starts afterwards."""
    _ENDED.set()
    for running in list(_RUNNING):
        running.terminate()
