"""The static loader for the board's architecture: chosen, copied once, verified by its hash."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

from opjoule.databases.registry import is_server
from opjoule.devices.shell import Shell
from opjoule.errors import DeviceFault

_ARCHITECTURES = {
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "armv7l": "armhf",
    "armv8l": "armhf",
    "x86_64": "amd64",
}
_RECEIVE = """
set -e
cat > "$1.part"
chmod 755 "$1.part"
mv "$1.part" "$1"
sha256sum "$1"
"""


def architecture_of(machine: str) -> str | None:
    """The loader's architecture for a machine, as uname -m names it; None where there is none."""
    return _ARCHITECTURES.get(machine)


def find_loader(build: Path, machine: str, database: str = "") -> Path:
    """The loader for `machine` (as uname -m gives it) among the builds under `build`.

    Only the board builds have the MongoDB client, since Debian's own does not link statically.

    Raises: DeviceFault: no loader was built for it; says how to build one.
    """
    architecture = architecture_of(machine)
    if machine.startswith("armv6"):
        raise DeviceFault(
            f"the board's processor is an {machine} (Raspberry Pi 1, Zero, Zero W): the loader is built with Debian's "
            "armhf, which needs ARMv7; use a Raspberry Pi 2 or later, or a Zero 2 W"
        )
    if architecture is None:
        raise DeviceFault(
            f"no loader for a board of type '{machine}': known are {', '.join(sorted(_ARCHITECTURES))}"
        )
    places = [build / "board" / architecture / "loader"]
    if architecture == architecture_of(platform.machine()) and not is_server(database):
        places.insert(0, build / "loader" / "loader")  # built here, for boards like this computer
    for place in places:
        if place.is_file():
            return place
    raise DeviceFault(f"{places[-1]} is missing: build it with loader-cpp/board-builds {architecture}")


def install_loader(shell: Shell, loader: Path, folder: str) -> tuple[str, str]:
    """(path on the board, SHA-256) of the loader, copied only if the board has not got this very one.

    Args:
        folder: an existing directory on the board that only its user can write.
    Raises: DeviceFault: the copy does not verify.
    """
    data = loader.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    target = f"{folder}/loader-{digest[:16]}"
    if _digest(shell.run(["sha256sum", target]).text()) != digest:
        received = shell.run(["sh", "-c", _RECEIVE, "sh", target], feed=data, limit_s=600)
        if received.status != 0 or _digest(received.text()) != digest:
            raise DeviceFault(
                f"the loader did not reach {target} on {shell.target} whole: {received.last_line()}"
            )
    return target, digest


def _digest(line: str) -> str:
    # sha256sum starts a line with a backslash when the file's name needed escaping.
    return line.lstrip("\\").partition(" ")[0]
