"""A loader process on a board behind a shell: followed live, its files fetched when it ends or the link is back."""

from __future__ import annotations

import contextlib
import io
import subprocess
import tarfile
import threading
from pathlib import Path

from opjoule.devices.loader_process import LoaderProcess
from opjoule.devices.operation_stream import OperationStream
from opjoule.devices.sessions import remove_sessions
from opjoule.devices.shell import Shell
from opjoule.errors import DeviceFault, LinkFault

BEAT_S = 5.0
SILENCE_S = 20
"""A loader that has not heard from the host for this long stops."""
RECONNECT_S = 120.0
_SCRIPT = (Path(__file__).parent / "run_on_board.sh").read_text()
_STOP_AND_PACK = (Path(__file__).parent / "stop_and_pack.sh").read_text()
_NO_FOLDER, _RUNS_ON = 3, 4


def stop_and_fetch(shell: Shell, folder: str, raw: Path) -> list[str]:
    """Stops a loader that still runs in `folder` (directly in a session's), copies its files to `raw` and removes it.

    Returns: names of the files that arrived; empty when the board kept none (a reboot empties its memory disk).
    Raises: LinkFault: the connection is gone. DeviceFault: the loader does not stop, or the files do not arrive.
    """
    packed = shell.run(["sh", "-c", _STOP_AND_PACK, "sh", folder], limit_s=600)
    if packed.status == _NO_FOLDER:
        return []
    if packed.status == _RUNS_ON:
        raise DeviceFault(f"the loader on {shell.target} does not stop; its files stay in {folder}")
    if packed.status != 0:
        raise DeviceFault(
            f"the loader's files in {folder} on {shell.target} cannot be read: {packed.last_line()}"
        )
    raw.mkdir(parents=True, exist_ok=True)
    arrived = _unpack(packed.out, raw)
    remove_sessions(shell, [folder])
    return arrived


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


class BoardLoader(LoaderProcess):
    """One loader run; `folder` on the board receives its files, `raw` on the host their copies."""

    def __init__(self, shell: Shell, command: list[str], folder: str, raw: Path) -> None:
        self._shell = shell
        self._folder = folder
        self._raw = raw
        self._ended = threading.Event()
        self._beat_lock = threading.Lock()
        wrapped = ["sh", "-c", _SCRIPT, "sh", folder, str(SILENCE_S), *command]
        super().__init__(shell.command(wrapped), stdin=subprocess.PIPE)
        threading.Thread(target=self._beat, name="loader-lifeline", daemon=True).start()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_S):
            with self._beat_lock:
                if not self._write_beat():
                    return

    def _write_beat(self) -> bool:
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            return False
        try:
            stdin.write(".")
            stdin.flush()
        except OSError:
            return False
        return True

    def take_operations(self, stream: OperationStream, fifo: str) -> None:
        """Carries a stream of operations to the FIFO on the board that the loader reads them from."""
        self._stream = stream
        stream.carry(self._shell.command(["sh", "-c", 'exec cat >"$1"', "sh", fifo]))

    def interrupt(self) -> None:
        """Ends the lifeline: the board stops the loader, which closes its files in order."""
        self._ended.set()
        with self._beat_lock:
            if self._process.stdin and not self._process.stdin.closed:
                with contextlib.suppress(OSError):  # the connection is gone; finish() says so
                    self._process.stdin.close()

    def wait(self) -> int:
        """Waits for the end; after a lost link fetches the files as soon as the board is back.

        Raises: LinkFault: the link was lost; says whether the files were fetched.
        """
        status = super().wait()
        self.interrupt()
        if (self._shell.is_up() and status != _SSH_LOST) or self._shell.is_still_up():
            return status
        raise LinkFault(self._after_lost_link())

    def fetch(self) -> None:
        """Copies its files to the host and removes them from the board.

        Raises: LinkFault, DeviceFault: the files did not arrive.
        """
        stop_and_fetch(self._shell, self._folder, self._raw)

    def _after_lost_link(self) -> str:
        why = f"the link to {self._shell.target} was lost ({self._shell.why_down()})"
        if not self._shell.reconnect(RECONNECT_S):
            return f"{why} and is not back after {RECONNECT_S:g} s; when it is, run measure.py restore"
        arrived = stop_and_fetch(self._shell, self._folder, self._raw)
        if not arrived:
            return f"{why}; the board is back, but has restarted and kept no files of this phase"
        return f"{why}; the board is back and its files were fetched"


_SSH_LOST = 255
