"""Checksums of a record's files at its end, and seals of the raw files: about once a second while it runs.

raw/seals.csv has one line a seal: the file's name, its number of bytes, and the SHA-256 of exactly these bytes. Raw
files only grow, so that a seal stays valid. After a run was killed, the last seals distinguish intact bytes from
changed ones.
"""

import hashlib
import re
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opjoule.base.errors import RecordFault, naming
from opjoule.base.files import file_sha256, open_regular
from opjoule.runs.record.directory import check_inside

if TYPE_CHECKING:
    from hashlib import _Hash

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


SEALS: Final = "seals.csv"
PERIOD_S: Final = 1.0
UNSEALED: Final = "unsealed"
"""Folder under raw/ for the bytes that a killed run had written after its last seal."""
_HEAD: Final = "name,bytes,sha256\n"
_PASSED_OVER: Final = (".part", ".tmp")
_CHUNK_BYTES: Final = 1 << 20


class SealWatch:
    """A thread that seals every raw file that has grown. Raises: FileExistsError: raw data is never overwritten."""

    def __init__(self, directory: Path) -> None:
        self._raw = directory / "raw"
        self._raw.mkdir(parents=True, exist_ok=True)
        self._file = (self._raw / SEALS).open("x", encoding="utf-8")
        self._file.write(_HEAD)
        self._file.flush()
        self._sealed: dict[str, tuple[int, _Hash]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="seal-watch", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def seal(self) -> None:
        """Seals the current contents of the files. Raises: OSError: the medium is full or gone."""
        with self._lock:
            for path in _raw_files(self._raw):
                self._seal(path)
            with naming(self._raw / SEALS):
                self._file.flush()

    def stop(self) -> None:
        """Makes a last seal; the raw files may not change afterwards."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with naming(self._raw / SEALS):
            try:
                self.seal()
            finally:
                self._file.close()

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            try:
                self.seal()
            except OSError:
                return  # the writer of the record gets the same error and reports it

    def _seal(self, path: Path) -> None:
        name = path.relative_to(self._raw).as_posix()
        length, digest = self._sealed.get(name, (0, hashlib.sha256()))
        with path.open("rb") as file:
            file.seek(length)
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
                length += len(chunk)
        if name in self._sealed and length == self._sealed[name][0]:
            return
        self._sealed[name] = length, digest
        self._file.write(f"{name},{length},{digest.hexdigest()}\n")


@dataclass(frozen=True)
class _Seal:
    length: int
    sha256: str


_NOTHING: Final = _Seal(0, hashlib.sha256().hexdigest())


@dataclass(frozen=True)
class Closed:
    """The raw files of a killed run after they were cut at their last seals."""

    said: list[str] = field(default_factory=list)
    """One line for each file that was cut off, and one for the bytes after the last seals."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Reason why a file is damaged (changed since it was recorded, or missing), by its path in the record."""
    sha256: dict[str, str] = field(default_factory=dict)
    """Hash of each intact file, by its path in the record."""


def close_unfinished(directory: Path) -> Closed:
    """Cuts the raw files of a killed run at their last seals; later bytes move to raw/unsealed/."""
    raw, unsealed_bytes = directory / "raw", 0
    try:
        seals = _read(raw / SEALS)
    except RecordFault as fault:
        return Closed(damaged={f"raw/{SEALS}": str(fault)})
    for path in _raw_files(raw):
        seals.setdefault(path.relative_to(raw).as_posix(), [_NOTHING])
    closed = Closed()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        sound = [(name, pool.submit(_sound, raw / name, seals[name])) for name in sorted(seals)]
    for name, future in sound:
        try:
            reached = future.result()
        except RecordFault as fault:
            closed.damaged[f"raw/{name}"] = str(fault)
            continue
        unsealed_bytes += _cut(raw, name, reached.length)
        closed.sha256[f"raw/{name}"] = reached.sha256
        if reached.length < (last := seals[name][-1].length):
            closed.said.append(f"raw/{name} was cut off: {reached.length} of {last} bytes are left")
    if unsealed_bytes:
        closed.said.append(
            f"the last {unsealed_bytes} bytes, written after the last seals, are not used: raw/{UNSEALED}/"
        )
    return closed


def changed_since_sealed(directory: Path) -> list[str]:
    """One line for each file of an unfinished run that differs from its last seal; a shorter file was cut off."""
    raw, lines = directory / "raw", []
    try:
        seals = _read(raw / SEALS)
    except RecordFault as fault:
        return [str(fault)]
    for name, file_seals in sorted(seals.items()):
        try:
            sound = _sound(raw / name, file_seals).length
        except RecordFault as fault:
            lines.append(str(fault))
            continue
        if sound < file_seals[-1].length:
            lines.append(f"{raw / name}: cut off: {sound} of {file_seals[-1].length} bytes are left")
    return lines


def _raw_files(raw: Path) -> list[Path]:
    """Every raw file except the seals and files that are still arriving."""
    return [
        path
        for path in sorted(raw.rglob("*"))
        if path.suffix not in _PASSED_OVER
        and path.name != SEALS
        and UNSEALED not in path.relative_to(raw).parts
        and path.is_file()
    ]


def _read(path: Path) -> dict[str, list[_Seal]]:
    """The seals of each file in the order in which they were made, without an incomplete last line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RecordFault(f"{path}: missing: whether the recording was changed cannot be checked") from None
    except (OSError, UnicodeDecodeError):
        raise RecordFault(f"{path}: changed since it was recorded, or unreadable") from None
    lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
    seals: dict[str, list[_Seal]] = {}
    for number, line in enumerate(lines, start=1):
        if number == 1 and line == _HEAD:
            continue
        name, length, sha256 = _fields(path, number, line)
        check_inside(path.parent, name)
        seals.setdefault(name, []).append(_Seal(length, sha256))
    return seals


def _fields(path: Path, number: int, line: str) -> tuple[str, int, str]:
    seal = re.fullmatch(r"(.*),([0-9]{1,18}),([^,]*)", line.rstrip("\n"), re.DOTALL)
    if number == 1 or not seal:
        raise RecordFault(f"{path}: changed since it was recorded: line {number} is not a seal")
    return seal[1], int(seal[2]), seal[3]


def _sound(path: Path, seals: list[_Seal]) -> _Seal:
    """The last seal for which the file is long enough. Raises: RecordFault: the bytes under the seal have changed.

    A file that ends in zeros counts as cut off there: after a loss of power, blocks that were never written are zeros.
    """
    try:
        size = path.stat().st_size
        for length in (size, _without_zeros(path, size)):
            reached = next((seal for seal in reversed(seals) if seal.length <= length), _NOTHING)
            if _digest(path, reached.length) == reached.sha256:
                return reached
    except FileNotFoundError:
        raise RecordFault(f"{path}: missing") from None
    except OSError as fault:
        raise RecordFault(f"{path}: {fault.strerror}") from None
    raise RecordFault(f"{path}: changed since it was recorded")


def _digest(path: Path, length: int) -> str:
    digest, left = hashlib.sha256(), length
    with path.open("rb") as file:
        while left and (chunk := file.read(min(left, _CHUNK_BYTES))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.hexdigest()


def _without_zeros(path: Path, size: int) -> int:
    """Length of a file up to its last byte that is not zero."""
    with path.open("rb") as file:
        while size:
            begin = max(size - _CHUNK_BYTES, 0)
            file.seek(begin)
            if kept := file.read(size - begin).rstrip(b"\0"):
                return begin + len(kept)
            size = begin
    return 0


def _cut(raw: Path, name: str, length: int) -> int:
    """Moves the bytes after the first `length` of a file to raw/unsealed/; returns their number."""
    path, tail = raw / name, raw / UNSEALED / name
    behind = path.stat().st_size - length
    if behind > 0:
        tail.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b") as file, tail.open("wb") as kept:
            file.seek(length)
            shutil.copyfileobj(file, kept)
            file.truncate(length)
    return behind
