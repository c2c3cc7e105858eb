"""What is true of a board, read by one script on it."""

from __future__ import annotations

from dataclasses import dataclass

from opjoule.devices.connection.shell import Shell
from opjoule.devices.connection.steps import helper_version
from opjoule.devices.on_board import script
from opjoule.errors import DeviceFault

_SCRIPT = script("facts.sh")


@dataclass(frozen=True)
class BoardFacts:
    """The output of facts.sh, and the facts that the rig itself works with."""

    values: dict[str, str]
    machine: str
    """As uname -m gives it."""
    boot_id: str
    rights: str
    """root, sudo (without a password), helper (sudo for opjoule-root alone) or none."""
    cache: str
    """Folder on the board that stays: the loader."""
    work: str
    """Folder on the board for a run's files: in memory where there is room, so that writing them costs no medium."""
    journal_left: bool
    """True if the board has changes of an earlier run to undo."""
    connection_interface: str
    """Network interface that the connection runs over; empty for none."""


def read_facts(shell: Shell, *, journal: str, session: str = "") -> BoardFacts:
    """Runs facts.sh on the board.

    Args:
        journal: the board's folder that says what has to be undone.
        session: name of the folder below `work` to be made for this session's files; empty for none.
    Raises: LinkFault: no connection. DeviceFault: the board's shell cannot run it, or its opjoule-root is of another
        version.
    """
    ran = shell.run(["sh", "-c", _SCRIPT, "sh", session, journal])
    pairs = (line.split("\t", 1) for line in ran.text().splitlines() if "\t" in line)
    values = {name: value.strip() for name, value in pairs}
    needed = ("machine", "boot_id", "rights", "cache", "work")
    if missing := [name for name in needed if not values.get(name)]:
        raise DeviceFault(
            f"{shell.target} does not tell its {', '.join(missing)} "
            f"(it needs a POSIX shell with uname, sed and awk): {ran.last_line()}"
        )
    if values["rights"] == "helper" and values.get("helper") != helper_version():
        raise DeviceFault(
            f"opjoule-root on {shell.target} is of another version ({values.get('helper', '')}, expected "
            f"{helper_version()}): install it anew with what host/measure.py sudoers prints"
        )
    return BoardFacts(
        values=values,
        **{name: values[name] for name in needed},
        journal_left=values.pop("journal", "") == "left",
        connection_interface=values.get("connection_interface", ""),
    )
