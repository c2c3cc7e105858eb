"""Where a board has the programs of a database, and of what version they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from opjoule.databases.registry import Command, Database
from opjoule.devices.connection.shell import Shell
from opjoule.devices.on_board import script
from opjoule.errors import DeviceFault

_FIND = script("find_program.sh")


def find_programs(shell: Shell, database: Database, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Program -> its path on the board.

    Args:
        given: those that the user says where they are.
    Raises: DeviceFault: one is missing; says how to get it.
    """
    paths = dict(given or {})
    for name, places in database.programs.items():
        if name in paths:
            continue
        if not (path := program_path(shell, name, places)):
            raise DeviceFault(f"'{name}' of {database.title} is not on {shell.target}: {database.get}")
        paths[name] = path
    return paths


def program_path(shell: Shell, name: str, places: Sequence[str]) -> str:
    """The path of a program on the board; empty for nowhere."""
    looked = shell.run(["sh", "-c", _FIND, "sh", name, *places])
    return looked.text().strip().splitlines()[-1] if looked.status == 0 else ""


def check_programs(shell: Shell, database: Database, programs: Mapping[str, str]) -> None:
    """Sees that a database's programs can be run and are of versions that are driven.

    Args:
        programs: program -> its path on the board.
    Raises: DeviceFault: one is not; says what to do.
    """
    for name, path in programs.items():
        if not path.endswith(".jar") and not program_path(shell, path, ()):
            raise DeviceFault(
                f"{shell.target} does not have {path}, which rig.toml names as {database.title}'s "
                f"{name}; {database.get}"
            )
    for name, driven in database.driven.items():
        stated = _stated_version(shell, driven.command, programs)
        major = int(stated.partition(".")[0] or 0)
        if not driven.least <= major <= (major if driven.most is None else driven.most):
            raise DeviceFault(
                f"{programs[name]} on {shell.target} is version {stated or 'unknown'}, and {database.title} needs "
                f"{name} {driven.words}: {database.get}"
            )


def program_version(shell: Shell, database: Database, programs: Mapping[str, str]) -> str:
    """What its version command says of it, for example "15.18"; empty where it says none."""
    return _stated_version(shell, database.version, programs) if database.version else ""


def _stated_version(shell: Shell, command: Command, programs: Mapping[str, str]) -> str:
    said = shell.run(list(filled(command, programs)))
    number = re.search(r"\d+(\.\d+)*", said.text() + said.err)
    return number[0] if said.status == 0 and number else ""


def filled(command: Command, places: Mapping[str, str]) -> Command:
    """A command with its places filled in."""

    def put(part: str) -> str:
        for name, value in places.items():
            part = part.replace(f"{{{name}}}", value)
        return part

    return tuple(put(part) for part in command)
