"""A rig of a fleet: the messages between it and a campaign, and the service that measures its cells.

The service measures a cell in its own process, independent of the worker's connection: the measurement continues
without the scheduler, and ends with the worker. The record is kept until it is fetched.
"""

import asyncio
import hashlib
import inspect
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from opjoule.base.errors import OpJouleError, RecordFault, of_system
from opjoule.base.files import file_sha256, write_whole
from opjoule.boards.rig import Rig
from opjoule.campaign.campaign import this_program
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.record.directory import RESERVE, RUN
from opjoule.runs.record.run_record import RunRecord

RIG: Final = "rig"
"""Dask resource: every worker has one and every cell needs one, so that a rig measures one cell at a time."""
SIMULATED: Final = "simulated"
"""Equipment of a worker with a simulated rig."""


class Job(Struct, frozen=True):
    """One cell as a rig receives it."""

    id: str
    """Constant identity of a cell in a campaign's folder."""
    campaign: str
    """Path of the campaign's folder."""
    title: str
    kind: str
    options: dict[str, Any]
    """Options from which the measurement is planned."""
    condition: dict[str, str]
    block: int
    seed: int
    """Seed of the campaign; a simulated rig's meter is drawn from it and from the rig's name."""
    plan_sha256: str
    name: str


class Outcome(Struct, frozen=True):
    """Outcome of a cell's measurement; its records are fetched separately."""

    status: int
    """Exit status, as from measure.py."""
    why: str = ""
    """Reason why there is no record; empty if there is one."""
    took_s: float = 0.0


class ParcelFile(Struct, frozen=True):
    """One file of a record that waits at a rig."""

    path: str
    """Path below the record, with slashes."""
    size: int
    sha256: str


class Parcel(Struct, frozen=True):
    """A record that waits at a rig."""

    job: str
    name: str
    sha256: str
    """Hash of run.json, which contains the hashes of all other files, so that it identifies the content."""
    status: str
    files: tuple[ParcelFile, ...]


class Waiting(Struct, frozen=True):
    """Records and jobs of a campaign that still wait at a rig."""

    parcels: tuple[Parcel, ...]
    jobs: tuple[str, ...]
    """Jobs whose folders can be removed once their parcels are fetched."""


class About(Struct, frozen=True):
    """A worker's description of itself."""

    rig: str
    program: str
    """Version and commit of its OpJoule."""
    measuring: str = ""
    """The running job; empty if there is none."""


def campaign_id(folder: Path) -> str:
    """Identity of a campaign's folder, from this computer's name and the path: records are returned only to it."""
    return hashlib.sha256(f"{socket.gethostname()}:{folder.resolve()}".encode()).hexdigest()[:16]


def job_id(campaign: str, *identity: object) -> str:
    """Identity of a cell of a campaign."""
    return hashlib.sha256("\0".join(map(str, (campaign, *identity))).encode()).hexdigest()[:20]


def rig_has(rig: Rig | None) -> frozenset[str]:
    """Names of a rig's boards, media and meter, as `rpi4`, `rpi4/sd`, `meter/serial`; None is a simulated rig."""
    if rig is None:
        return frozenset({SIMULATED})
    media = {f"{board}/{medium}" for board, device in rig.devices.items() for medium in device.media}
    return frozenset({*rig.devices, *media, _meter(rig.meter)})


def cell_needs(plan: Plan, meter: str | None) -> frozenset[str]:
    """Equipment that a cell needs, by the same names.

    Args:
        meter: the cell's own, as --meter takes it; None: the rig's.
    """
    if plan.simulated:
        return frozenset({SIMULATED})
    return frozenset({plan.board.name, *([_meter(meter)] if meter else [])})


def _meter(port: str) -> str:
    return f"meter/{port.partition(':')[0]}"


def resources(names: frozenset[str]) -> Mapping[str, float]:
    """Names of equipment as Dask resources, one each."""
    return dict.fromkeys(sorted({RIG, *names}), 1.0)


JOB: Final = "job.json"
OUTCOME: Final = "outcome.json"
OUTPUT: Final = "output.txt"
"""Output of the measuring program."""
T = TypeVar("T", bound=Struct)


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
    """One rig, and its spool: jobs that have ended but whose records have not been fetched yet."""

    name: str
    spool: Path
    """Folder with a folder for each job."""
    command: Sequence[str]
    """Command that measures the job whose folder is its last argument; it ends when its standard input closes."""
    say: Callable[[str], None] = print
    _job: Job | None = field(default=None, init=False)
    _measuring: asyncio.Task[Outcome] | None = field(default=None, init=False)
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)

    def about(self) -> About:
        """Facts that a campaign checks before it gives this rig a cell."""
        return About(self.name, this_program(), self._running)

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
            if (done := _read(self._place(job.id) / OUTCOME, Outcome)) is not None:
                return done
            self._job, self._measuring = job, asyncio.create_task(self._measure(job))
        assert self._measuring is not None
        return await asyncio.shield(self._measuring)

    def waiting(self, campaign: str) -> Waiting:
        """Jobs of a campaign that this rig keeps, except the running one, and their records."""
        jobs = [_read(place / JOB, Job) for place in _folders(self.spool) if place.name != self._running]
        kept = [job.id for job in jobs if job is not None and job.campaign == campaign]
        return Waiting(tuple(parcel for job_id in kept for parcel in self._parcels(job_id)), tuple(kept))

    def read(self, job_id: str, record: str, ranges: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Parts of a record's files.

        Args:
            ranges: (path below the record, first byte, number of bytes) of each.
        Raises: RecordFault: a path that leads out of the record.
        """
        root = (self._place(job_id) / record).resolve()
        parts = []
        for path, offset, size in ranges:
            file = (root / path).resolve()
            if root.parent != self._place(job_id).resolve() or not file.is_relative_to(root):
                raise RecordFault(f"{path} is not in {root}")
            with file.open("rb") as opened:
                opened.seek(offset)
                parts.append(opened.read(size))
        return parts

    def forget(self, job_ids: Sequence[str]) -> None:
        """Removes jobs and their records."""
        for job_id in job_ids:
            shutil.rmtree(self._place(job_id), ignore_errors=True)

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
        place = self._place(job.id)
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / JOB, msgspec.json.encode(job))
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
        outcome = _read(place / OUTCOME, Outcome)
        if outcome is None:
            printed = (place / OUTPUT).read_text(errors="replace").splitlines()
            outcome = Outcome(status or 1, printed[-1] if printed else f"its program ended with status {status}")
        outcome = msgspec.structs.replace(outcome, took_s=time.monotonic() - started_s)
        if status not in (-signal.SIGINT, 130):
            write_whole(place / OUTCOME, msgspec.json.encode(outcome))
        self.say(f"{job.title}: {outcome.why or 'measured'} ({outcome.took_s:.0f} s)")
        return outcome

    def _place(self, job_id: str) -> Path:
        """A job's folder. Raises: RecordFault: not a job's name."""
        if not job_id.isalnum():
            raise RecordFault(f"'{job_id}' is not a job of {self.spool}")
        return self.spool / job_id

    def _parcels(self, job_id: str) -> Iterator[Parcel]:
        for place in _folders(self._place(job_id)):
            if not (place / RUN).is_file():
                continue
            try:
                status = RunRecord.open(place).status
            except OpJouleError:
                status = "partial"
            yield Parcel(job_id, place.name, file_sha256(place / RUN), status, tuple(_files(place)))


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
