"""A measurement's session on a board: a lock that only one has, and folders that only it removes.

The lock is on the board and held as long as this host is connected. The folders have the session's name. Files are
copied from there to the host: a workload's when it has ended, the probe's between two repeats.
"""

import io
import select
import subprocess
import tarfile
import threading
import uuid
from pathlib import Path

from opjoule.base.errors import DeviceFault
from opjoule.boards.shell import SILENCE_S, Shell, beat_until, end_by_input, script

_SCRIPT = script("sessions.sh")
_STOP_AND_PACK = script("stop_and_pack.sh")
_NO_FOLDER, _RUNS_ON = 3, 4
_LIMIT_S = 600.0


def new_session() -> str:
    """A unique session name: opjoule- and twelve hexadecimal digits."""
    return f"opjoule-{uuid.uuid4().hex[:12]}"


def database_folder(medium_path: str, session: str, database: str) -> str:
    """Folder of one session's database on a medium."""
    return f"{medium_path.rstrip('/')}/{session}-{database}"


def find_sessions(shell: Shell, folders: list[str]) -> list[str]:
    """Paths directly below the board's `folders` that have a session's name. Raises: LinkFault: no connection."""
    return shell.run(["sh", "-c", _SCRIPT, "sh", "find", *folders]).text().split("\0")[:-1]


def remove_sessions(shell: Shell, folders: list[str]) -> list[str]:
    """Removes folders that have a session's name, or are directly in one that has; a missing one is not an error.

    Returns: the folders that were removed.
    Raises: DeviceFault: one may not, or cannot, be removed; the others are removed. LinkFault: no connection.
    """
    ran = shell.run(["sh", "-c", _SCRIPT, "sh", "remove", *folders], limit_s=_LIMIT_S)
    return ran.checked(shell.target).text().split("\0")[:-1]


def stop_and_fetch(shell: Shell, folder: str, raw: Path) -> list[str]:
    """Stops a program still running in `folder` (directly in a session's), copies its files to `raw` and removes it.

    Args:
        raw: an existing host folder.
    Returns: names of the fetched files; empty if the board has none (a reboot empties its memory disk).
    Raises: LinkFault: the connection is gone. DeviceFault: the program does not stop, or its files cannot be fetched.
    """
    packed = shell.run(["sh", "-c", _STOP_AND_PACK, "sh", folder], limit_s=_LIMIT_S)
    if packed.status == _NO_FOLDER:
        return []
    if packed.status == _RUNS_ON:
        raise DeviceFault(f"a program in {folder} on {shell.target} does not stop; its files stay there")
    arrived = _unpack(packed.checked(f"the files in {folder} on {shell.target} cannot be read").out, raw)
    remove_sessions(shell, [folder])
    return arrived


def fetch_files(shell: Shell, folder: str, names: list[str], raw: Path) -> None:
    """Copies some files of a board's folder to `raw`, and removes them there once they have arrived.

    Raises: LinkFault: the connection is gone. DeviceFault: a file did not arrive.
    """
    packed = shell.run(["tar", "-C", folder, "-cf", "-", "--", *names], limit_s=_LIMIT_S)
    _unpack(packed.checked(f"{', '.join(names)} of {folder} on {shell.target}").out, raw)
    shell.run(["rm", "-f", "--", *(f"{folder}/{name}" for name in names)])


def _unpack(archive: bytes, raw: Path) -> list[str]:
    arrived = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            name = Path(member.name).name
            content = members.extractfile(member) if member.isfile() else None
            if content is None or name in {"pid", "status"}:
                continue
            part = raw / f"{name}.part"
            part.write_bytes(content.read())
            part.rename(raw / name)
            arrived.append(name)
    return arrived


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
