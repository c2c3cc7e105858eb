"""Service of a worker: measures a cell in its own process, and keeps the record until it is fetched.

The measurement is independent of the worker's connection: it continues without the scheduler, and ends with the worker.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

import opjoule
from opjoule.campaign.fleet.job import About, Job, Outcome, Parcel, ParcelFile, Waiting
from opjoule.campaign.measurement import program_commit
from opjoule.errors import OpJouleError, RecordFault
from opjoule.files import file_sha256, write_whole
from opjoule.record.directory import RESERVE, RUN
from opjoule.record.run_record import RunRecord
from opjoule.system_errors import of_system

JOB: Final = "job.json"
OUTCOME: Final = "outcome.json"
OUTPUT: Final = "output.txt"
"""Output of the measuring program."""
T = TypeVar("T", bound=Struct)


class Spool:
    """Finished or interrupted jobs of one rig that have not been fetched yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, job_id: str) -> Path:
        """A job's folder. Raises: RecordFault: not a job's name."""
        if not job_id.isalnum():
            raise RecordFault(f"'{job_id}' is not a job of {self.folder}")
        return self.folder / job_id

    def begin(self, job: Job) -> Path:
        """Creates the job's folder."""
        place = self.place(job.id)
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / JOB, msgspec.json.encode(job))
        return place

    def outcome(self, job_id: str) -> Outcome | None:
        """Outcome of a job; None if it did not finish, or is unknown here."""
        return _read(self.place(job_id) / OUTCOME, Outcome)

    def waiting(self, campaign: str, running: str) -> Waiting:
        """All records of a campaign's folder on this rig, except those of the running job."""
        jobs = [
            job
            for place in _folders(self.folder)
            if place.name != running
            and (job := _read(place / JOB, Job)) is not None
            and job.campaign == campaign
        ]
        parcels = [parcel for job in jobs for parcel in self._parcels(job)]
        return Waiting(tuple(parcels), tuple(job.id for job in jobs))

    def campaigns(self) -> set[str]:
        """Campaigns with records that have not been fetched."""
        jobs = (_read(place / JOB, Job) for place in _folders(self.folder))
        return {job.campaign for job in jobs if job is not None}

    def read(self, job_id: str, record: str, ranges: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Parts of a record's files.

        Args:
            ranges: (path below the record, first byte, number of bytes) of each.
        Raises: RecordFault: a path that leads out of the record.
        """
        root = (self.place(job_id) / record).resolve()
        parts = []
        for path, offset, size in ranges:
            file = (root / path).resolve()
            if root.parent != self.place(job_id).resolve() or not file.is_relative_to(root):
                raise RecordFault(f"{path} is not in {root}")
            with file.open("rb") as opened:
                opened.seek(offset)
                parts.append(opened.read(size))
        return parts

    def forget(self, job_id: str) -> None:
        """Removes a job and its records."""
        shutil.rmtree(self.place(job_id), ignore_errors=True)

    def _parcels(self, job: Job) -> Iterator[Parcel]:
        for place in _folders(self.place(job.id)):
            if not (place / RUN).is_file():
                continue
            try:
                record = RunRecord.open(place)
                status, plan = record.status, record.run.plan_sha256 or ""
            except OpJouleError:
                status, plan = "partial", ""
            files = tuple(_files(place))
            yield Parcel(job.id, place.name, file_sha256(place / RUN), status, plan, files)


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _files(record: Path) -> Iterator[ParcelFile]:
    for folder, _, names in os.walk(record):
        for name in sorted(names):
            file = Path(folder) / name
            if file.is_file() and not file.is_symlink() and name != RESERVE:
                yield ParcelFile(file.relative_to(record).as_posix(), file.stat().st_size, file_sha256(file))


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


@dataclass
class RigService:
    """One rig."""

    name: str
    spool: Spool
    command: Sequence[str]
    """Command that measures the job whose folder is its last argument; it ends when its standard input closes."""
    say: Callable[[str], None] = print
    _job: Job | None = field(default=None, init=False)
    _measuring: asyncio.Task[Outcome] | None = field(default=None, init=False)
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)

    def about(self) -> About:
        """Facts that a campaign checks before it gives this rig a cell."""
        return About(self.name, opjoule.__version__, program_commit(), self._running)

    @property
    def _under_way(self) -> bool:
        return self._measuring is not None and not self._measuring.done()

    @property
    def _running(self) -> str:
        """The running job; empty if there is none."""
        return self._job.id if self._job and self._under_way else ""

    async def measure(self, job: Job) -> Outcome:
        """Measures a cell; one that is running here, or done but not fetched, is not measured again."""
        while self._measuring is not None and self._under_way and self._running != job.id:
            await asyncio.wait({self._measuring})  # for a campaign that has disconnected
        if not self._under_way:
            if (done := self.spool.outcome(job.id)) is not None:
                return done
            self._job, self._measuring = job, asyncio.create_task(self._measure(job))
        assert self._measuring is not None
        return await asyncio.shield(self._measuring)

    def waiting(self, campaign: str) -> Waiting:
        """Records that a campaign has not fetched yet."""
        return self.spool.waiting(campaign, self._running)

    def read(self, job_id: str, record: str, ranges: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Parts of a record's files, as from Spool.read."""
        return self.spool.read(job_id, record, ranges)

    def forget(self, job_ids: Sequence[str]) -> None:
        """Removes jobs and their records."""
        for job_id in job_ids:
            self.spool.forget(job_id)

    async def stop(self, campaign: str | None = None) -> None:
        """Interrupts measurements for one campaign, or for all, as Ctrl-C does, and waits for their end."""
        if self._job is None or self._measuring is None or campaign not in (None, self._job.campaign):
            return
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
        await asyncio.wait({self._measuring})

    async def _measure(self, job: Job) -> Outcome:
        self.say(f"{job.title} ...")
        started_s = time.monotonic()
        place = self.spool.begin(job)
        with (place / OUTPUT).open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.command,
                str(place),
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # the worker handles Ctrl-C on this terminal
            )
            status = await self._process.wait()
        outcome = self.spool.outcome(job.id)
        if outcome is None:
            printed = (place / OUTPUT).read_text(errors="replace").splitlines()
            outcome = Outcome(
                status or 1, printed[-1] if printed else f"its program ended with status {status}"
            )
        outcome = msgspec.structs.replace(outcome, took_s=time.monotonic() - started_s)
        if status not in (-signal.SIGINT, 130):
            write_whole(place / OUTCOME, msgspec.json.encode(outcome))
        self.say(f"{job.title}: {outcome.why or 'measured'} ({outcome.took_s:.0f} s)")
        return outcome


_here: RigService | None = None
"""This process's rig, for the functions that a campaign calls here."""


def serve(rig: RigService) -> None:
    """Sets this process's rig."""
    global _here  # noqa: PLW0603  # Dask calls functions, by name
    _here = rig


def _rig() -> RigService:
    if _here is None:
        sys.exit("not an OpJoule rig: a worker of another kind has joined its scheduler")
    return _here


async def measure(job: Job) -> Outcome:
    """Calls RigService.measure on the current worker."""
    return await _rig().measure(job)


async def call(method: Callable[..., Any], *arguments: object) -> Any:
    """Calls a method of RigService on the current worker; methods that read the disk run in a thread.

    Raises: RecordFault: for an OSError of the rig's disk, because a plain OSError would mean the network.
    """
    if inspect.iscoroutinefunction(method):
        return await method(_rig(), *arguments)
    try:
        return await asyncio.to_thread(method, _rig(), *arguments)
    except OSError as error:
        raise RecordFault(of_system(error)) from None
