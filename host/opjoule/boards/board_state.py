"""Facts of a board (facts.sh), its settings (state.sh) and block devices, each read by one script on the board.

The state in which a board is measured is the [device.NAME.state] table of rig.toml, or --state KEY=VALUE. The block
devices tell which one a name refers to, which is based on which, and why one must not be formatted.
"""

import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Final, Literal, Self

from msgspec import Meta

from opjoule.base.errors import DeviceFault
from opjoule.base.settings import as_struct
from opjoule.boards.shell import Shell, script
from opjoule.boards.steps import JOURNAL, as_root, helper_command, helper_version

Answers = dict[str, list[list[str]]]
"""Answers of state.sh by kind, with the fields as text."""


def device_number(number: str) -> str:
    """MAJOR:MINOR in decimal; empty if it is not a block device.

    Args:
        number: MAJOR:MINOR with parts like 179 or 0xb3, or a file's st_dev as one decimal number, the only form in
            which coreutils before 9.0 print it (stat(1), %d).
    """
    try:
        if ":" not in number:
            return f"{os.major(int(number))}:{os.minor(int(number))}"
        major, minor = (int(part, 0) for part in number.split(":"))
    except ValueError:
        return ""
    return f"{major}:{minor}"


@dataclass(frozen=True)
class BlockDevice:
    """One entry of /sys/class/block."""

    name: str
    number: str
    """MAJOR:MINOR."""
    whole: str
    """Name of the disk that contains this partition; its own name for a whole device."""
    slaves: tuple[str, ...]
    """Devices that make up this one (LVM, RAID, crypt)."""
    backing_number: str
    """Device that contains a loop device's file; empty if there is none."""
    size_bytes: int
    model: str
    serial: str


@dataclass(frozen=True)
class BlockDevices:
    """All block devices of a board and their uses."""

    devices: dict[str, BlockDevice]
    mounts: dict[str, list[str]] = field(default_factory=dict)
    """Mount points by MAJOR:MINOR."""
    swaps: tuple[str, ...] = ()
    root_number: str = ""

    @classmethod
    def from_answers(cls, answers: Answers) -> Self:
        """Block devices from the answers `block`, `mount`, `swap` and `root` of state.sh."""
        devices = {}
        for name, number, whole, slaves, backing, sectors, model, serial in answers.get("block", []):
            devices[name] = BlockDevice(
                name,
                number,
                whole,
                tuple(slaves.split()),
                device_number(backing),
                int(sectors or 0) * 512,
                model.strip(),
                serial.strip(),
            )
        mounts: dict[str, list[str]] = {}
        for number, point in answers.get("mount", []):
            mounts.setdefault(number, []).append(point)
        swaps = tuple(name for name, *_ in answers.get("swap", []))
        return cls(devices, mounts, swaps, device_number(answers.get("root", [[""]])[0][0]))

    def by_number(self, number: str) -> BlockDevice | None:
        """The device with this MAJOR:MINOR, whatever its name."""
        return next((device for device in self.devices.values() if device.number == number), None)

    def stands_on(self, device: BlockDevice) -> set[str]:
        """Names of `device` and everything below it: its disk, its LVM or RAID members, a loop file's disk."""
        names: set[str] = set()
        waiting: list[BlockDevice | None] = [device]
        while waiting:
            lower = waiting.pop()
            if lower is None or lower.name in names:
                continue
            names.add(lower.name)
            waiting += [self.devices.get(name) for name in (lower.whole, *lower.slaves)]
            waiting.append(self.by_number(lower.backing_number) if lower.backing_number else None)
        return names

    def carried_by(self, device: BlockDevice) -> list[BlockDevice]:
        """Everything based on `device`, including partitions and holders, but not the device itself."""
        return [
            other
            for other in self.devices.values()
            if other.name != device.name and device.name in self.stands_on(other)
        ]

    def uses(self, device: BlockDevice) -> list[str]:
        """Uses of `device` itself, one phrase each."""
        uses = [f"mounted on {point}" for point in self.mounts.get(device.number, [])]
        if any(swap.rpartition("/")[2] == device.name for swap in self.swaps):
            uses.append("swap space")
        return uses


def why_not_expendable(asked: str, number: str, listed: Iterable[str], blocks: BlockDevices) -> str:
    """Reason why the device must not be written to as a whole; empty if it may.

    Args:
        number: MAJOR:MINOR that this name refers to now; empty if it is not a block device.
        listed: names listed as expendable in rig.toml.
    """
    device = blocks.by_number(number) if number else None
    if device is None:
        return f"{asked} is not a block device of the board"
    if asked not in set(listed):
        return f"{asked} is not listed as expendable in rig.toml"
    root = blocks.by_number(blocks.root_number)
    if root is None:
        return f"the board does not say which device / is on ({blocks.root_number}), so no device is safe to write"
    below_root = blocks.stands_on(root)
    if device.name in below_root or device.whole in below_root:
        return f"{asked} ({device.name}) holds the board's root file system"
    if device.whole != device.name:
        return f"{asked} ({device.name}) is a partition of {device.whole}: only a whole device can be expendable"
    for part in (device, *blocks.carried_by(device)):
        if uses := blocks.uses(part):
            return f"{asked}: {part.name} is in use ({uses[0]})"
    if holders := [holder.name for holder in blocks.carried_by(device) if holder.whole == holder.name]:
        return f"{asked} ({device.name}) is part of {', '.join(holders)}"
    return ""


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


_Count = Annotated[int, Meta(ge=0, description="a whole number of at least 0")]

SIMULATED: Final = ("page_cache", "memory_mb")
"""Keys that a simulated board takes. The rest of its state is its own."""


@dataclass(frozen=True)
class StateSettings:
    """One value per key, as written in rig.toml and --state."""

    page_cache: Literal["drop", "keep"] = "drop"
    governor: str = "performance"
    """CPU frequency governor; "keep" leaves it unchanged."""
    frequency_khz: _Count = 0
    """Fixed CPU frequency; 0 leaves the board's range unchanged."""
    wifi: Literal["off", "keep"] = "off"
    bluetooth: Literal["off", "keep"] = "off"
    hdmi: Literal["off", "keep"] = "off"
    leds: Literal["off", "keep"] = "off"
    fan: Literal["keep", "0", "1", "2", "3", "4"] = "keep"
    """Step of the board's fan, 0 for off; "keep" leaves it to the kernel, which switches it by temperature."""
    swap: Literal["off", "keep"] = "off"
    services: Literal["stop", "keep"] = "stop"
    """Services and timers that wake up periodically: stopped, or kept."""
    time_daemons: Literal["stop", "keep"] = "stop"
    """Daemons that adjust the clock to network time (systemd-timesyncd, chrony, ntpd): stopped, or kept."""
    cpus: _Count = 0
    """Number of enabled processors; 0 for all."""
    memory_mb: _Count = 0
    """Memory available to the board; 0 for all."""
    pin: str = ""
    """Processors that the loader is restricted to, as taskset -c takes them."""
    file_system: Literal["keep", "check", "new"] = "keep"
    """File system of an expendable medium: keep it, check it, or make a new ext4."""
    journal: Literal["keep", "on", "off"] = "keep"
    """ext4 journalling of an expendable medium."""
    trim: Literal["yes", "no"] = "yes"
    precondition_mb: _Count = 0
    """Megabytes written to the medium and removed before the run; 0 for none."""

    def changed(self, settings: Mapping[str, object], where: str) -> Self:
        """These settings with some changes.

        Raises: BadInput: an unknown key, or an invalid value; `where` names the file or option.
        """
        return as_struct({**asdict(self), **settings}, type(self), f"{where}:", texts=True)


AS_SIMULATED: Final = StateSettings(page_cache="keep")
"""State of a simulated board for which nothing else is asked."""
