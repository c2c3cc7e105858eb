"""Writes the virtual board's initial RAM disk: a static busybox, a few modules and an init of a dozen lines."""

from __future__ import annotations

import gzip
from pathlib import Path

_INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
for module in $(/bin/busybox cat /modules/order); do
  /bin/busybox insmod "/modules/$module"
done
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  device=$(/bin/busybox findfs LABEL=board-root) && break
  /bin/busybox sleep 0.2
done
/bin/busybox mount -t ext4 -o noatime "$device" /root
/bin/busybox mount --move /dev /root/dev
/bin/busybox umount /proc /sys
exec /bin/busybox switch_root /root /sbin/init
"""
_DIRECTORY, _FILE, _EXECUTABLE = 0o040755, 0o100644, 0o100755


def _entry(name: str, mode: int, data: bytes, number: int) -> bytes:
    """One member of a cpio archive, format newc (cpio(5))."""
    path = name.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def write_initrd(busybox: Path, modules: Path, target: Path) -> None:
    """Packs `busybox` and every file of `modules` (its `order` lists the modules to load) into `target`."""
    members = [
        ("bin", _DIRECTORY, b""),
        ("bin/busybox", _EXECUTABLE, busybox.read_bytes()),
        ("init", _EXECUTABLE, _INIT.encode()),
        ("modules", _DIRECTORY, b""),
        *((f"modules/{file.name}", _FILE, file.read_bytes()) for file in sorted(modules.iterdir())),
    ]
    archive = b"".join(_entry(*member, number) for number, member in enumerate(members, 1))
    archive += _entry("TRAILER!!!", 0, b"", 0)
    target.write_bytes(gzip.compress(archive, 6))
