"""Connection to a scheduler and its workers, and the transfer of records from their disks.

A record is copied in parts, checked file by file, all or nothing.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

from distributed import Client, Security
from distributed.client import FutureCancelledError
from distributed.comm.addressing import get_address_host_port
from distributed.scheduler import KilledWorker

from opjoule.base.errors import RecordFault, RigFault
from opjoule.base.files import file_sha256
from opjoule.campaign import fleet_rig
from opjoule.campaign.fleet_rig import Job, Outcome, Parcel, ParcelFile, resources
from opjoule.runs.record.directory import RUN

CONNECT_S: Final = 10.0
"""Time limit for the first packet [s]; a closed port is reported at once."""
ANSWER_S: Final = 10.0
"""Time limit for a busy scheduler [s]; one that has just started may never answer the first client, which retries."""
STOP_S: Final = 20.0
"""Time limit for a rig to end its measurement [s]."""


class RigGone(Exception):
    """A rig, or the scheduler on the way to it, did not answer."""


class SchedulerGone(Exception):
    """The scheduler did not answer, or another one now has its address."""


class Link:
    """One connection; it ends with the scheduler."""

    def __init__(self, client: Any, scheduler: str) -> None:
        self._client = client
        self._scheduler = scheduler
        """Identity of the scheduler: another one at the same address has no record of earlier requests."""

    @classmethod
    async def to(cls, address: str, security: Security | None) -> Self:
        """Connects to a scheduler. Raises: SchedulerGone: no answer. RigFault: the answer is not from a scheduler."""
        made: Any = Client
        parts: Any = get_address_host_port
        try:
            _, probe = await asyncio.wait_for(asyncio.open_connection(*parts(address)), CONNECT_S)
            probe.close()
            client = await made(address, asynchronous=True, timeout=ANSWER_S, security=security, set_as_default=False)
            identity = await client.scheduler.identity(n_workers=0)
        except OSError as error:
            raise SchedulerGone(str(error) or "it takes too long") from None
        except (ImportError, ValueError, TypeError) as error:
            raise RigFault(f"the scheduler at {address}: {error}") from None
        return cls(client, identity["id"])

    async def workers(self) -> Mapping[str, Mapping[str, Any]]:
        """The scheduler's description of every worker, by address. Raises: SchedulerGone."""
        try:
            identity = await self._client.scheduler.identity(n_workers=-1)
        except OSError as error:
            raise SchedulerGone(str(error)) from None
        if identity["id"] != self._scheduler:
            raise SchedulerGone("it was restarted")
        workers: Mapping[str, Mapping[str, Any]] = identity["workers"]
        return workers

    async def ask(self, address: str, method: Callable[..., Any], *arguments: object) -> Any:
        """Calls a method of a worker's RigService, even while it measures. Raises: RigGone."""
        try:
            answers = await self._client.run(fleet_rig.call, method, *arguments, workers=[address])
            return answers[address]
        except (OSError, KeyError, ValueError) as error:
            raise RigGone from error

    async def measure(self, address: str, job: Job, key: str) -> Outcome:
        """Has a worker measure a cell, after those that it measures for others. Raises: RigGone."""
        future = self._client.submit(
            fleet_rig.measure, job, key=key, workers=[address], resources=resources(frozenset()), pure=False
        )
        try:
            outcome: Outcome = await future
        except (FutureCancelledError, KilledWorker) as error:
            raise RigGone from error
        return outcome

    async def stop(self, addresses: Sequence[str], campaign: str) -> None:
        """Stops the workers' measurements for a campaign, if they answer."""
        with suppress(OSError, TimeoutError):
            stop = fleet_rig.call, fleet_rig.RigService.stop
            run = self._client.run(*stop, campaign, workers=addresses, on_error="ignore")
            await asyncio.wait_for(run, STOP_S)

    async def close(self) -> None:
        """Closes the connection."""
        with suppress(Exception):  # the scheduler may be gone
            await asyncio.wait_for(self._client.close(timeout=1), 5)


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
