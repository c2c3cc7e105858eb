"""The board's block devices: which one a name refers to, which is based on which, and why one must not be formatted."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

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
