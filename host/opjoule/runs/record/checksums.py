"""SHA-256 of a record's files: computed when a run ends, compared when a record is read."""

import hashlib
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from opjoule.base.files import file_sha256, open_regular

NOT_COVERED: Final = (
    "run.json",
    "notes.json",
    "report.html",
    "view.cache",
    "simulator-truth.json",
    "simulator-course.csv",
    "simulator-imperfections.json",
)
"""Files without a checksum here: run.json has its own, notes.json belongs to the user, report.html and view.cache can
be made again, and the others belong to the simulator."""
AT_ONCE: Final = 2
"""Number of files that are read at the same time."""


def checksums(directory: Path, known: Mapping[str, str]) -> dict[str, str]:
    """Path in the record -> SHA-256, for every file that needs one; files in `known` are not read again."""
    files = [path for path in sorted(directory.rglob("*")) if path.suffix != ".tmp" and path.is_file()]
    covered = {name: path for path in files if (name := path.relative_to(directory).as_posix()) not in NOT_COVERED}
    unknown = {name: path for name, path in covered.items() if name not in known}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = dict(zip(unknown, pool.map(file_sha256, unknown.values()), strict=True))
    return {name: known.get(name) or made[name] for name in covered}


class FileChecks:
    """Comparison of files with their checksums, each at most once; thread-safe."""

    def __init__(self, directory: Path, known: Mapping[str, str]) -> None:
        self._directory, self._known = directory, known
        self._lock = threading.Lock()
        self._outcomes: dict[str, Future[str | None]] = {}

    def begin(self) -> None:
        """Begins to compare all files in background threads, the small ones first."""
        with self._lock:
            left = sorted(self._known.keys() - self._outcomes.keys(), key=self._size)
        waiting = iter(left)
        for _ in left[:AT_ONCE]:
            threading.Thread(target=lambda: [self.of(name) for name in waiting], name="checksums").start()

    def of(self, name: str) -> str | None:
        """Reason why one file counts as damaged; None if it is intact or has no checksum."""
        if name not in self._known:
            return None
        with self._lock:
            is_first = name not in self._outcomes
            outcome = self._outcomes.setdefault(name, Future())
        if is_first:
            outcome.set_result(_problem(self._directory / name, self._known[name]))
        return outcome.result()

    def all(self) -> dict[str, str]:
        """Reason for each file that differs from its checksum."""
        self.begin()
        return {name: problem for name in self._known if (problem := self.of(name))}

    def _size(self, name: str) -> int:
        try:
            return (self._directory / name).stat().st_size
        except OSError:
            return 0


def _problem(path: Path, digest: str) -> str | None:
    try:
        with open_regular(path) as file:
            is_same = hashlib.file_digest(file, "sha256").hexdigest() == digest
        return None if is_same else f"{path}: changed since the run ended"
    except FileNotFoundError:
        return f"{path}: missing"
    except OSError as fault:
        return f"{path}: cannot be read ({fault.strerror})"
