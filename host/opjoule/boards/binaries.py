"""Static programs for the board's architecture (loader and probe): selected, copied once, verified by their hash."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opjoule.base.errors import DeviceFault
from opjoule.base.files import file_sha256
from opjoule.boards.databases import is_server
from opjoule.boards.shell import Shell, script

ARCHITECTURES = {
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "armv7l": "armhf",
    "armv8l": "armhf",
    "x86_64": "amd64",
}
"""Architecture of the programs for a machine, as uname -m names it."""
LOADER, PROBE = "loader", "probe"
FAILED_ENGINES = "setup/engines-failed.json"
"""File under build/ in which set-up stores the engines that it could not build into this computer's loader."""
_RECEIVE = script("receive_program.sh")


@dataclass(frozen=True)
class Programs:
    """Paths on the board, and the copied files."""

    loader: str
    probe: str
    loader_sha256: str
    probe_sha256: str


def failed_engines(build: Path) -> Mapping[str, str]:
    """Engine -> why it is not in this computer's loader, according to the last set-up that tried to build it."""
    try:
        stored = json.loads((build / FAILED_ENGINES).read_text(encoding="utf-8"))
        return {str(engine): str(why) for engine, why in stored.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def find_program(build: Path, machine: str, name: str, database: str = "") -> Path:
    """The program `name` for `machine` (as uname -m gives it) among the builds under `build`.

    Only the board builds have the MongoDB client, since Debian's own does not link statically.

    Raises: DeviceFault: no build for it; says how to build it.
    """
    architecture = ARCHITECTURES.get(machine)
    if machine.startswith("armv6"):
        raise DeviceFault(
            f"the board's processor is an {machine} (Raspberry Pi 1, Zero, Zero W): the loader is built with Debian's "
            "armhf, which needs ARMv7; use a Raspberry Pi 2 or later, or a Zero 2 W"
        )
    if architecture is None:
        raise DeviceFault(f"no {name} for a board of type '{machine}': known are {', '.join(sorted(ARCHITECTURES))}")
    places = [build / "board" / architecture / name]
    if architecture == ARCHITECTURES.get(platform.machine()) and not is_server(database):
        places.insert(0, build / "loader" / name)  # built here, for boards like this computer
    for place in places:
        if place.is_file():
            return place
    raise DeviceFault(f"{places[-1]} is missing: build it with loader-cpp/board-builds {architecture}")


def install_programs(shell: Shell, build: Path, machine: str, folder: str, database: str = "") -> Programs:
    """Loader and probe on the board, each copied only if the board does not have the identical file.

    Args:
        folder: an existing directory on the board that only its user can write to.
        database: database to be measured, if the loader must contain its engine.
    Raises: DeviceFault: a program was not built, or its copy does not verify.
    """
    programs = {
        LOADER: find_program(build, machine, LOADER, database),
        PROBE: find_program(build, machine, PROBE),
    }
    wanted = {name: file_sha256(path) for name, path in programs.items()}
    targets = {name: f"{folder}/{name}-{digest[:16]}" for name, digest in wanted.items()}
    there = shell.run(["sha256sum", "--", *targets.values()]).text().splitlines()  # one request for both
    for name, target in targets.items():
        if not any(_digest(line) == wanted[name] and line.endswith(Path(target).name) for line in there):
            _install(shell, programs[name], target, wanted[name])
    return Programs(targets[LOADER], targets[PROBE], wanted[LOADER], wanted[PROBE])


def _install(shell: Shell, program: Path, target: str, digest: str) -> None:
    received = shell.run(["sh", "-c", _RECEIVE, "sh", target], feed=program.read_bytes(), limit_s=600)
    if received.status != 0 or _digest(received.text()) != digest:
        raise DeviceFault(
            f"the copy of the {program.name} to {target} on {shell.target} is incomplete: {received.last_line()}"
        )


def _digest(line: str) -> str:
    # sha256sum starts a line with a backslash if the file's name needed escaping.
    return line.lstrip("\\").partition(" ")[0]


def installed_here(build: Path, database: str = "") -> Programs:
    """Loader and probe from this computer's own builds.

    Args:
        database: database to be measured, if the loader must contain its engine.
    Raises: DeviceFault: one of them was not built, or the loader could not be built with the database.
    """
    machine = platform.machine()
    if why := failed_engines(build).get(database):
        raise DeviceFault(f"this computer's loader does not have {database}: {why}")
    loader, probe = find_program(build, machine, LOADER, database), find_program(build, machine, PROBE)
    return Programs(str(loader), str(probe), file_sha256(loader), file_sha256(probe))
