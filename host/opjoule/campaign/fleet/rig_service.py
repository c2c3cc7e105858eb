"""Service of a worker: measures a cell in a process of its own, and keeps the record until it is fetched.

The measurement is no part of the worker: it goes on while the scheduler is away, and ends with the worker's process.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

import opjoule
from opjoule.campaign.fleet.job import About, Job, Outcome, Waiting
from opjoule.campaign.fleet.spool import OUTCOME, OUTPUT, Spool
from opjoule.campaign.measurement import program_commit
from opjoule.errors import RecordFault
from opjoule.files import write_whole
from opjoule.system_errors import of_system


@dataclass
class RigService:
    """One rig."""

    name: str
    spool: Spool
    command: Sequence[str]
    """Measures the job whose folder is its last argument; ends when its standard input does."""
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
        """The job under way; empty where there is none."""
        return self._job.id if self._job and self._under_way else ""

    async def measure(self, job: Job) -> Outcome:
        """Measures a cell; one that is under way here, or done and not fetched yet, is not measured again."""
        while self._measuring is not None and self._under_way and self._running != job.id:
            await asyncio.wait({self._measuring})  # for a campaign that has gone
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
        """Parts of a record's files, as Spool.read gives them."""
        return self.spool.read(job_id, record, ranges)

    def forget(self, job_ids: Sequence[str]) -> None:
        """Removes jobs and their records."""
        for job_id in job_ids:
            self.spool.forget(job_id)

    async def stop(self, campaign: str | None = None) -> None:
        """Interrupts what is measured for a campaign, or for any, as Ctrl-C does, and waits for its end."""
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
    """Makes a rig this process's."""
    global _here  # noqa: PLW0603  # Dask calls functions, by name
    _here = rig


def _rig() -> RigService:
    if _here is None:
        sys.exit("not an OpJoule rig: a worker of another kind has joined its scheduler")
    return _here


async def measure(job: Job) -> Outcome:
    """RigService.measure of the worker that it is called on."""
    return await _rig().measure(job)


async def call(method: Callable[..., Any], *arguments: object) -> Any:
    """A method of RigService, of the worker that it is called on; what reads the disk does so in a thread.

    Raises: RecordFault: for an OSError of the rig's disk: a bare one means the network.
    """
    if inspect.iscoroutinefunction(method):
        return await method(_rig(), *arguments)
    try:
        return await asyncio.to_thread(method, _rig(), *arguments)
    except OSError as error:
        raise RecordFault(of_system(error)) from None
