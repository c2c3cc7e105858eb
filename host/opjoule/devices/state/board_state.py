"""The board's settings as state.sh reads them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from opjoule.devices.connection.shell import Shell
from opjoule.devices.connection.steps import as_root, helper_command
from opjoule.devices.on_board import script
from opjoule.devices.state.block_devices import Answers, BlockDevices, device_number
from opjoule.errors import DeviceFault

_SCRIPT = script("state.sh")
_EXT4_MAGIC = "53ef"
_HAS_JOURNAL = 0x4


@dataclass(frozen=True)
class BoardState:
    """Answers of state.sh by their kind."""

    answers: Answers
    blocks: BlockDevices

    def of(self, kind: str) -> list[list[str]]:
        """Every answer of one kind."""
        return self.answers.get(kind, [])

    def interface_kind(self, name: str) -> str:
        """wired or wifi; empty for an interface that is not there."""
        return next((kind for interface, kind in self.of("interface") if interface == name), "")

    @property
    def medium_number(self) -> str:
        """MAJOR:MINOR of the medium's device node itself, whatever it is called; empty if there is none."""
        return next((device_number(number) for _, kind, number in self.of("medium") if kind == "block"), "")

    @property
    def medium_device(self) -> str:
        """The real name of the medium's device, behind every symbolic link."""
        return next((real for real, *_ in self.of("medium")), "")

    @property
    def journal(self) -> str:
        """Journalling of the medium's ext4: on, off, or empty where there is no ext4."""
        for magic, features, *_ in self.of("file_system"):
            if magic == _EXT4_MAGIC:
                return "on" if int.from_bytes(bytes.fromhex(features), "little") & _HAS_JOURNAL else "off"
        return ""

    @property
    def file_system_uuid(self) -> str:
        """UUID of the medium's ext4; empty where there is none."""
        for magic, _, *rest in self.of("file_system"):
            if magic == _EXT4_MAGIC and rest:
                return str(uuid.UUID(rest[0]))
        return ""

    @property
    def path_number(self) -> str:
        """MAJOR:MINOR of the file system that the storage directory is on; empty if there is no such directory."""
        return next((device_number(number) for _, number in self.of("path")), "")

    @property
    def memory_kb(self) -> int:
        """All memory that the kernel has."""
        return int(self.of("memory_kb")[0][0])


def read_state(shell: Shell, rights: str, *, cpufreq: str, device: str, path: str) -> BoardState:
    """Runs state.sh on the board.

    Raises: LinkFault: no connection. DeviceFault: the script does not run.
    """
    asked = [cpufreq, device, path]
    by_helper = rights == "helper"
    command = helper_command("state") if by_helper else [*as_root(rights), "sh", "-c", _SCRIPT, "sh"]
    ran = shell.run([*command, *asked])
    answers: Answers = {}
    for line in ran.text().splitlines():
        kind, *values = line.split("\t")
        answers.setdefault(kind, []).append(values)
    if "root" not in answers:
        raise DeviceFault(f"the state of {shell.target} cannot be read: {ran.last_line()}")
    return BoardState(answers, BlockDevices.from_answers(answers))
