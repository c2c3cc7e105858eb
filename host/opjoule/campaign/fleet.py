"""A campaign on the rigs of a scheduler: distributes cells, fetches records, and can be resumed after any end.

The records in the folder define what is done. A rig that has left returns its cell. A rig that was only disconnected
(its scheduler was restarted) continues with its cell, and the campaign waits for it.
"""

import asyncio
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from distributed import Security

from opjoule.base.errors import Interrupted, OpJouleError, RigFault
from opjoule.base.units import counted
from opjoule.campaign.campaign import Campaign, Cell, this_program
from opjoule.campaign.fleet_link import Gathering, Link, Range, RigGone, SchedulerGone
from opjoule.campaign.fleet_rig import RIG, About, Job, Outcome, Parcel, RigService, Waiting, campaign_id
from opjoule.pages.comparison import write_campaign_page
from opjoule.runs.measuring.progress import in_words
from opjoule.runs.record.run_record import RunRecord

Names = frozenset[str]
"""Names of boards, media and meters, as in fleet_rig.py."""


class Blocks:
    """The missing cells of a campaign, and the rig of each.

    A block stays on one rig, so that differences between rigs do not affect any axis. If no rig has all equipment of a
    block (boards of two kinds), the rigs that can measure most of it share the block.
    """

    def __init__(self, campaign: Campaign, needs: Sequence[Names]) -> None:
        """`needs`: equipment that a rig must have for each cell of the campaign."""
        self._campaign = campaign
        self._needs = dict(zip(campaign.cells, needs, strict=True))
        self._owner: dict[Cell, str] = {}
        """Rig that measures a cell, or is to measure it."""
        self._under_way: dict[str, Cell] = {}

    def next(self, rig: str, present: Mapping[str, Names]) -> Cell | None:
        """The cell that a rig measures next; None if there is none for it now.

        Args:
            present: equipment of each rig that could measure at this time.
        """
        free = [cell for cell in self._campaign.missing if cell not in self._under_way.values()]
        free = [cell for cell in free if self._owner.get(cell, rig) == rig]
        cells = [cell for cell in free if self._needs[cell] <= present[rig]]
        mine = next((cell for cell in cells if self._owner.get(cell) == rig), None)
        if mine is None:
            mine = next((cell for cell in cells if self._may_begin(cell.block, rig, present)), None)
            begun = [cell for cell in cells if mine is not None and cell.block == mine.block]
            self._owner |= dict.fromkeys(begun, rig)
        if mine is not None:
            self._under_way[rig] = mine
        return mine

    def reserve(self, rig: str, cell: Cell) -> None:
        """Records that a rig is already measuring a cell."""
        self._under_way[rig] = cell
        self._owner[cell] = rig

    def under_way(self, rig: str) -> Cell | None:
        """The cell that a rig is measuring."""
        return self._under_way.get(rig)

    def ended(self, rig: str) -> None:
        """Marks a rig as idle; the rest of its block stays assigned to it."""
        self._under_way.pop(rig, None)

    def give_back(self, rig: str) -> None:
        """Marks a rig as gone: its unmeasured cells become free."""
        self.ended(rig)
        self._owner = {cell: owner for cell, owner in self._owner.items() if owner != rig}

    def nobody_s(self, present: Mapping[str, Names]) -> list[tuple[Names, int]]:
        """Equipment that no rig has, and the number of cells that need it."""
        counts = Counter(
            self._needs[cell]
            for cell in self._campaign.missing
            if not any(self._needs[cell] <= has for has in present.values())
        )
        return sorted(counts.items(), key=lambda item: sorted(item[0]))

    def share(self, rigs: int) -> float:
        """Greatest number of cells that one rig measures sequentially."""
        missing = self._campaign.missing
        sizes = Counter(cell.block for cell in missing)
        return max(*sizes.values(), len(missing) / max(rigs, 1)) if len(sizes) > 1 else float(len(missing))

    def _may_begin(self, block: int, rig: str, present: Mapping[str, Names]) -> bool:
        """Whether no other rig can measure these cells of a block and more."""
        cells = [cell for cell in self._campaign.missing if cell.block == block]
        by_rig = {name: {cell for cell in cells if self._needs[cell] <= has} for name, has in present.items()}
        return not any(by_rig[rig] < measurable for measurable in by_rig.values())


ASK_S: Final = 0.5
"""Interval at which the scheduler is asked for its rigs [s]."""


@dataclass
class FleetRig:
    """A worker that may measure, and its current work."""

    name: str
    address: str
    has: Names
    task: asyncio.Task[Any] | None = None
    failures: int = 0
    """Number of consecutive cells without a record through a fault of the rig."""
    aside: bool = False
    """Whether the rig gets no more cells."""


@dataclass
class Fleet:
    """One campaign on several rigs."""

    campaign: Campaign
    jobs: Sequence[Job]
    """One per cell of the campaign."""
    needs: Sequence[Names]
    address: str
    security: Security | None
    wait_s: float
    """Waiting time for a missing scheduler or rig [s]."""
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)
    _said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._blocks = Blocks(self.campaign, self.needs)
        self._gathering = Gathering(self.campaign.folder)
        self._job_of = dict(zip(self.campaign.cells, self.jobs, strict=True))
        self._cell_of = {job.id: cell for cell, job in self._job_of.items()}
        self._id = campaign_id(self.campaign.folder)
        self._present: dict[str, FleetRig] = {}
        """By address."""
        self._cut_off: dict[str, float] = {}
        """Rig disconnected with its scheduler -> time until which its cells wait for it."""
        self._refused: set[str] = set()
        """Addresses of workers that get no cells."""
        self._worked_s = time.monotonic()
        """Time at which a rig last had work."""

    def run(self) -> None:
        """Measures the missing cells. Raises: RigFault: no scheduler, or no rig for the rest. Interrupted: Ctrl-C."""
        asyncio.run(self._until_interrupted())

    async def _until_interrupted(self) -> None:
        loop, main = asyncio.get_running_loop(), asyncio.current_task()
        assert main is not None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, main.cancel)
        try:
            await self._whole()
        except asyncio.CancelledError:
            raise Interrupted("interrupted") from None

    async def _whole(self) -> None:
        since_s = None
        while self.campaign.missing or since_s is None:
            try:
                link = await Link.to(self.address, self.security)
            except SchedulerGone as error:
                if since_s is None:
                    raise RigFault(
                        f"no scheduler answers at {self.address} ({error}): start one with "
                        "'host/campaign.py scheduler', and workers with 'host/campaign.py worker'"
                    ) from None
                if time.monotonic() - since_s > self.wait_s:
                    raise RigFault(
                        f"the scheduler at {self.address} has been away for {in_words(self.wait_s)}; what the rigs "
                        "have measured is fetched when the same command is started again"
                    ) from None
                await asyncio.sleep(ASK_S)
                continue
            try:
                await self._session(link)
            except SchedulerGone:
                self.say(f"the scheduler at {self.address} has gone: waiting for it; the rigs go on with their cells")
                until_s = time.monotonic() + self.wait_s
                self._cut_off |= {rig.name: until_s for rig in self._present.values()}
            finally:
                await self._closed(link)
            since_s = time.monotonic()

    async def _closed(self, link: Link) -> None:
        """Closes a connection, and stops running measurements if the user wants an end."""
        interrupted = isinstance(sys.exception(), asyncio.CancelledError)
        tasks = [rig.task for rig in self._present.values() if rig.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if interrupted and tasks:
            self.say("interrupting the rigs ...")
            await link.stop(list(self._present), self._id)
        self._present.clear()
        await link.close()

    async def _session(self, link: Link) -> None:
        """Works with the rigs while the scheduler answers. Raises: SchedulerGone: it no longer answers."""
        while True:
            await self._update_rigs(link)
            if not self.campaign.missing and not any(rig.task for rig in self._present.values()):
                return
            self._begin(link)
            tasks = {rig.task for rig in self._present.values() if rig.task is not None}
            if tasks:
                self._worked_s = time.monotonic()
                await asyncio.wait(tasks, timeout=ASK_S, return_when=asyncio.FIRST_COMPLETED)
            else:
                self._check_hope()
                await asyncio.sleep(ASK_S)
            await self._ended(link)

    async def _update_rigs(self, link: Link) -> None:
        """Updates the list of rigs: lost ones return their cells, new ones are asked for their equipment."""
        workers = await link.workers()
        for address in [address for address in self._present if address not in workers]:
            await self._gone(self._present.pop(address))
        for address, worker in workers.items():
            if address not in self._present:
                await self._joined(link, address, worker)
        for name, until_s in list(self._cut_off.items()):
            if time.monotonic() > until_s:
                del self._cut_off[name]
                self._blocks.give_back(name)

    async def _gone(self, rig: FleetRig) -> None:
        name = rig.name
        if rig.task is not None:
            rig.task.cancel()
            await asyncio.gather(rig.task, return_exceptions=True)
        self.say(f"{name} has gone" + (": its cell goes to another rig" if self._blocks.under_way(name) else ""))
        self._blocks.give_back(name)

    async def _joined(self, link: Link, address: str, worker: Mapping[str, Any]) -> None:
        if address in self._refused:
            return None
        self._refused.add(address)
        if RIG not in worker["resources"]:
            return self._once(f"{address} is not an OpJoule rig: it gets no cells")
        try:
            about: About = await link.ask(address, RigService.about)
        except RigGone:
            return self._refused.discard(address)  # the next update reports it
        program = this_program()
        if about.program != program:
            return self._once(
                f"{about.rig} has OpJoule {about.program}, this computer {program}: it gets no cells; bring "
                "both to one version and start its worker again"
            )
        self._refused.discard(address)
        rig = FleetRig(about.rig, address, frozenset(worker["resources"]) - {RIG})
        self._cut_off.pop(rig.name, None)
        self._blocks.ended(rig.name)
        if (cell := self._cell_of.get(about.measuring)) is not None and cell.is_missing:
            self._blocks.reserve(rig.name, cell)
        self.say(f"{rig.name} has joined ({', '.join(sorted(rig.has))})")
        # The rig's records of this campaign are fetched before it gets a cell.
        rig.task, self._present[address] = asyncio.create_task(self._fetch_all(link, rig)), rig
        return None

    @property
    def _able(self) -> dict[str, Names]:
        return {rig.name: rig.has for rig in self._present.values() if not rig.aside}

    def _begin(self, link: Link) -> None:
        able = self._able
        for rig in self._present.values():
            name = rig.name
            if rig.task is None and name in able:
                cell = self._blocks.under_way(name) or self._blocks.next(name, able)
                if cell is not None:
                    rig.task = asyncio.create_task(self._measure(link, rig, cell))

    async def _ended(self, link: Link) -> None:
        """Collects finished tasks. Raises: SchedulerGone. OSError: a record cannot be stored here."""
        for address, rig in list(self._present.items()):
            if rig.task is None or not rig.task.done():
                continue
            task, rig.task = rig.task, None
            try:
                task.result()
            except RigGone:
                if address in await link.workers():
                    del self._present[address]  # it is asked again
                    self._blocks.give_back(rig.name)
            except OpJouleError as error:
                self._set_aside(rig, str(error))

    def _set_aside(self, rig: FleetRig, why: str) -> None:
        rig.aside = True
        self._blocks.give_back(rig.name)
        self.say(f"{rig.name} is set aside: {why}; its cells go to other rigs: mend it and start its worker again")

    async def _measure(self, link: Link, rig: FleetRig, cell: Cell) -> None:
        if not cell.is_missing:
            return self._blocks.ended(rig.name)
        job = self._job_of[cell]
        # With the time of all rigs together.
        rigs = sum(rig.task is not None for rig in self._present.values())
        share = self._blocks.share(rigs) / max(len(self.campaign.missing), 1)
        self.say(f"{rig.name}: {self.campaign.progress(cell, share)}")
        outcome = await link.measure(rig.address, job, f"{job.id}-{uuid.uuid4()}")
        fetched = await self._fetch_all(link, rig)
        self._blocks.ended(rig.name)
        self._conclude(rig, cell, outcome, job.id in fetched)
        return None

    def _conclude(self, rig: FleetRig, cell: Cell, outcome: Outcome, left_record: bool) -> None:
        """Records how a cell ended; a rig's own fault does not count as a failure of the cell."""
        cell.status = outcome.status
        if outcome.why:
            self.say(f"{rig.name}: {cell.runs[-1].name}: {outcome.why}")
        if left_record:
            rig.failures = 0
        elif outcome.status == RigFault.exit_code:
            rig.failures += 1
            if rig.failures > self.campaign.retries:
                self._set_aside(rig, outcome.why)
        else:
            self.campaign.failed(cell, outcome.why or "it left no record of its cell", outcome.took_s)
        self.campaign.save()
        write_campaign_page(self.campaign.folder, goes_on=True)

    async def _fetch_all(self, link: Link, rig: FleetRig) -> set[str]:
        """Fetches every record of this campaign from a rig into the folder, and has the rig delete it.

        Returns: the jobs that had a record of their cell.
        """
        waits: Waiting = await link.ask(rig.address, RigService.waiting, self._id)
        spare, strange = set(), set()

        async def fetch(parcel: Parcel, ranges: Sequence[Range]) -> Sequence[bytes]:
            parts: Sequence[bytes] = await link.ask(rig.address, RigService.read, parcel.job, parcel.name, ranges)
            return parts

        for parcel in waits.parcels:
            cell = self._cell_of.get(parcel.job)
            if self._gathering.has(parcel):
                continue
            if cell is not None and cell.is_complete and parcel.status == "complete":
                spare.add(parcel.job)
                self._once(
                    f"{rig.name}: {parcel.name} was measured on another rig in the meantime: this copy stays there"
                )
                continue
            if not self._take_in(await self._gathering.take(parcel, fetch, self.campaign.free_place)):
                strange.add(parcel.job)
        if done := [job for job in waits.jobs if job not in spare]:
            await link.ask(rig.address, RigService.forget, done)
        return {parcel.job for parcel in waits.parcels} - strange

    def _take_in(self, place: Path) -> bool:
        """Adds a fetched record to its cell. Returns: whether it belongs to one; a line says so if not."""
        taken = False
        try:
            taken = self.campaign.take_in(RunRecord.open(place))
            if not taken:
                self.say(f"{place}: not a record of the cell that was to be measured")
        except OpJouleError as error:
            self.say(f"{place}: {error}")
        self.campaign.save()
        return taken

    def _check_hope(self) -> None:
        """Gives up if no rig can measure the remaining cells and none has joined for a long time.

        Raises: RigFault: no rig for the rest.
        """
        lacking = self._blocks.nobody_s(self._able)
        for needs, count in lacking:
            self._once(f"no rig has {' and '.join(sorted(needs))}: {counted(count, 'cell')} left to measure")
        if time.monotonic() - self._worked_s > self.wait_s and not self._cut_off:
            left = "; ".join(f"{count} need {' and '.join(sorted(needs))}" for needs, count in lacking)
            raise RigFault(
                f"no rig at {self.address} can measure what is left, {counted(len(self.campaign.missing), 'cell')} "
                f"({left}): start 'host/campaign.py worker' where there is one; the same command continues"
            )

    def _once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self.say(line)
