"""Connection to a scheduler, and through it to its workers."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

from distributed import Client, Security
from distributed.client import FutureCancelledError
from distributed.comm.addressing import get_address_host_port
from distributed.scheduler import KilledWorker

from opjoule.base.errors import RigFault
from opjoule.campaign.fleet import rig_service
from opjoule.campaign.fleet.job import Job, Outcome, resources

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
            answers = await self._client.run(rig_service.call, method, *arguments, workers=[address])
            return answers[address]
        except (OSError, KeyError, ValueError) as error:
            raise RigGone from error

    async def measure(self, address: str, job: Job, key: str) -> Outcome:
        """Has a worker measure a cell, after those that it measures for others. Raises: RigGone."""
        future = self._client.submit(
            rig_service.measure, job, key=key, workers=[address], resources=resources(frozenset()), pure=False
        )
        try:
            outcome: Outcome = await future
        except (FutureCancelledError, KilledWorker) as error:
            raise RigGone from error
        return outcome

    async def stop(self, addresses: Sequence[str], campaign: str) -> None:
        """Stops the workers' measurements for a campaign, if they answer."""
        with suppress(OSError, TimeoutError):
            stop = rig_service.call, rig_service.RigService.stop
            run = self._client.run(*stop, campaign, workers=addresses, on_error="ignore")
            await asyncio.wait_for(run, STOP_S)

    async def close(self) -> None:
        """Closes the connection."""
        with suppress(Exception):  # the scheduler may be gone
            await asyncio.wait_for(self._client.close(timeout=1), 5)
