"""A campaign: every condition is measured once in each block. Its state is read from the records on disk.

A record belongs to a cell if it has the same plan, changes of the board and load beside it, in the same block. No other
state is stored. So a campaign can be resumed after any end, and a new axis or block measures only the missing cells.

A block contains each condition once, in random order from the seed; --repeats is the number of blocks. Slow drift
(temperature, supply, a medium's own state) then does not affect one condition alone. Every run has the same seed, so
all conditions have the same operations.
Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 4 (randomised block designs).
"""

import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from json import dumps, loads
from pathlib import Path
from statistics import fmean
from typing import Any, Self

import opjoule
from opjoule.base.errors import FAULTY_EXIT, BadInput, Interrupted, OpJouleError, of_system
from opjoule.base.notices import NoticeKind
from opjoule.base.scripts import script_name
from opjoule.bench.simulation.truth_line import print_cells_line
from opjoule.campaign.adaptive import asks_for_more, at_equal_rate
from opjoule.campaign.axes import UntilNarrow
from opjoule.campaign.measurement import program_commit
from opjoule.pages.comparison import write_campaign_page
from opjoule.results.comparison.conclusion import commands_json, print_campaign
from opjoule.results.comparison.index import (
    NOT_MEASURED,
    ConditionRun,
    as_recorded,
    compared_by,
    names_of,
    read_index,
    with_result,
    write_index,
)
from opjoule.results.comparison.run_warnings import warnings_of
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.measuring.progress import in_words
from opjoule.runs.record.directory import INDEX, check_out, free_directory, held
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.run import program_words
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.definition import COMMAND

Identity = tuple[str, str, str, int]
"""Plan, changes of the board, load beside it, block."""


def block_order(count: int, blocks: int, seed: int) -> list[tuple[int, int]]:
    """(block, condition's number) in measuring order: each block contains all conditions, shuffled from the seed."""
    chance = random.Random(seed)
    order: list[tuple[int, int]] = []
    for block in range(1, blocks + 1):
        shuffled = list(range(count))
        chance.shuffle(shuffled)
        order += [(block, number) for number in shuffled]
    return order


def identity(plan_sha256: str, asked: Mapping[str, Any]) -> Identity:
    """Identity of a cell: measurements with the same identity are runs of that cell."""
    changes = " ".join(sorted(str(change) for change in asked.get("state") or ()))
    return plan_sha256, changes, str(asked.get("disturb") or ""), int(asked.get("block") or 0)


@dataclass(eq=False)
class Cell:
    """One condition in one block."""

    plan: Plan
    block: int
    runs: list[ConditionRun] = field(default_factory=list)
    """All its measurements, in order; the last one is still to be done if the cell is missing."""
    status: int = 0
    """Exit status of its last measurement."""
    failures: int = 0
    """Number of its records that ended incomplete without an interruption."""

    @property
    def identity(self) -> Identity:
        """Identity that its records share."""
        return identity(self.plan.sha256, self.plan.asked)

    def new_run(self, number: int) -> ConditionRun:
        """A run that has not been measured yet; its folder's name begins with the number."""
        return ConditionRun.of(self.block, self.plan.condition, number, self.plan.rank)

    @property
    def is_missing(self) -> bool:
        """True if it is still to be measured."""
        return bool(self.runs) and self.runs[-1].status == NOT_MEASURED and not self.runs[-1].why

    @property
    def is_complete(self) -> bool:
        """True if one of its runs is complete."""
        return any(run.status == "complete" for run in self.runs)


@dataclass
class Campaign:
    """All cells in measuring order."""

    folder: Path
    plans: Sequence[Plan]
    """One per condition."""
    seed: int
    retries: int
    cells: list[Cell] = field(default_factory=list)
    took_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Condition -> duration of each of its measurements [s]."""
    programs: dict[str, None] = field(default_factory=dict)
    """Versions of OpJoule that made its records, in order."""
    others: list[ConditionRun] = field(default_factory=list)
    """Runs of the folder's index that belong to no cell here: from other command lines of the same study."""
    _by_identity: dict[Identity, Cell] = field(default_factory=dict, repr=False)
    _programs_at_warning: int = 0
    """Number of programs when their change was last warned of."""

    @classmethod
    def of(
        cls,
        plans: Sequence[Plan],
        folder: Path,
        *,
        seed: int,
        retries: int = 0,
        resume: bool = False,
        shared: bool = False,
    ) -> Self:
        """Reads the state of a campaign from the records of its folder.

        Args:
            plans: one per condition; `repeats` is the number of blocks. Further blocks of the folder's records stay,
                and are not completed.
            resume: False: the folder must be empty.
            shared: other command lines have cells in the folder, which stay in its index.
        """
        campaign, records = cls(folder, plans, seed, retries), _records(folder) if resume else []
        planned = plans[0].repeats
        campaign._add_cells(planned)
        campaign._add_cells(max([planned, *campaign._blocks_in(records)]))
        for record in records:
            campaign.take_in(record)
        campaign.cells = [cell for cell in campaign.cells if cell.block <= planned or cell.runs]
        for at, cell in enumerate(campaign.cells, 1):
            if not cell.runs:
                campaign._add_run(cell, cell.block if resume else at)
        if shared:
            campaign._take_over()
        return campaign

    @property
    def simulated(self) -> bool:
        """Whether its rig is simulated."""
        return self.plans[0].simulated

    @property
    def blocks(self) -> int:
        """Number of its last block."""
        return max(cell.block for cell in self.cells)

    def add_block(self) -> None:
        """Adds the next block; if the last one is not whole, what it lacks."""
        last = self.blocks
        is_whole = sum(cell.block == last for cell in self.cells) == len(self.plans)
        self._add_cells(last + is_whole)
        for cell in self.cells:
            if not cell.runs:
                self._add_run(cell, cell.block)

    def _add_cells(self, blocks: int) -> None:
        """Adds the cells that are not there yet, in measuring order, so that there are this many blocks."""
        present = {cell.identity: cell for cell in self.cells}
        ordered = []
        for block, which in block_order(len(self.plans), blocks, self.seed):
            asked = {**self.plans[which].asked, "repeats": 1, "block": block}
            cell = Cell(replace(self.plans[which], repeats=1, asked=asked), block)
            ordered.append(present.get(cell.identity, cell))
        self.cells = ordered
        self._by_identity = {cell.identity: cell for cell in ordered}

    def _blocks_in(self, records: Sequence[RunRecord]) -> list[int]:
        """Numbers of the blocks of those records that are of its conditions."""
        conditions = {cell.identity[:3] for cell in self.cells}
        found = [identity(record.run.plan_sha256, record.document.get("asked", {})) for record in records]
        return [block for *condition, block in found if tuple(condition) in conditions]

    def _take_over(self) -> None:
        """Keeps the other conditions and blocks in the folder's index."""
        cells_here = {(tuple(cell.plan.condition.items()), cell.block) for cell in self.cells}
        with suppress(OpJouleError):  # no readable index: it is written again
            runs, _ = read_index(self.folder)
            self.others = [
                run
                for run in runs
                if run.status != NOT_MEASURED and (tuple(run.condition.items()), run.block) not in cells_here
            ]

    def take_in(self, record: RunRecord) -> bool:
        """Adds a record of the folder to its cell. Returns: whether it belongs to one."""
        cell = self._by_identity.get(identity(record.run.plan_sha256, record.document.get("asked", {})))
        if cell is None:
            return False
        if cell.is_missing:
            cell.runs.pop()
        run = replace(cell.new_run(cell.block), folder=record.directory.name)
        cell.runs.append(as_recorded(self.folder, run))
        if (length_s := _length_s(record)) is not None:
            self.took_s[cell.plan.condition_name].append(length_s)
        self.made_by(record)
        if record.is_finished and not any(fault.kind is NoticeKind.INTERRUPTED for fault in record.faults):
            cell.failures += cell.runs[-1].status != "complete"
        if not cell.is_complete and cell.failures <= self.retries:
            self._add_run(cell, cell.block)
        return True

    def made_by(self, record: RunRecord) -> None:
        """Records the program that made a record."""
        if record.run.found.opjoule:
            self.programs[program_words(record.run.found.opjoule, record.run.found.commit)] = None

    @property
    def runs(self) -> list[ConditionRun]:
        """Runs of every cell, including failed ones, and of the folder's other cells."""
        return [*(run for cell in self.cells for run in cell.runs), *self.others]

    @property
    def missing(self) -> list[Cell]:
        """Cells that are still to be measured, in order."""
        return [cell for cell in self.cells if cell.is_missing]

    def needs_block(self, until: UntilNarrow) -> bool:
        """Whether another block is needed and can be measured: none follows one without any complete run."""
        last = [cell for cell in self.cells if cell.block == self.blocks]
        return any(cell.is_complete for cell in last) and asks_for_more(until, with_result(self.runs), self.blocks)

    @property
    def remaining_s(self) -> float | None:
        """Estimated time of the missing cells [s], from measurements of their conditions; None before the first."""
        if not self.took_s:
            return None
        mean_s = fmean(length_s for took in self.took_s.values() for length_s in took)
        names = [cell.runs[-1].name for cell in self.missing]
        return sum(fmean(self.took_s[name]) if name in self.took_s else mean_s for name in names)

    @property
    def exit_status(self) -> int:
        """0 if every cell finished without a fault, else the status of the first cell that did not, or 6."""
        statuses = [cell.status or (0 if cell.is_complete else OpJouleError.exit_code) for cell in self.cells]
        cut_short = [status for status in statuses if status not in (0, FAULTY_EXIT)]
        return cut_short[0] if cut_short else max(statuses, default=0)

    def progress(self, cell: Cell, share: float = 1.0) -> str:
        """A line for a cell that is about to be measured; `share`: part of the rest that is measured sequentially."""
        remaining_s = self.remaining_s
        left = "" if remaining_s is None else f", about {in_words(share * remaining_s)} to go"
        done = len(self.cells) - len(self.missing)
        return f"block {cell.block}, {cell.runs[-1].name} ({done + 1} of {len(self.cells)}{left})"

    def failed(self, cell: Cell, why: str, took_s: float) -> None:
        """Records a measurement that left no record."""
        cell.runs[-1] = replace(cell.runs[-1], why=why)
        self.measured(cell, took_s)

    def measured(self, cell: Cell, took_s: float, status: int = 0) -> None:
        """Records a measurement; a failed one is repeated while retries remain.

        Args:
            status: its exit status; with BadInput's status, it would fail the same way again.
        """
        self.took_s[cell.plan.condition_name].append(took_s)
        with suppress(OpJouleError):
            self.made_by(RunRecord.open(self.folder / cell.runs[-1].folder))
        if not cell.is_complete and len(cell.runs) <= self.retries and status != BadInput.exit_code:
            self._add_run(cell, cell.block)

    def save(self) -> None:
        """Writes the folder's index; warns if a further version of the program has made runs."""
        write_index(self.folder, self.runs, simulated=self.simulated, programs=self.programs)
        if len(self.programs) > max(self._programs_at_warning, 1):
            print(
                f"{script_name()}: warning: the program has changed in mid-campaign: {' / '.join(self.programs)}: "
                "compare.py refuses to compare these runs; go back to the first version, or measure into another --out",
                file=sys.stderr,
            )
        self._programs_at_warning = len(self.programs)

    def _add_run(self, cell: Cell, number: int) -> None:
        run = cell.new_run(number)
        cell.runs.append(replace(run, folder=self.free_place(run.folder).name))

    def free_place(self, name: str) -> Path:
        """A free directory for another record: it does not exist, and no run in the index has its name."""
        return free_directory(self.folder / name, {run.folder for run in self.runs if run.why})


def this_program() -> str:
    """The running version of OpJoule with its commit."""
    return program_words(opjoule.__version__, program_commit())


def _records(folder: Path) -> list[RunRecord]:
    """Readable records of a folder, in order of their start."""
    records = []
    for place in sorted(folder.iterdir()) if folder.is_dir() else []:
        with suppress(OpJouleError):
            records.append(RunRecord.open(place))
    return sorted(records, key=lambda record: record.run.found.started_utc or "")


def _length_s(record: RunRecord) -> float | None:
    """Duration of a record's measurement [s]; None if it is not stated."""
    facts = record.run.found
    if not (facts.started_utc and facts.ended_utc):
        return None
    started, ended = map(datetime.fromisoformat, (facts.started_utc, facts.ended_utc))
    return (ended - started).total_seconds()


def in_condition(plan: Plan, condition: Mapping[str, str], rank: int = 0) -> Plan:
    """Marks a plan as one of several; `rank` is its place among them.

    An axis that the study's job varies itself is already in the parts of `asked`: an option may have a count's name.
    """
    within = {name for part in plan.asked.get("parts") or () for name in part}
    options = {axis: value for axis, value in condition.items() if axis not in within}
    return replace(plan, condition=condition, rank=rank, asked={**plan.asked, **options})


MeasureOne = Callable[[Plan, Path], tuple[int, Path]]
"""Measures a plan into a directory. Returns its exit status and the record that counts, which is beside that directory
if the run had to be measured again."""


def run_conditions(
    plans: Sequence[Plan],
    folder: Path,
    measure_one: MeasureOne,
    *,
    seed: int,
    json: bool,
    retries: int = 0,
    resume: bool = False,
    shared: bool = False,
    until: UntilNarrow | None = None,
) -> int:
    """Measures every plan in blocks and prints all results side by side; a failed one does not stop the others.

    Args:
        plans: one per condition; `repeats` is the number of blocks.
        folder: for all records, the index and report.html; an empty or new directory, unless `resume`.
        seed: of the order of the conditions.
        retries: number of times that a failed run is measured again.
        resume: skip the measurements that the folder's records show as done.
        shared: the folder's index keeps the measurements of other command lines.
        until: adds blocks until the intervals of all contrasts are narrow enough.
    Raises: BadInput: another measurement uses the folder, or is about to.
    Returns: 0 if every run finished without a fault, otherwise the status of the first that did not, or 6
        if all finished.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        if not resume:
            check_out(folder)  # again, now that this process has locked it
        campaign = Campaign.of(plans, folder, seed=seed, retries=retries, resume=resume, shared=shared)
        if campaign.missing:
            campaign.programs[this_program()] = None
        campaign.save()
        try:
            if campaign.missing or until:
                measure_one = at_equal_rate(folder, plans, measure_one)
            _measure_missing(campaign, measure_one)
            while until and campaign.needs_block(until):
                campaign.add_block()
                campaign.save()
                _measure_missing(campaign, measure_one)
        finally:
            write_campaign_page(folder)
        return concluded(campaign, json=json)


def _measure_missing(campaign: Campaign, measure_one: MeasureOne) -> None:
    for cell in campaign.missing:
        print(campaign.progress(cell), file=sys.stderr)
        status = 0
        while cell.is_missing:
            started_s = time.monotonic()
            run = cell.runs[-1]
            status, place, why = _tried(measure_one, cell.plan, campaign.folder / run.folder)
            cell.runs[-1] = as_recorded(campaign.folder, replace(run, folder=place.name, why=why))
            if why:
                print(f"{script_name()}: {run.name}: {why}", file=sys.stderr)
            campaign.measured(cell, time.monotonic() - started_s, status)
            campaign.save()
            write_campaign_page(campaign.folder, goes_on=True)
        cell.status = status


def concluded(campaign: Campaign, *, json: bool) -> int:
    """Prints a folder's results; as JSON, its index with the warnings, or the comparison of its commands.

    Returns the exit status.
    """
    folder = campaign.folder
    if json and COMMAND in campaign.plans[0].condition:
        print(commands_json(folder))
        return campaign.exit_status
    runs, _ = read_index(folder)
    cells = [with_result([run for run in runs if run.name == name]) for name in names_of(runs)]
    if json:
        index = loads((folder / INDEX).read_text(encoding="utf-8"))
        print(dumps(index | {"notices": plain(warnings_of(cells))}, indent=2))
    else:
        print_campaign(folder)
    print_cells_line(cells, compared_by(runs), as_json=json)
    return campaign.exit_status


def _tried(measure_one: MeasureOne, plan: Plan, folder: Path) -> tuple[int, Path, str]:
    """Exit status, record and reason of one run; only the user or the system ends all of them."""
    try:
        return *measure_one(plan, folder), ""
    except Interrupted:
        raise
    except (OpJouleError, OSError) as error:
        why = str(error) if isinstance(error, OpJouleError) else of_system(error)
        if _was_interrupted(error):
            raise Interrupted(f"interrupted; while it ended: {why}") from error
        return getattr(error, "exit_code", OpJouleError.exit_code), folder, why


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether an error occurred while an interruption was handled, as on a full disk."""
    while error and not isinstance(error, KeyboardInterrupt | Interrupted):
        error = error.__context__
    return error is not None
