"""What a build depends on besides its sources: programs, system packages, the clone's folder. Standard library only.

Build tools remember what they found at first: CMake keeps a compiler's version and a library's path, Ninja compares
times, and the files of a new package are older than the objects that were compiled before it came. So a folder is made
anew when what it was made with has changed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from plain_folder import ROOT
from system_packages import all_names, installed_versions, names

DPKG_STATUS = Path("/var/lib/dpkg/status")
KEPT_VERSIONS = ROOT / "build" / "setup" / "package-versions.json"
MADE_WITH = "made-with.json"
"""File in a folder that names what the folder was made with."""
COMPILERS = ("cc", "c++", "gcc", "g++", "cmake", "ninja")
"""Programs that CMake uses."""
AVR_COMPILERS = ("avr-gcc", "avr-g++", "avr-ld")
"""Programs that make the firmware."""
VARIABLES = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
"""Variables that CMake and SCons read when they configure a build."""


def made_with(programs: Iterable[str], packages: Iterable[str]) -> dict[str, object]:
    """Everything that a build folder depends on besides its sources, as JSON has it.

    Args:
        programs: names of compilers and build tools, looked up on the PATH.
        packages: names of Debian packages.
    """
    return {
        "folder": str(ROOT),
        "programs": {name: _program(name) for name in programs},
        "packages": package_versions(packages),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def firmware_state() -> dict[str, object]:
    """What every firmware depends on besides its sources."""
    return made_with(AVR_COMPILERS, names("rig"))


def _program(name: str) -> list[object]:
    """Place, time and size of the file behind a program's name; empty if there is none."""
    place = shutil.which(name)
    if not place:
        return []
    file = os.path.realpath(place)
    return [file, *file_state(Path(file))]


def file_state(path: Path) -> list[int]:
    """Time of the last change [ns] and size [bytes] of a file; empty if there is none."""
    try:
        info = path.stat()
    except OSError:
        return []
    return [info.st_mtime_ns, info.st_size]


def package_versions(wanted: Iterable[str]) -> dict[str, str]:
    """Version of each package according to dpkg; empty where it is not installed, or the system has no dpkg.

    dpkg is asked once after each change of its status file, because a start must cost milliseconds.
    """
    status = file_state(DPKG_STATUS)
    if not status or not shutil.which("dpkg-query"):
        return dict.fromkeys(wanted, "")
    wanted = list(wanted)
    try:
        kept = json.loads(KEPT_VERSIONS.read_text())
    except (OSError, ValueError):
        kept = {}
    if kept.get("status") != status or not set(wanted) <= kept["versions"].keys():
        kept = {"status": status, "versions": installed_versions({*wanted, *all_names()})}
        with suppress(OSError):  # in a clone that cannot be written it is asked each time
            KEPT_VERSIONS.parent.mkdir(parents=True, exist_ok=True)
            replace_text(KEPT_VERSIONS, json.dumps(kept))
    return {name: kept["versions"][name] for name in wanted}


def replace_text(path: Path, text: str) -> None:
    """Writes a file that another process may read, or an interruption may cut short, in one step."""
    made = path.with_name(f"{path.name}.{os.getpid()}")
    made.write_text(text)
    made.replace(path)


def is_made_with(folder: Path, state: Mapping[str, object]) -> bool:
    """Whether a folder was made with this state."""
    try:
        return bool(json.loads((folder / MADE_WITH).read_text()) == state)
    except (OSError, ValueError):
        return False


def begin_anew_if_changed(folder: Path, state: Mapping[str, object]) -> None:
    """Empties a folder that was not made with this state. A build that was interrupted goes on where it stopped."""
    if is_made_with(folder, state):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(folder / MADE_WITH, json.dumps(state))
