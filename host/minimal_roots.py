"""Minimal Debian roots: made by mmdebstrap, kept as packed trees, and entered apart from this computer.

Only root can do this. Uses only the standard library.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from logged_commands import logged
from network_settings import NetworkSettings
from plain_folder import ROOT

ROOTS: Final = ROOT / "build" / "roots"
MIRROR: Final = "http://deb.debian.org/debian"
OLDEST_S: Final = 14 * 86400.0
"""A packed tree that is older is made again: the archive has newer packages by then."""
_ENTER: Final = Path(__file__).with_name("enter_root.sh")
_EMULATION: Final = Path(__file__).parent / "opjoule/boards/virtual/namespace.py"
_DIES_WITH_PARENT: Final = ("setpriv", "--pdeathsig", "KILL")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LANGUAGE: Final = {"LANG": "C.UTF-8", "TERM": "dumb"}


def can_run(architecture: str) -> bool:
    """Whether this computer runs programs of a Debian architecture, by itself or emulated."""
    return architecture in ("arm64", _own_architecture())


def _own_architecture() -> str:
    return _ARCHITECTURES.get(platform.machine(), "")


def emulation(architecture: str, rules: Path = Path("/proc/sys/fs/binfmt_misc")) -> tuple[str, ...]:
    """Command before one that runs programs of an architecture; empty if this computer runs them as it is.

    Args: rules: where the kernel lists the formats that it hands to an emulator.
    """
    rule = rules / "qemu-aarch64"
    if architecture == _own_architecture() or (rule.is_file() and rule.read_text().startswith("enabled")):
        return ()
    return ("python3", str(_EMULATION))


@dataclass(frozen=True)
class MinimalRoot:
    """A release of Debian for an architecture, with the packages without which apt does not work."""

    suite: str
    architecture: str

    @property
    def packed(self) -> Path:
        """The tree as it is kept."""
        return ROOTS / f"{self.suite}-{self.architecture}.tar.zst"

    def is_usable(self, now_s: float) -> bool:
        """Whether the packed tree is there, not too old at the time `now_s` [s since 1970], and whole."""
        if not self.packed.is_file() or now_s - self.packed.stat().st_mtime > OLDEST_S:
            return False
        check = ["zstd", "--test", "--quiet", str(self.packed)]
        return subprocess.run(check, capture_output=True, check=False).returncode == 0

    def make(self, log: Path, network: NetworkSettings, mirror: str = MIRROR) -> None:
        """Makes the packed tree. It has its name only once it is whole.

        Raises: SetupError: a package could not be fetched or installed; the text has the last lines of the log.
        """
        part = self.packed.with_name(f"part-{self.packed.name}")
        scratch = ROOTS / f"scratch-{self.suite}-{self.architecture}"
        part.unlink(missing_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        try:
            logged([*self._mmdebstrap(scratch, network), self.suite, str(part), mirror], log)
            part.rename(self.packed)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            part.unlink(missing_ok=True)

    def _mmdebstrap(self, scratch: Path, network: NetworkSettings) -> list[str]:
        return [
            *(*_DIES_WITH_PARENT, *emulation(self.architecture), *_DIES_WITH_PARENT),
            *("env", f"TMPDIR={scratch}", "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"),
            *("--skip=check/qemu,chroot/mount/sys", f"--architectures={self.architecture}"),
            *(f"--aptopt={line}" for line in network.apt),
        ]

    def unpack(self, tree: Path, log: Path) -> None:
        """Unpacks the tree into a new folder. Raises: SetupError: there is no space."""
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        logged(["tar", "--zstd", "--numeric-owner", "-xpf", str(self.packed), "-C", str(tree)], log)


def get_root(root: MinimalRoot, log: Path, network: NetworkSettings, mirror: str = MIRROR) -> None:
    """Makes the packed tree of a root unless a usable one is there. Raises: SetupError: as MinimalRoot.make()."""
    if not root.is_usable(time.time()):
        root.make(log, network, mirror)


def inside(
    tree: Path,
    root: MinimalRoot,
    script: str,
    *,
    user: str = "root",
    folder: str = "/",
    variables: Mapping[str, str] = _LANGUAGE,
) -> list[str]:
    """Command that runs a shell script in an unpacked tree, with nothing of this computer's environment.

    All processes that it started, and all its mounts, are gone when it ends or when the caller does.

    Args:
        user: who runs it.
        folder: working folder, in the tree.
        variables: environment besides PATH, HOME and USER.
    """
    home = "/root" if user == "root" else f"/home/{user}"
    environment = {"PATH": _PATH, "HOME": home, "USER": user, **_LANGUAGE, **variables}
    return [
        *(*_DIES_WITH_PARENT, *emulation(root.architecture), *_DIES_WITH_PARENT),
        *("unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child"),
        *("sh", str(_ENTER), str(tree), "fresh-root"),
        *_as_user(user),
        *("env", "-i", "-C", folder, *(f"{name}={value}" for name, value in environment.items())),
        *("bash", "-c", script),
    ]


def _as_user(user: str) -> Sequence[str]:
    return () if user == "root" else ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
