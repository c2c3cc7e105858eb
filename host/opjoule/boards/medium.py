"""The medium of a run: its preparation, and only if the user allows its data to be lost.

Loaded databases may be kept on it, so that a measurement begins with a copy instead of a load. A kept database has a
name that encodes everything its load depends on, and stays until `measure.py restore --kept` removes it. `cp` is called
with block sharing disabled: since version 9 GNU's shares blocks if the file system can (coreutils manual, cp,
--reflink). A shared block is written elsewhere at its first change, unlike a block of a load.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from msgspec import Meta

from opjoule.base.errors import BadInput
from opjoule.boards.board_state import BoardState, StateSettings, why_not_expendable
from opjoule.boards.shell import Shell, script
from opjoule.boards.steps import Change

FOLDER: Final = "opjoule-kept"
"""Folder of a medium's kept databases, below its path."""
_FREE_SPACE: Final = script("free_space.sh")
_KEPT: Final = script("kept_databases.sh")
_KEPT_LIMIT_S: Final = 3600.0
"""Time limit for flushing and removing a large database on a slow card."""


@dataclass(frozen=True)
class Medium:
    """The medium of a run, as described in rig.toml."""

    path: Annotated[str, Meta(pattern="^/", description='an absolute directory of the board, for example "/mnt/ssd"')]
    device: Annotated[
        str, Meta(pattern="^(/dev/|$)", description='a name under /dev, for example "/dev/disk/by-id/..."')
    ] = ""
    """Block device; empty for a directory on whatever is mounted there."""
    expendable: Annotated[bool, Meta(description="true or false")] = False
    """Whether the user allows all data on the device to be lost."""
    sensor: Annotated[
        int,
        Meta(ge=0, le=15, description="the place of a further sensor in the meter's list: 1 for the second"),
    ] = 0
    """Place of the additional sensor in this medium's own supply line; 0 if there is none."""
    supply: Annotated[Literal["board", "own"], Meta(description='"board" or "own"')] = "board"
    """The supply that it draws from: the board's, so that the board's sensor also measures it, or its own."""


def plan_medium(state: BoardState, wanted: StateSettings, medium: Medium, user: str) -> Iterator[Change]:
    """Mounts a medium with its own device; formats or changes it only if it is expendable."""
    changes = wanted.file_system != "keep" or wanted.journal != "keep" or wanted.precondition_mb > 0
    if not medium.device:
        if changes:
            raise BadInput(
                f'{medium.path} has no device in rig.toml: give device = "/dev/disk/by-id/..." and expendable = true '
                "to have its file system made, checked or changed"
            )
        return
    number = _number_of(state, medium)
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
    mount = list(mount_steps(state, medium))
    yield from mount
    if mount and medium.expendable:
        yield Change(f"{medium.path} given to {user}", ("chown", user, medium.path))
    if wanted.trim == "yes" and medium.expendable:  # it discards the blocks that a data recovery would need
        yield Change(f"TRIM of {medium.path}", ("trim", medium.path))
    if wanted.precondition_mb:  # after TRIM, which could give the written blocks back
        fill = ("fill", medium.path, str(wanted.precondition_mb))
        yield Change(f"{wanted.precondition_mb} MiB written and removed", fill)


def mount_steps(state: BoardState, medium: Medium) -> Iterator[Change]:
    """Mounts a medium with its own device on its path; nothing if it is mounted there already.

    Raises: BadInput: the device is missing, or mounted elsewhere.
    """
    number = _number_of(state, medium)
    if points := state.blocks.mounts.get(number, []):
        if state.path_number != number:
            raise BadInput(
                f"{medium.device} is mounted on {points[0]}, and {medium.path} is not on it: "
                "unmount it, or mend path in rig.toml"
            )
        return
    if not state.path_number:
        made = ("mkdir", "-p", "--", medium.path)
        yield Change(f"directory {medium.path}", made, ("remove_folder", medium.path), lasting=True)
    device = state.medium_device
    mount = ("mount_medium", device, _node_number(number), medium.path)
    yield Change(f"{device} mounted on {medium.path}", mount, ("unmount", medium.path, number))


def _number_of(state: BoardState, medium: Medium) -> str:
    if not state.medium_number:
        raise BadInput(f"{medium.device} is not a block device of the board; mend it in rig.toml")
    return state.medium_number


def _node_number(number: str) -> str:
    """MAJOR:MINOR from the output of `stat -c %t:%T` for a device node."""
    return ":".join(f"{int(part):x}" for part in number.split(":"))


def _journal(state: BoardState, wanted: StateSettings, device: str, node: str, mark: str) -> Iterator[Change]:
    before = "on" if wanted.file_system == "new" else state.journal
    if wanted.journal in ("keep", before):
        return
    if not before:
        raise BadInput(
            f'{device} holds no ext4 file system, so it has no journal to switch: make one with file_system = "new"'
        )
    yield Change(
        f"ext4 journal {wanted.journal} (was {before})",
        (f"journal_{wanted.journal}", device, node),
        ("journal_back", before, mark),
        lasting=True,
    )


def read_free_bytes(shell: Shell, medium: Medium) -> int | None:
    """Bytes that the board's user may still write to the medium [B]; None if the board does not report it.

    If the medium's device is not mounted yet, the size of the device: never less than the space that will be free.

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
        """Size of a kept database on the medium [B]; None if there is none. Raises: LinkFault: no connection."""
        text = self.shell.run(_kept_script("size", self._path(name)), limit_s=_KEPT_LIMIT_S).text().strip()
        return int(text) if text.isdecimal() else None

    def keep(self, database: str, name: str) -> None:
        """Moves a closed database of this session out of the session, all or nothing.

        Raises: DeviceFault: it cannot be kept. LinkFault: no connection.
        """
        ran = self.shell.run(_kept_script("keep", database, self._path(name)), limit_s=_KEPT_LIMIT_S)
        ran.checked(self.shell.target, "; use --reset load")

    def copy_command(self, name: str, database: str) -> tuple[str, ...]:
        """The board's command that copies a kept database; it fails if the copy is incomplete."""
        return tuple(_kept_script("copy", self._path(name), database))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"


def find_kept(shell: Shell, media_paths: list[str]) -> list[str]:
    """Paths of the kept databases on media. Raises: LinkFault: no connection."""
    return shell.run(_kept_script("find", *media_paths)).text().split("\0")[:-1]


def remove_kept(shell: Shell, kept: list[str]) -> list[str]:
    """Removes kept databases; returns the removed ones.

    Raises: DeviceFault: one cannot be removed; the others are removed. LinkFault: no connection.
    """
    ran = shell.run(_kept_script("remove", *kept), limit_s=_KEPT_LIMIT_S)
    return ran.checked(shell.target).text().split("\0")[:-1]
