"""The folders that a measurement makes on a board: they bear its session's name, and are removed by it alone."""

from __future__ import annotations

import uuid

from opjoule.devices.connection.shell import Shell
from opjoule.devices.on_board import script

_SCRIPT = script("sessions.sh")
_REMOVE_LIMIT_S = 600.0


def new_session() -> str:
    """A name that no other measurement has: opjoule- and twelve hexadecimal digits."""
    return f"opjoule-{uuid.uuid4().hex[:12]}"


def database_folder(storage: str, session: str, database: str) -> str:
    """Where one session's database lies on a medium."""
    return f"{storage.rstrip('/')}/{session}-{database}"


def find_sessions(shell: Shell, folders: list[str]) -> list[str]:
    """Paths of everything directly below the board's `folders` that bears a session's name.

    Raises: LinkFault: the connection is gone.
    """
    return shell.run(["sh", "-c", _SCRIPT, "sh", "find", *folders]).text().split("\0")[:-1]


def remove_sessions(shell: Shell, folders: list[str]) -> list[str]:
    """Removes folders that bear a session's name, or lie directly in one that does; a missing one is no fault.

    Returns: those that were there and are gone.
    Raises: DeviceFault: one of them may not, or cannot, be removed; the others are gone. LinkFault: no connection.
    """
    ran = shell.run(["sh", "-c", _SCRIPT, "sh", "remove", *folders], limit_s=_REMOVE_LIMIT_S)
    return ran.checked(shell.target).text().split("\0")[:-1]
