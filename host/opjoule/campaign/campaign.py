"""What a campaign has done and what it lacks: every condition once in each block, by what the records on the disk say.

A record is of a cell when it did the same (plan, changes of the board, load beside it) in the same block; nothing else
is kept. So a campaign goes on after any end, and one with a further axis or block measures only what is missing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from opjoule.campaign.index import NOT_MEASURED, ConditionRun, look
from opjoule.errors import FAULTY_EXIT, OpJouleError
from opjoule.measurement.plan import Plan
from opjoule.record.directory import free_directory
from opjoule.record.run_record import RunRecord

INTERRUPTED: Final = "interrupted by the user"
"""Begins the fault of a record whose measurement was ended so."""

Identity = tuple[str, str, str, int]
"""Plan, changes of the board, load beside it, block."""


def block_order(count: int, blocks: int, seed: int) -> list[tuple[int, int]]:
    """(block, condition's number) in the order of measuring: each block holds all, shuffled from the seed."""
    chance = random.Random(seed)
    order: list[tuple[int, int]] = []
    for block in range(1, blocks + 1):
        shuffled = list(range(count))
        chance.shuffle(shuffled)
        order += [(block, number) for number in shuffled]
    return order


def identity(plan_sha256: str, asked: Mapping[str, Any]) -> Identity:
    """What makes two measurements runs of one cell."""
    changes = " ".join(sorted(str(each) for each in asked.get("state") or ()))
    return plan_sha256, changes, str(asked.get("disturb") or ""), int(asked.get("block") or 0)


@dataclass
class Cell:
    """One condition in one block."""

    plan: Plan
    """Of one repeat."""
    block: int
    runs: list[ConditionRun]
    """Every time it was measured, in order; the last one has not been where it is still to be measured."""
    status: int = 0
    """Exit status of its last measurement."""

    @property
    def is_missing(self) -> bool:
        """Is it still to be measured?"""
        return self.runs[-1].status == NOT_MEASURED and not self.runs[-1].why

    @property
    def is_complete(self) -> bool:
        """Has it a run that came to its end?"""
        return any(each.status == "complete" for each in self.runs)


@dataclass
class Campaign:
    """All cells in the order of measuring."""

    folder: Path
    cells: list[Cell]
    retries: int
    simulated: bool
    took_s: dict[str, list[float]] = field(default_factory=dict)
    """Condition in words -> how long each of its measurements took [s]."""

    @classmethod
    def of(
        cls, plans: Sequence[Plan], folder: Path, *, seed: int, retries: int = 0, resume: bool = False
    ) -> Campaign:
        """What the records of a folder say of it.

        Args:
            plans: one a condition; `repeats` is the number of blocks.
            resume: False: the folder is empty.
        """
        campaign = cls(folder, [], retries, plans[0].simulated)
        past = _past_runs(folder) if resume else {}
        order = block_order(len(plans), plans[0].repeats, seed)
        for at, (block, which) in enumerate(order, 1):
            asked = {**plans[which].asked, "repeats": 1, "block": block}
            plan = replace(plans[which], repeats=1, asked=asked)
            cell = Cell(plan, block, [])
            named = ConditionRun.of(block, plan.condition, block if resume else at)
            for record in past.get(identity(plan.sha256, asked), []):
                cell.runs.append(look(folder, replace(named, folder=record.directory.name)))
                campaign._took(cell, _length_s(record))
            if campaign._to_measure(cell, past.get(identity(plan.sha256, asked), [])):
                campaign._add_run(cell, named)
            campaign.cells.append(cell)
        return campaign

    @property
    def runs(self) -> list[ConditionRun]:
        """Of every cell, failed ones too."""
        return [run for cell in self.cells for run in cell.runs]

    @property
    def missing(self) -> list[Cell]:
        """What is still to be measured, in order."""
        return [cell for cell in self.cells if cell.is_missing]

    @property
    def remaining_s(self) -> float | None:
        """About how long what is missing takes [s], by what its conditions took; None before the first is measured."""
        if not self.took_s:
            return None
        mean_s = fmean(each for took in self.took_s.values() for each in took)
        names = [cell.runs[-1].name for cell in self.missing]
        return sum(fmean(self.took_s[name]) if name in self.took_s else mean_s for name in names)

    @property
    def exit_status(self) -> int:
        """0 if every cell came to its end without a fault, else that of the first that did not, or 6."""
        statuses = [cell.status or (0 if cell.is_complete else OpJouleError.exit_code) for cell in self.cells]
        cut_short = [status for status in statuses if status not in (0, FAULTY_EXIT)]
        return cut_short[0] if cut_short else max(statuses, default=0)

    def progress(self, cell: Cell) -> str:
        """A line for a cell that is about to be measured."""
        left = "" if self.remaining_s is None else f", about {in_words(self.remaining_s)} to go"
        done = len(self.cells) - len(self.missing)
        return f"block {cell.block}, {cell.runs[-1].name} ({done + 1} of {len(self.cells)}{left})"

    def measured(self, cell: Cell, took_s: float) -> None:
        """Takes note of a measurement; one that failed is to be measured again while the retries last."""
        self._took(cell, took_s)
        if not cell.is_complete and len(cell.runs) <= self.retries:
            self._add_run(cell, cell.runs[-1])

    def _to_measure(self, cell: Cell, past: Sequence[RunRecord]) -> bool:
        """Is there no complete run, and are retries left? What was cut off from outside is no failure."""
        failed = [each for each in past if each.is_finished and not _was_interrupted(each)]
        return not cell.is_complete and len(failed) <= self.retries

    def _add_run(self, cell: Cell, like: ConditionRun) -> None:
        name = ConditionRun.of(cell.block, like.condition, cell.block).folder if cell.runs else like.folder
        taken = free_directory(self.folder / name).name
        cell.runs.append(ConditionRun(cell.block, like.condition, taken))

    def _took(self, cell: Cell, length_s: float | None) -> None:
        if length_s is not None:
            self.took_s.setdefault(" ".join(cell.plan.condition.values()), []).append(length_s)


def in_words(length_s: float) -> str:
    """A length of time, roughly: "40 s", "3 min", "2 h 10 min"."""
    if length_s < 90:
        return f"{length_s:.0f} s"
    minutes = round(length_s / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _past_runs(folder: Path) -> dict[Identity, list[RunRecord]]:
    """The records of a folder by what they are runs of, in the order in which they began; unreadable ones aside."""
    found: list[RunRecord] = []
    for place in sorted(folder.iterdir()) if folder.is_dir() else []:
        try:
            found.append(RunRecord.open(place))
        except OpJouleError:
            continue
    by_cell: dict[Identity, list[RunRecord]] = {}
    for record in sorted(found, key=lambda each: each.run.found.started_utc or ""):
        key = identity(record.run.plan_sha256, record.document.get("asked", {}))
        by_cell.setdefault(key, []).append(record)
    return by_cell


def _was_interrupted(record: RunRecord) -> bool:
    return any(INTERRUPTED in each for each in record.faults)


def _length_s(record: RunRecord) -> float | None:
    """How long its measurement took [s]; None where it does not say."""
    found = record.run.found
    if not (found.started_utc and found.ended_utc):
        return None
    return (
        datetime.fromisoformat(found.ended_utc) - datetime.fromisoformat(found.started_utc)
    ).total_seconds()
