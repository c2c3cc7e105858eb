"""The storage medium of a run: what is done to it before, and only if the user allows it to be lost.

Loaded databases may be kept on it, so that a measurement begins with a copy and not with a load. One is kept under a
name that says all that its load depends on, and stays until `measure.py restore --kept` removes it. `cp` is told not to
share blocks: since version 9 GNU's does so where the file system can (coreutils manual, cp, --reflink), and a shared
block is written elsewhere at its first change, which a block of a load is not.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from msgspec import Meta

from opjoule.devices.connection.shell import Shell
from opjoule.devices.connection.steps import Change
from opjoule.devices.on_board import script
from opjoule.devices.state.block_devices import why_not_expendable
from opjoule.devices.state.board_state import BoardState
from opjoule.devices.state.state_settings import StateSettings
from opjoule.errors import BadInput

FOLDER: Final = "opjoule-kept"
"""Below a medium's path: its kept databases."""
_FREE_SPACE: Final = script("free_space.sh")
_KEPT: Final = script("kept_databases.sh")
_KEPT_LIMIT_S: Final = 3600.0
"""Flushing and removing a large one on a slow card."""


@dataclass(frozen=True)
class Medium:
    """The storage medium of a run, as rig.toml gives it."""

    path: Annotated[
        str, Meta(pattern="^/", description='an absolute directory of the board, for example "/mnt/ssd"')
    ]
    device: Annotated[
        str, Meta(pattern="^(/dev/|$)", description='a name under /dev, for example "/dev/disk/by-id/..."')
    ] = ""
    """Block device; empty for a directory on whatever is mounted there."""
    expendable: Annotated[bool, Meta(description="true or false")] = False
    """True if the user allows everything on the device to be lost."""
    sensor: Annotated[
        Annotated[int, Meta(ge=0, le=15)],
        Meta(description="the place of a further sensor in the meter's list: 1 for the second"),
    ] = 0
    """Place of the further sensor in this medium's own supply line; 0: there is none."""
    supply: Annotated[Literal["board", "own"], Meta(description='"board" or "own"')] = "board"
    """Whose supply it draws from: the board's, so that the board's sensor sees it, too, or one of its own."""


def plan_medium(state: BoardState, wanted: StateSettings, medium: Medium, user: str) -> Iterator[Change]:
    """Mounts a medium that has a device of its own, made new or changed only if it is expendable."""
    changes = wanted.file_system != "keep" or wanted.journal != "keep" or wanted.precondition_mb > 0
    if not medium.device:
        if changes:
            raise BadInput(
                f'{medium.path} has no device in rig.toml: give device = "/dev/disk/by-id/..." and expendable = true '
                "to have its file system made, checked or changed"
            )
        return
    number = state.medium_number
    if not number:
        raise BadInput(f"{medium.device} is not a block device of the board; mend it in rig.toml")
    listed = [medium.device] if medium.expendable else []
    if changes and (why := why_not_expendable(medium.device, number, listed, state.blocks)):
        raise BadInput(f"refusing to write to the medium: {why}")
    device, node = state.medium_device, _node_number(number)
    mark = state.file_system_uuid
    if wanted.file_system == "new":
        mark = str(uuid.uuid4())
        about = f"new ext4 on {device}, everything on it lost"
        yield Change(about, ("make_file_system", device, node, mark))
    elif wanted.file_system == "check":
        yield Change(f"file system on {device} checked", ("check_file_system", device, node))
    yield from _journal(state, wanted, device, node, mark)
    points = state.blocks.mounts.get(number, [])
    if not points:
        yield from _mount(state, device, number, medium, user)
    elif state.path_number != number:
        raise BadInput(
            f"{medium.device} is mounted on {points[0]}, and {medium.path} is not on it: "
            "unmount it, or mend path in rig.toml"
        )
    if wanted.precondition_mb:
        fill = ("fill", medium.path, str(wanted.precondition_mb))
        yield Change(f"{wanted.precondition_mb} MiB written and removed", fill)
    if wanted.trim == "yes" and medium.expendable:  # it discards what a data recovery would look for
        yield Change(f"TRIM of {medium.path}", ("trim", medium.path))


def _node_number(number: str) -> str:
    """MAJOR:MINOR as `stat -c %t:%T` prints a device node's."""
    return ":".join(f"{int(part):x}" for part in number.split(":"))


def _mount(state: BoardState, device: str, number: str, medium: Medium, user: str) -> Iterator[Change]:
    if not state.path_number:
        made = ("mkdir", "-p", "--", medium.path)
        yield Change(f"directory {medium.path}", made, ("remove_folder", medium.path), lasting=True)
    mount = ("mount_medium", device, _node_number(number), medium.path)
    yield Change(f"{device} mounted on {medium.path}", mount, ("unmount", medium.path, number))
    if medium.expendable:
        yield Change(f"{medium.path} given to {user}", ("chown", user, medium.path))


def _journal(state: BoardState, wanted: StateSettings, device: str, node: str, mark: str) -> Iterator[Change]:
    before = "on" if wanted.file_system == "new" else state.journal
    if wanted.journal in ("keep", before):
        return
    if not before:
        raise BadInput(
            f"{device} holds no ext4 file system, so it has no journal to switch: make one with "
            'file_system = "new"'
        )
    yield Change(
        f"ext4 journal {wanted.journal} (was {before})",
        (f"journal_{wanted.journal}", device, node),
        ("journal_back", before, mark),
        lasting=True,
    )


def read_free_bytes(shell: Shell, medium: Medium) -> int | None:
    """Bytes that the board's user may still write there [B]; None where the board does not say.

    Of a medium whose device is not mounted yet it is the size of the device: never less than what will be free.

    Raises: LinkFault: no connection.
    """
    ran = shell.run(["sh", "-c", _FREE_SPACE, "sh", medium.path, medium.device])
    words = ran.text().split()
    if ran.status != 0 or len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    blocks, block_bytes = map(int, words)
    return blocks * block_bytes


def _kept_script(*arguments: str) -> list[str]:
    return ["sh", "-c", _KEPT, "sh", *arguments]


@dataclass(frozen=True)
class KeptDatabases:
    """Kept databases in one folder of a board, on the file system of the databases that are copied from them."""

    shell: Shell
    folder: str

    def size_bytes(self, name: str) -> int | None:
        """What one takes up on the medium [B]; None if there is none of this name. Raises: LinkFault: no connection."""
        text = self.shell.run(_kept_script("size", self._path(name)), limit_s=_KEPT_LIMIT_S).text().strip()
        return int(text) if text.isdecimal() else None

    def keep(self, database: str, name: str) -> None:
        """Takes a database of this session, which nobody has open any more, out of the session: whole, or not at all.

        Raises: DeviceFault: it cannot be kept. LinkFault: no connection.
        """
        ran = self.shell.run(_kept_script("keep", database, self._path(name)), limit_s=_KEPT_LIMIT_S)
        ran.checked(self.shell.target, "; use --reset load")

    def copy_command(self, name: str, database: str) -> tuple[str, ...]:
        """The board's command that copies one; it fails where the copy is not whole."""
        return tuple(_kept_script("copy", self._path(name), database))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"


def find_kept(shell: Shell, storage: list[str]) -> list[str]:
    """Paths of the kept databases on media, by the media's paths. Raises: LinkFault: no connection."""
    return shell.run(_kept_script("find", *storage)).text().split("\0")[:-1]


def remove_kept(shell: Shell, kept: list[str]) -> list[str]:
    """Removes kept databases; returns those that are gone.

    Raises: DeviceFault: one of them cannot be removed; the others are gone. LinkFault: no connection.
    """
    ran = shell.run(_kept_script("remove", *kept), limit_s=_KEPT_LIMIT_S)
    return ran.checked(shell.target).text().split("\0")[:-1]
