"""Changes of a board's settings: sent to its shell as one block, journalled there, undone from the journal."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from opjoule.devices.connection.shell import Shell
from opjoule.devices.on_board import script
from opjoule.errors import DeviceFault

_LIMIT_S = 3600.0
_NEEDED = {
    "make_file_system",
    "check_file_system",
    "mount_medium",
    "journal_on",
    "journal_off",
    "take_memory",
    "chown",
}


@dataclass(frozen=True)
class Change:
    """One change: a function of steps.sh with its arguments, and the one that undoes it."""

    about: str
    do: tuple[str, ...]
    undo: tuple[str, ...] = ()
    lasting: bool = False
    """True if the change outlives a reboot."""

    @property
    def is_needed(self) -> bool:
        """True for a step without which the measurement would be of something else: if it fails, none follows."""
        return self.do[0] in _NEEDED


_FUNCTIONS = script("steps.sh")
JOURNAL = "/var/lib/opjoule/journal"
"""Folder on the board that says what has to be undone; on its disk, so that it outlives host, link and power."""


def prepare_script(steps: list[Change], journal: str = JOURNAL) -> bytes:
    """One block of shell text that runs all steps; the board's shell runs it only once it has all of it."""
    lines = []
    for number, step in enumerate(steps, 1):
        undo = shlex.join(step.undo) if step.undo else ""
        scope = "lasting" if step.lasting else "volatile"
        needed = ["needed"] if step.is_needed else []
        lines.append(shlex.join([*needed, "step", str(number), scope, undo, *step.do]))
    return _block(journal, lines)


def restore_script(journal: str = JOURNAL) -> bytes:
    """One block of shell text that undoes everything in the board's journal, last change first."""
    return _block(journal, ["restore"])


def _block(journal: str, lines: list[str]) -> bytes:
    parts = ["{", f"journal={shlex.quote(journal)}", _FUNCTIONS, "one_at_a_time", *lines, "exit 0", "}", ""]
    return "\n".join(parts).encode()


def run_as_root(shell: Shell, rights: str, script: bytes) -> dict[str, list[str]]:
    """Runs a script of prepare_script() or restore_script() on the board.

    Returns: outcomes by step number: ["done", ...] or ["failed", why].
    Raises: LinkFault: the connection is gone. DeviceFault: the board's shell did not take the script.
    """
    ran = shell.run([*as_root(rights), "sh", "-s"], feed=script, limit_s=_LIMIT_S)
    if ran.status != 0:
        raise DeviceFault(f"{shell.target} cannot be prepared or restored: {ran.last_line()}")
    outcomes = {}
    for line in ran.text().splitlines():
        outcome, _, rest = line.partition("\t")
        number, *about = rest.split("\t", 1)
        outcomes[number] = [outcome, *about]
    return outcomes


def as_root(rights: str) -> list[str]:
    """The words before a command that needs root."""
    return ["sudo", "-n"] if rights == "sudo" else []
