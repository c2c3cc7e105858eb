"""Transfer of a record from a rig's disk to the campaign's folder: in parts, checked file by file, all or nothing."""

import hashlib
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from opjoule.base.errors import RecordFault
from opjoule.base.files import file_sha256
from opjoule.campaign.fleet.job import Parcel, ParcelFile
from opjoule.runs.record.directory import RUN

COMING: Final = ".coming"
"""Subfolder of the campaign's for records that are not complete yet."""
PART_BYTES: Final = 4 << 20
"""Greatest size of a message; small files share one message."""
Range = tuple[str, int, int]
"""(path below the record, first byte, number of bytes)."""
Fetch = Callable[[Parcel, Sequence[Range]], Awaitable[Sequence[bytes]]]


class Gathering:
    """The records of a campaign's folder, each content once.

    A record is transferred from a rig's disk in parts, checked file by file, all or nothing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._contents = {file_sha256(path): path.parent for path in folder.glob(f"*/{RUN}")}
        shutil.rmtree(folder / COMING, ignore_errors=True)

    def has(self, parcel: Parcel) -> bool:
        """Whether this very record is here already."""
        return parcel.sha256 in self._contents

    async def take(self, parcel: Parcel, fetch: Fetch, free_place: Callable[[str], Path]) -> Path:
        """Fetches a record that is not here; returns its directory.

        Args:
            free_place: gives a free path for a record's name.
        Raises: RecordFault: a received file differs from the rig's, or its path leads out of the record.
        """
        coming = self.folder / COMING / f"{parcel.job}-{parcel.name}"
        shutil.rmtree(coming, ignore_errors=True)
        coming.mkdir(parents=True)
        try:
            await _copy(parcel, coming, fetch)
            place = free_place(parcel.name)
            coming.rename(place)
        finally:
            shutil.rmtree(coming, ignore_errors=True)
            with suppress(OSError):  # if other records are in transfer
                coming.parent.rmdir()
        self._contents[parcel.sha256] = place
        return place


async def _copy(parcel: Parcel, place: Path, fetch: Fetch) -> None:
    hashes = {file.path: hashlib.sha256() for file in parcel.files}
    for file in parcel.files:
        if PurePosixPath(file.path).is_absolute() or ".." in PurePosixPath(file.path).parts:
            raise RecordFault(f"{parcel.name}: a file called {file.path} does not belong to a record")
        (place / file.path).parent.mkdir(parents=True, exist_ok=True)
        (place / file.path).touch()
    for ranges in _messages(parcel.files):
        for (path, _, _), part in zip(ranges, await fetch(parcel, ranges), strict=True):
            hashes[path].update(part)
            with (place / path).open("ab") as file_here:
                file_here.write(part)
                file_here.flush()
                os.fsync(file_here.fileno())
    for file in parcel.files:
        if hashes[file.path].hexdigest() != file.sha256:
            raise RecordFault(f"{parcel.name}/{file.path} differs from the rig's copy")


def _messages(files: Sequence[ParcelFile]) -> Iterator[list[Range]]:
    ranges: list[Range] = []
    room = PART_BYTES
    for file in files:
        at = 0
        while at < file.size:
            size = min(file.size - at, room)
            ranges.append((file.path, at, size))
            at, room = at + size, room - size
            if not room:
                yield ranges
                ranges, room = [], PART_BYTES
    if ranges:
        yield ranges
