"""Changes of a board's settings: sent to its shell as one block, recorded in a journal there, undone from it."""

import hashlib
import re
import shlex
from dataclasses import dataclass

from opjoule.base.errors import DeviceFault
from opjoule.boards.shell import script

_NEEDED = {
    *("make_file_system", "check_file_system", "mount_medium", "journal_on", "journal_off"),
    *("take_memory", "chown"),
}


@dataclass(frozen=True)
class Change:
    """One change: a function of steps.sh with its arguments, and the function that undoes it."""

    about: str
    do: tuple[str, ...]
    undo: tuple[str, ...] = ()
    lasting: bool = False
    """Whether the change persists after a reboot."""

    @property
    def is_needed(self) -> bool:
        """Whether the measurement is invalid without this step: if it fails, no step follows."""
        return self.do[0] in _NEEDED


_FUNCTIONS = script("steps.sh")
HELPER = "/usr/local/sbin/opjoule-root"
"""Path on the board, where sudo may allow this program alone."""
HELPER_PARTS = ("steps.sh", "state.sh", "root_helper.sh")
_MARK = "\x1f"
_FOREIGN = re.compile(r"[^A-Za-z0-9_./:@,+=% -]|\.\.")
JOURNAL = "/var/lib/opjoule/journal"
"""Folder on the board that lists the changes to be undone; on disk, to survive a loss of host, link or power."""


def prepare_script(steps: list[Change], journal: str) -> bytes:
    """One block of shell text that runs all steps; the board's shell runs it only after receiving all of it."""
    lines = []
    for number, step in enumerate(steps, 1):
        undo = shlex.join(step.undo) if step.undo else ""
        scope = "lasting" if step.lasting else "volatile"
        needed = ["needed"] if step.is_needed else []
        lines.append(shlex.join([*needed, "step", str(number), scope, undo, *step.do]))
    return _block(journal, lines)


def restore_script(journal: str) -> bytes:
    """One block of shell text that undoes everything in the board's journal, last change first."""
    return _block(journal, ["restore"])


def _block(journal: str, lines: list[str]) -> bytes:
    parts = ["{", f"journal={shlex.quote(journal)}", _FUNCTIONS, "one_at_a_time", *lines, "exit 0", "}", ""]
    return "\n".join(parts).encode()


def helper_version() -> str:
    """Output of `opjoule-root version` if it belongs to this version of OpJoule."""
    return hashlib.sha256("".join(map(script, HELPER_PARTS)).encode()).hexdigest()[:16]


def helper_command(*order: str) -> list[str]:
    """The command line of one order to opjoule-root, the only program that sudo must allow."""
    return ["sudo", "-n", HELPER, *order]


def helper_orders(steps: list[Change]) -> bytes:
    """The steps as input of opjoule-root, one line each. Raises: DeviceFault: a word that no order can contain."""
    lines = []
    for number, step in enumerate(steps, 1):
        scope, must = "lasting" if step.lasting else "volatile", "needed" if step.is_needed else "free"
        words = [str(number), scope, must, str(len(step.undo)), *step.undo, *step.do]
        if wrong := next((word for word in words if _FOREIGN.search(word)), None):
            raise DeviceFault(f"opjoule-root accepts no argument with {wrong!r}: use letters, digits and _./:@,+=%-")
        lines.append(_MARK.join(words))
    return "\n".join([*lines, f"{_MARK}end", ""]).encode()


def as_root(rights: str) -> list[str]:
    """Prefix of a command that needs root, if any command may be run as root."""
    return ["sudo", "-n"] if rights == "sudo" else []
