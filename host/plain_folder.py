"""The project's folder under a plain name, because CMake and SCons misread a clone's path with a quote or a $."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LINKED = ("platformio.ini", "firmware", "loader-cpp", "host", "build", ".pio", ".venv")


def plain(path: Path, root: Path = ROOT) -> Path:
    """The same file of the project by a path that build tools accept; the path itself if it is already plain.

    Letters of any alphabet and spaces are accepted. Otherwise, a folder of links in the user's cache replaces the
    project's folder.
    """
    if not re.search(r"[^\w ./+@=,~%-]", str(root)):
        return path
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "opjoule" / f"clone-{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("build", ".pio"):
        (root / name).mkdir(exist_ok=True)
    for name in _LINKED:
        with contextlib.suppress(FileExistsError):
            (folder / name).symlink_to(root / name)
    return folder / path.relative_to(root)
