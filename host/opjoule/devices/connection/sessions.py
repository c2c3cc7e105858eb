"""The folders that a measurement makes on a board: they bear its session's name, and are removed by it alone.

Files come from there to the host: a workload's when it has ended, the probe's between two repeats.
"""

from __future__ import annotations

import io
import tarfile
import uuid
from pathlib import Path

from opjoule.devices.connection.shell import Shell
from opjoule.devices.on_board import script
from opjoule.errors import DeviceFault

_SCRIPT = script("sessions.sh")
_STOP_AND_PACK = script("stop_and_pack.sh")
_NO_FOLDER, _RUNS_ON = 3, 4
_LIMIT_S = 600.0


def new_session() -> str:
    """A name that no other measurement has: opjoule- and twelve hexadecimal digits."""
    return f"opjoule-{uuid.uuid4().hex[:12]}"


def database_folder(storage: str, session: str, database: str) -> str:
    """Where one session's database lies on a medium."""
    return f"{storage.rstrip('/')}/{session}-{database}"


def find_sessions(shell: Shell, folders: list[str]) -> list[str]:
    """Paths directly below the board's `folders` that bear a session's name. Raises: LinkFault: no connection."""
    return shell.run(["sh", "-c", _SCRIPT, "sh", "find", *folders]).text().split("\0")[:-1]


def remove_sessions(shell: Shell, folders: list[str]) -> list[str]:
    """Removes folders that bear a session's name, or lie directly in one that does; a missing one is no fault.

    Returns: those that were there and are gone.
    Raises: DeviceFault: one of them may not, or cannot, be removed; the others are gone. LinkFault: no connection.
    """
    ran = shell.run(["sh", "-c", _SCRIPT, "sh", "remove", *folders], limit_s=_LIMIT_S)
    return ran.checked(shell.target).text().split("\0")[:-1]


def stop_and_fetch(shell: Shell, folder: str, raw: Path) -> list[str]:
    """Stops a program that still runs in `folder` (directly in a session's), copies its files to `raw` and removes it.

    Args:
        raw: an existing host folder.
    Returns: names of the files that arrived; empty when the board kept none (a reboot empties its memory disk).
    Raises: LinkFault: the connection is gone. DeviceFault: the program does not stop, or the files do not arrive.
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

    Raises: LinkFault: the connection is gone. DeviceFault: one of them did not arrive.
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
