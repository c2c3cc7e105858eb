"""Facts of a board (facts.sh) and its settings (state.sh), each read by one script on the board."""

import uuid
from dataclasses import dataclass

from opjoule.base.errors import DeviceFault
from opjoule.boards.connection.shell import Shell
from opjoule.boards.connection.steps import JOURNAL, as_root, helper_command, helper_version
from opjoule.boards.on_board import script
from opjoule.boards.state.block_devices import Answers, BlockDevices, device_number

_STATE = script("state.sh")
_FACTS = script("facts.sh")
_EXT4_MAGIC = "53ef"
_HAS_JOURNAL = 0x4


@dataclass(frozen=True)
class BoardState:
    """Answers of state.sh by kind."""

    answers: Answers
    blocks: BlockDevices

    def of(self, kind: str) -> list[list[str]]:
        """All answers of one kind."""
        return self.answers.get(kind, [])

    def interface_kind(self, name: str) -> str:
        """wired, wifi, or virtual without a device of its own; empty if there is no such interface."""
        return next((kind for interface, kind in self.of("interface") if interface == name), "")

    def units(self, state: str) -> set[str]:
        """Names of the systemd units that are active, or activating, as a oneshot service is while it works."""
        return {unit for unit, now in self.of("unit") if now == state}

    @property
    def medium_number(self) -> str:
        """MAJOR:MINOR of the medium's device node itself, whatever its name; empty if there is none."""
        return next((device_number(number) for _, kind, number in self.of("medium") if kind == "block"), "")

    @property
    def medium_device(self) -> str:
        """The real name of the medium's device, with all symbolic links resolved."""
        return next((real for real, *_ in self.of("medium")), "")

    @property
    def journal(self) -> str:
        """Journalling of the medium's ext4: on, off, or empty if there is no ext4."""
        for magic, features, *_ in self.of("file_system"):
            if magic == _EXT4_MAGIC:
                return "on" if int.from_bytes(bytes.fromhex(features), "little") & _HAS_JOURNAL else "off"
        return ""

    @property
    def file_system_uuid(self) -> str:
        """UUID of the medium's ext4; empty if there is none."""
        for magic, _, *rest in self.of("file_system"):
            if magic == _EXT4_MAGIC and rest:
                return str(uuid.UUID(rest[0]))
        return ""

    @property
    def path_number(self) -> str:
        """MAJOR:MINOR of the folder's file system; empty if there is no such folder."""
        return next((device_number(number) for _, number in self.of("path")), "")

    @property
    def memory_kb(self) -> int:
        """Total memory of the kernel."""
        return int(self.of("memory_kb")[0][0])


def read_state(shell: Shell, rights: str, *, cpufreq: str, device: str, path: str) -> BoardState:
    """Runs state.sh on the board. Raises: LinkFault: no connection. DeviceFault: the script does not run."""
    by_helper = rights == "helper"
    command = helper_command("state") if by_helper else [*as_root(rights), "sh", "-c", _STATE, "sh"]
    ran = shell.run([*command, cpufreq, device, path])
    answers: Answers = {}
    for line in ran.text().splitlines():
        kind, *values = line.split("\t")
        answers.setdefault(kind, []).append(values)
    if "root" not in answers:
        raise DeviceFault(f"the state of {shell.target} cannot be read: {ran.last_line()}")
    return BoardState(answers, BlockDevices.from_answers(answers))


@dataclass(frozen=True)
class BoardFacts:
    """Output of facts.sh, and the facts that the rig itself uses."""

    values: dict[str, str]
    machine: str
    """Architecture, as uname -m gives it."""
    boot_id: str
    rights: str
    """root, sudo (without a password), helper (sudo for opjoule-root alone) or none."""
    cache: str
    """Permanent folder on the board: the loader."""
    work: str
    """Folder on the board for a run's files: in memory if there is room, so that writing them does not use a medium."""
    journal: str
    """Folder on the board that lists the changes to be undone."""
    journal_left: bool
    """Whether there are changes of an earlier run to undo."""
    connection_interface: str
    """Network interface of the connection; empty if there is none."""


def read_facts(shell: Shell, *, journal: str = JOURNAL, session: str = "") -> BoardFacts:
    """Runs facts.sh on the board.

    Args:
        journal: the board's folder that lists the changes to be undone.
        session: name of the folder to create below `work` for this session's files; empty for none.
    Raises: LinkFault: no connection. DeviceFault: the board's shell cannot run it, or its opjoule-root has another
        version.
    """
    ran = shell.run(["sh", "-c", _FACTS, "sh", session, journal])
    pairs = (line.split("\t", 1) for line in ran.text().splitlines() if "\t" in line)
    values = {name: value.strip() for name, value in pairs}
    needed = ("machine", "boot_id", "rights", "cache", "work")
    missing = [name for name in needed if not values.get(name)]
    if missing and "machine" not in missing:
        raise DeviceFault(f"{shell.target}: {ran.last_line()}")
    if missing:
        raise DeviceFault(
            f"{shell.target} does not report its {', '.join(missing)} "
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
        journal=journal,
        journal_left=values.pop("journal", "") == "left",
        connection_interface=values.get("connection_interface", ""),
    )
