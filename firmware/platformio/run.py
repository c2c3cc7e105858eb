#!/usr/bin/env python3
"""Runs PlatformIO without its registry: `run.py run -e uno`, `run.py test -e native`.

PlatformIO needs four packages for this project: tool-scons, the development platforms atmelavr and
native, and for uno-arduino the Adafruit INA219 library. Here SCons comes from PyPI; the compilers
and the Arduino core come from the system; the platforms and the library are the small stand-ins
beside this file. All are put into a separate core directory (build/platformio). So platformio.ini
is the same as for a PlatformIO with its registry, and the user's ~/.platformio is not touched.

`run.py` without arguments only prepares this directory. Telemetry and update checks are off.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "host"))

from plain_folder import plain  # noqa: E402  # the path is set just above
from toolchain import begin_anew_if_changed, firmware_state, is_made_with, made_with  # noqa: E402

CORE = ROOT / "build" / "platformio"
LIBRARIES = CORE / "libdeps"
BUILDS = ROOT / ".pio" / "build"
PYTHON = ROOT / ".venv" / "bin" / "python"

# PlatformIO asks for tool-scons ~4.41101.0, its name for SCons 4.11.1 (platformio/dependencies.py).
SCONS = {"name": "tool-scons", "version": "4.41101.0", "description": "SCons from PyPI"}
SCONS_ENTRY = "import sys\nfrom SCons.Script.Main import main\nsys.exit(main())\n"
# Without this file PlatformIO does not know the package's owner and asks its registry.
SCONS_META = {
    "type": "tool",
    "name": SCONS["name"],
    "version": SCONS["version"],
    "spec": {"owner": "platformio", "id": None, "name": SCONS["name"], "requirements": None, "uri": None},
}
# The same for the library, one copy for each environment that asks for it.
LIBRARY_META = {
    "type": "library",
    "name": "Adafruit INA219",
    "version": "1.2.3",
    "spec": {"owner": "adafruit", "id": None, "name": "Adafruit INA219", "requirements": None, "uri": None},
}
LIBRARY_ENVIRONMENTS = ("uno-arduino", "bench-arduino")
PACKAGES = {
    **dict.fromkeys(LIBRARY_ENVIRONMENTS, ((), ("arduino-core-avr",))),
    "native": (("gcc", "g++"), ("doctest-dev",)),
}
"""Environment -> programs and packages that it alone depends on."""
SETTINGS = {
    "enable_telemetry": False,
    "check_platformio_interval": 36_500,
    "check_prune_system_threshold": 0,
}


def prepare() -> None:
    """Makes the core directory. Writes only files that differ, so a second call costs a few reads.

    PlatformIO and SCons do not notice a new compiler's headers, nor that the clone was moved: then all is made anew.
    """
    state = firmware_state()
    if not is_made_with(CORE, state):
        shutil.rmtree(BUILDS, ignore_errors=True)
    begin_anew_if_changed(CORE, state)
    scons = CORE / "packages" / "tool-scons"
    _write(scons / "package.json", json.dumps(SCONS))
    _write(scons / "scons.py", SCONS_ENTRY)
    _write(scons / ".piopm", json.dumps(SCONS_META))
    _copy(HERE / "platforms", CORE / "platforms")
    for environment in LIBRARY_ENVIRONMENTS:
        library = LIBRARIES / environment / "Adafruit INA219"
        _copy(HERE / "libraries" / "adafruit_ina219", library)
        _write(library / ".piopm", json.dumps(LIBRARY_META))
    state = CORE / "appstate.json"
    if not state.exists():
        _write(state, json.dumps({"settings": SETTINGS}))


def begin_environments(arguments: list[str]) -> None:
    """Empties the build folder of each named environment whose own packages have changed."""
    for option, environment in pairwise(arguments):
        if option in ("-e", "--environment") and environment in PACKAGES:
            programs, packages = PACKAGES[environment]
            begin_anew_if_changed(BUILDS / environment, made_with(programs, packages))


def _copy(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            _write(target / path.relative_to(source), path.read_text())


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def become_platformio(arguments: list[str]) -> NoReturn:
    """Replaces this process by PlatformIO with the given arguments, in the project's folder."""
    environment = {
        **os.environ,
        "PLATFORMIO_CORE_DIR": str(plain(CORE)),
        "PLATFORMIO_LIBDEPS_DIR": str(plain(LIBRARIES)),
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "false",
        "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
        "PLATFORMIO_NO_ANSI": os.environ.get("PLATFORMIO_NO_ANSI", "true"),
    }
    os.chdir(plain(ROOT))
    python = str(plain(PYTHON))
    os.execve(python, [python, "-m", "platformio", *arguments], environment)


def main(arguments: list[str]) -> int:
    """Prepares the core directory, then becomes PlatformIO if there are arguments."""
    prepare()
    if arguments and not PYTHON.exists():
        print(f"firmware: {PYTHON} is missing: run host/bootstrap.py --test", file=sys.stderr)
        return 1
    if arguments:
        begin_environments(arguments)
        become_platformio(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
