"""Builds the virtual board once and caches it: root disk, kernel, initial RAM disk, keys, and a booted snapshot.

The cache folder is named by a hash of the scripts that build it, and the snapshot in it by a hash of the machine and
the emulator's version: any change makes a new one, so that an outdated image is never used.

Standard library alone, since loader-cpp/board-builds asks for Debian's mirrors without .venv.
"""

import fcntl
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput, DeviceFault
from opjoule.boards.virtual.machine import EMULATOR, Image, Machine

DEBIAN: Final = {
    "Debian": "http://deb.debian.org/debian",
    "Debian-Security": "http://deb.debian.org/debian-security",
}
"""Label in an archive's Release file -> Debian's own address of it."""


def mirrors(label: str) -> list[str]:
    """Addresses of one of Debian's archives, best first.

    The first is that of this computer's own apt sources: it may be the only one that the computer reaches. A system
    that is made from Debian (Ubuntu, Raspbian) has archives of another origin, which have other packages.

    Args: label: a key of DEBIAN.
    """
    own = [address for address, origin, name in _sources() if (origin, name) == ("Debian", label)]
    return list(dict.fromkeys([*own[:1], DEBIAN[label]]))


def _sources() -> list[tuple[str, str, str]]:
    """(address, origin, label) of this computer's apt sources; none without apt or before its first update."""
    if not shutil.which("apt-get"):
        return []
    form = "$(REPO_URI)|$(ORIGIN)|$(LABEL)"
    command = ["apt-get", "indextargets", "--format", form, "Created-By: Packages"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    fields = [line.split("|") for line in lines if line.count("|") == 2 and not line.startswith("cdrom:")]
    return [(address.rstrip("/"), origin, label) for address, origin, label in fields]


PROGRAMS = {
    EMULATOR: "qemu-system-arm",
    "qemu-img": "qemu-utils",
    "qemu-aarch64-static": "qemu-user-static",
    "mmdebstrap": "mmdebstrap",
    "zstd": "zstd",
    "ssh-keygen": "openssh-client",
    "mkfs.ext4": "e2fsprogs",
}
_SOURCES = Path(__file__).parent
_REQUIREMENTS = _SOURCES.parents[2] / "requirements" / "measure.txt"
_PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
_PIP = [
    *(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--require-hashes"),
    *("--python-version", "3.11", "--implementation", "cp", "--only-binary", ":all:"),
    *(f"--platform={name}" for name in _PLATFORMS),
]
"""Command that installs measure.py's dependencies for the board's architecture and Debian's Python."""
_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
_DIRECTORY, _FILE, _EXECUTABLE = 0o040755, 0o100644, 0o100755


def get_image(cache: Path, say: Callable[[str], None]) -> Image:
    """The image, built now if it does not exist yet; several processes may call this at once.

    Args:
        say: called with a progress line at each step.
    Raises: BadInput: a program is missing. DeviceFault: the build failed.
    """
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=_PATH) is None:
            raise BadInput(f"the virtual board needs {program}: apt-get install {package}")
    scripts = ("rootfs.sh", "init.sh", "image.py", "namespace.py")
    folder = cache / _hash(scripts, _REQUIREMENTS.read_bytes())
    # A snapshot is valid only for the command line and emulator that it was taken with.
    version = subprocess.run([EMULATOR, "--version"], capture_output=True, check=False).stdout
    image = Image(folder, _hash(("machine.py",), version))
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.host_key_file.exists():
            say("virtual board: building the root file system (once, about two minutes)")
            _build(image, folder.with_suffix(".part"))
        if not image.snapshot.exists():
            say("virtual board: first start, kept as a snapshot")
            Machine(image, folder / "first-start").save()
            shutil.rmtree(folder / "first-start", ignore_errors=True)
    return image


def _hash(files: tuple[str, ...], salt: bytes) -> str:
    digest = hashlib.sha256(salt)
    for name in files:
        digest.update((_SOURCES / name).read_bytes())
    return digest.hexdigest()[:16]


def _build(image: Image, part: Path) -> None:
    # Its users and groups need their own numbers, which only root can assign.
    root = [] if os.geteuid() == 0 else ["sudo"]
    if root and shutil.which("sudo") is None:
        raise BadInput("root builds the virtual board, once: run this command as root, or install sudo")
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(image.folder, ignore_errors=True)
    work, made = part / "work", Image(part, "")
    work.mkdir(parents=True)
    key = ["-t", "ed25519", "-N", "", "-C", "opjoule-virtual-board", "-f", str(made.user_key)]
    _run(part, ["ssh-keygen", "-q", *key])
    public_key = f"{made.user_key.resolve()}.pub"
    _run(part, [*_PIP, "--target", str(work / "site"), "--requirement", str(_REQUIREMENTS)])
    *own, debian = mirrors("Debian")
    namespace = [*root, sys.executable, str(_SOURCES / "namespace.py"), "sh", str(_SOURCES / "rootfs.sh")]
    try:
        _run(part, [*namespace, str(work.resolve()), *(own or [debian]), public_key])
    except DeviceFault:
        if not own:
            raise
        # This computer's mirror may be without the board's suite or architecture.
        _run(part, [*root, "rm", "-rf", *(str(path) for path in work.iterdir() if path.name != "site")])
        _run(part, [*namespace, str(work.resolve()), debian, public_key])
    _write_initrd(work / "busybox", work / "modules", made.initrd)
    _run(part, ["qemu-img", "convert", "-q", "-O", "qcow2", str(work / "root.ext4"), str(made.root)])
    for name in ("vmlinuz", "packages", "host_key.pub"):
        shutil.move(work / name, part / name)
    _run(part, [*root, "rm", "-rf", str(work)])
    part.rename(image.folder)


def _run(part: Path, command: list[str]) -> None:
    log = part / "build.log"
    with log.open("ab") as sink:
        environment = {**os.environ, "PATH": _PATH}
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, check=False, env=environment
        )
    if ended.returncode != 0:
        tail = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise DeviceFault(f"the virtual board could not be built ({log}): {' | '.join(tail)}")


def _write_initrd(busybox: Path, modules: Path, target: Path) -> None:
    """Packs `busybox` and every file of `modules` (its `order` lists the modules to load) into `target`."""
    members = [
        ("bin", _DIRECTORY, b""),
        ("bin/busybox", _EXECUTABLE, busybox.read_bytes()),
        ("init", _EXECUTABLE, (_SOURCES / "init.sh").read_bytes()),
        ("modules", _DIRECTORY, b""),
        *((f"modules/{file.name}", _FILE, file.read_bytes()) for file in sorted(modules.iterdir())),
    ]
    archive = b"".join(_entry(*member, number) for number, member in enumerate(members, 1))
    archive += _entry("TRAILER!!!", 0, b"", 0)
    target.write_bytes(gzip.compress(archive, 6))


def _entry(name: str, mode: int, data: bytes, number: int) -> bytes:
    """One member of a cpio archive, format newc (cpio(5))."""
    path = name.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
