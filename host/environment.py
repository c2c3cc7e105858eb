"""The project's virtual environment .venv: made, repaired and filled with pinned packages. Standard library only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from logged_commands import Interrupted, Lasting, SetupError, logged
from plain_folder import ROOT
from toolchain import MADE_WITH, file_state, replace_text

VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
PATH_FILE = "opjoule.pth"
STAMP_END = "-environment.stamp"
"""End of the name of the stamp of .venv's packages; it begins with the name of their pins."""
UV_PIN = ROOT / "host" / "requirements" / "uv.txt"
_ASK_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def fill_environment(lock: Path, log: Path) -> None:
    """Makes .venv if there is none that works, and installs the versions that `lock` pins, with their hashes.

    uv is several times as fast as pip. pip is used if uv fails: uv has no wheel for some computers, and does not
    know an index that only pip's configuration names. Where pip itself reaches no network, nothing else is tried.
    """
    if not environment_works():
        make_environment(log)
    pip = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--require-hashes"]
    uv = [str(VENV_PYTHON.with_name("uv")), "pip", "install", "--require-hashes"]
    try:
        logged([*pip, "--only-binary=:all:", "-r", str(UV_PIN)], log)
        done = _done_by_uv([*uv, "--python", str(VENV_PYTHON), "-r", str(lock)], log)
    except Lasting:
        raise
    except SetupError:
        done = False
    if not done:
        logged([*pip, "-r", str(lock)], log)
    find_package()


def _done_by_uv(command: list[str], log: Path) -> bool:
    """Whether uv has done it: a network that it does not reach may be reached by pip."""
    try:
        logged(command, log)
    except Interrupted:
        raise
    except SetupError:
        return False
    return True


def make_environment(log: Path) -> None:
    """Makes .venv anew with the Python that runs this."""
    shutil.rmtree(VENV, ignore_errors=True)
    logged([sys.executable, "-m", "venv", str(VENV)], log)
    replace_text(VENV / MADE_WITH, json.dumps(_state()))


def environment_works() -> bool:
    """Whether .venv was made completely, in this folder, for the Python that it has now.

    Its programs name their folder, so those of a copied clone would start the original's. Python's next version does
    not see the packages of the one before.
    """
    try:
        made = json.loads((VENV / MADE_WITH).read_text())
    except (OSError, ValueError):
        return False
    base = Path(os.path.realpath(VENV_PYTHON))
    if made.get("folder") != str(ROOT) or made.get("python") != str(base) or not base.exists():
        return False
    return bool(made["file"] == file_state(base) or made["version"] == _version())


def filled_state() -> list[object]:
    """What a filled .venv depends on besides the pins, as JSON has it."""
    folder = packages_folder()
    return [environment_works(), package_paths(), file_state(folder) if folder else []]


def is_filled() -> bool:
    """Whether .venv works and is unchanged since it was filled, and its pins have not been written since.

    This is quick, for every start; set-up compares the pins themselves.
    """
    for stamp in VENV.glob(f"*{STAMP_END}"):
        lock = ROOT / "host/requirements" / f"{stamp.name.removesuffix(STAMP_END)}.txt"
        try:
            state = json.loads(stamp.read_text())["state"]
            if state == filled_state() and lock.stat().st_mtime_ns < stamp.stat().st_mtime_ns:
                return True
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return False


def _state() -> dict[str, object]:
    """What .venv was made with."""
    base = Path(os.path.realpath(VENV_PYTHON))
    return {"folder": str(ROOT), "python": str(base), "file": file_state(base), "version": _version()}


def _version() -> str:
    """The version of Python in .venv, for example 3.11; empty if it does not run."""
    try:
        ran = subprocess.run([VENV_PYTHON, "-I", "-c", _ASK_VERSION], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ran.stdout.strip()


def packages_folder() -> Path | None:
    """The folder of .venv's packages; None if there is no .venv."""
    return next(iter(sorted(VENV.glob("lib/python3*/site-packages"))), None)


def package_paths() -> str:
    """Contents of the file that makes .venv's Python find opjoule and the tests' stand-ins from every folder."""
    return f"{ROOT / 'host'}\n{ROOT / 'host/tests/support'}\n"


def find_package() -> None:
    """Makes .venv's Python find opjoule and the tests' stand-ins from every folder."""
    folder = packages_folder()
    assert folder
    (folder / "__pycache__").mkdir(exist_ok=True)  # else the first import would change the folder's time
    (folder / PATH_FILE).write_text(package_paths())
