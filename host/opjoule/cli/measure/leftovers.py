"""What a killed program left on this computer, and who else measures on it at this moment.

Names carry the number of the process that made them. A name of ours whose process is gone is swept; anything else,
links and other users' files among it, is left alone.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

STORAGE: Final = "build/simulated-storage"
"""Below the clone: databases of simulated boards, one folder a measurement."""
_TEMPORARY: Final = re.compile(r"opjoule-(?:twin|board|ssh)-([0-9]+)-[a-z0-9_]+")
_STORAGE_NAME: Final = re.compile(r".+-([0-9]+)")
LOCK: Final = "opjoule-measuring.lock"
"""Below the folder of temporary files."""


def sweep(root: Path) -> list[Path]:
    """Removes the folders of processes that are gone, those below a clone among them; returns them."""
    memory, temporary = Path("/dev/shm"), Path(tempfile.gettempdir())
    places = ((memory, _TEMPORARY), (temporary, _TEMPORARY), (root / STORAGE, _STORAGE_NAME))
    swept = []
    for folder, pattern in places:
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            match = pattern.fullmatch(path.name)
            if match and _is_ours(path) and not Path(f"/proc/{match[1]}").exists():
                shutil.rmtree(path, ignore_errors=True)
                swept.append(path)
    return swept


@contextmanager
def alone() -> Iterator[bool]:
    """True inside if no other measurement runs on this computer: two at once disturb each other."""
    path = Path(tempfile.gettempdir()) / LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError:
        yield True  # another user's lock, or no place for one: nothing can be told
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _is_ours(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.is_dir() and path.lstat().st_uid == os.geteuid()
    except OSError:
        return False
