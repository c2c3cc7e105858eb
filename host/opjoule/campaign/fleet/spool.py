"""A rig's own copy of records until a campaign has fetched them: one folder a job."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from opjoule.campaign.fleet.job import Job, Outcome, Parcel, ParcelFile, Waiting
from opjoule.errors import OpJouleError, RecordFault
from opjoule.files import file_sha256, write_whole
from opjoule.record.directory import RESERVE, RUN
from opjoule.record.run_record import RunRecord

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
        """A job's folder. Raises: RecordFault: no name of a job."""
        if not job_id.isalnum():
            raise RecordFault(f"'{job_id}' is not a job of {self.folder}")
        return self.folder / job_id

    def begin(self, job: Job) -> Path:
        """Makes the job's folder."""
        place = self.place(job.id)
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / JOB, msgspec.json.encode(job))
        return place

    def outcome(self, job_id: str) -> Outcome | None:
        """Outcome of a job; None if it did not finish, or is not here."""
        return _read(self.place(job_id) / OUTCOME, Outcome)

    def waiting(self, campaign: str, running: str) -> Waiting:
        """Every record of a campaign's folder that is here, but for the job under way."""
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
        """Campaigns that have not fetched all of theirs."""
        jobs = (_read(place / JOB, Job) for place in _folders(self.folder))
        return {job.campaign for job in jobs if job is not None}

    def read(self, job_id: str, record: str, ranges: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """Parts of a record's files.

        Args:
            ranges: (path below the record, first byte, number of bytes) of each.
        Raises: RecordFault: a path that leads out of it.
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
