"""Loaded databases that are kept on a board's medium, so that a measurement begins with a copy and not with a load.

One is kept under a name that says all that its load depends on, and stays until `measure.py restore --kept` removes
it. `cp` is told not to share blocks: since version 9 GNU's does so where the file system can (coreutils manual, cp,
--reflink), and a shared block is written elsewhere at its first change, which a block of a load is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from opjoule.devices.connection.shell import Shell
from opjoule.devices.on_board import script

FOLDER: Final = "opjoule-kept"
"""Below a medium's path."""
_SCRIPT: Final = script("kept_databases.sh")
_LIMIT_S: Final = 3600.0
"""Flushing and removing a large one on a slow card."""


def _command(*arguments: str) -> list[str]:
    return ["sh", "-c", _SCRIPT, "sh", *arguments]


@dataclass(frozen=True)
class KeptDatabases:
    """Those in one folder of a board, on the file system of the databases that are copied from them."""

    shell: Shell
    folder: str

    def size_bytes(self, name: str) -> int | None:
        """What one takes up on the medium [B]; None where there is none of this name.

        Raises: LinkFault: no connection.
        """
        text = self.shell.run(_command("size", self._path(name)), limit_s=_LIMIT_S).text().strip()
        return int(text) if text.isdecimal() else None

    def keep(self, database: str, name: str) -> None:
        """Takes a database of this session, which nobody has open any more, out of the session: whole, or not at all.

        Raises: DeviceFault: it cannot be kept. LinkFault: no connection.
        """
        ran = self.shell.run(_command("keep", database, self._path(name)), limit_s=_LIMIT_S)
        ran.checked(self.shell.target, "; use --reset load")

    def copy_command(self, name: str, database: str) -> tuple[str, ...]:
        """The board's command that copies one; it fails where the copy is not whole."""
        return tuple(_command("copy", self._path(name), database))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"


def find_kept(shell: Shell, storage: list[str]) -> list[str]:
    """Paths of the kept databases on media, by the media's paths. Raises: LinkFault: no connection."""
    return shell.run(_command("find", *storage)).text().split("\0")[:-1]


def remove_kept(shell: Shell, kept: list[str]) -> list[str]:
    """Removes kept databases; returns those that are gone.

    Raises: DeviceFault: one of them cannot be removed; the others are gone. LinkFault: no connection.
    """
    ran = shell.run(_command("remove", *kept), limit_s=_LIMIT_S)
    return ran.checked(shell.target).text().split("\0")[:-1]
