"""Debian's archives, from which programs of boards are made: by this computer's own mirror, or by Debian's.

Standard library alone: loader-cpp/board-builds runs without .venv.
"""

import shutil
import subprocess
from typing import Final

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
