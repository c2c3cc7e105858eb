"""Cells: runs of the same settings. The mean over them has one interval, for every table, page and figure."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from opjoule.base.errors import DataFault
from opjoule.base.units import Quantity, missing, unstated
from opjoule.results.comparison.compared_run import COUNTED, SIDE, ComparedRun
from opjoule.results.comparison.value_words import NAMED, label, value_words
from opjoule.runs.evaluation.quantities.definition import Definition
from opjoule.runs.record.json_file import plain
from opjoule.runs.studies.definition import SYSTEM


@dataclass(frozen=True)
class ComparedCell:
    """Runs with the same settings."""

    values: Mapping[str, str]
    """Axis -> value."""
    runs: Sequence[ComparedRun]

    def numbers(self, path: str) -> list[Quantity]:
        """The quantity at a path in each run."""
        return [run.number(path) for run in self.runs]

    def sides(self, of: Definition) -> list[Quantity]:
        """The quantity in each run that has it with an uncertainty.

        Raises: DataFault: the runs have it in different units.
        """
        sides = [side for run in self.runs if (side := run.side(of)).has_interval]
        if len({side.unit for side in sides}) > 1:
            raise DataFault(f"the runs have {of.key} in different units: evaluate them anew with measure.py report")
        return sides

    def mean(self, of: Definition) -> Quantity:
        """Mean of a quantity over the runs.

        Runs without an uncertainty are left out if any run has one; if none has, the mean has none either.
        """
        return self._mean_and_count(of)[0]

    def number(self, path: str) -> Quantity:
        """The mean of the quantity at a path."""
        return self.mean(self.runs[0].definition(path))

    def stated(self, of: Definition) -> dict[str, Any]:
        """The mean as a number of result.json, with the number of its runs."""
        mean, count = self._mean_and_count(of)
        return {**plain(mean.stated), **({} if mean.value is None else {"runs": count})}

    def _mean_and_count(self, of: Definition) -> tuple[Quantity, int]:
        if sides := self.sides(of):
            mean = Quantity.mean(sides)
            if of.topic not in COUNTED or mean.u:
                return mean, len(sides)
        numbers = self.numbers(of.key)
        known = [number for number in numbers if number.value is not None]
        unit = next((number.unit for number in numbers if number.unit), of.unit)
        why = next((number for number in (known or numbers) if number.reason), None)
        if not known:
            return why.absent(unit) if why else missing("no run has it", unit), 0
        mean = unstated(fmean(map(float, known)), unit, "uncertainty not stated in a run")
        return mean.because(why) if why else mean, len(known)


@dataclass(frozen=True)
class Group(ComparedCell):
    """Runs with one value of the axis in one stratum, whose axes are those of the cell."""

    name: str
    by: tuple[str, ...] = ()
    """The compared axes."""
    among: Mapping[str, Collection[str]] = field(default_factory=dict, repr=False)
    """Axis -> its values in all groups."""

    @property
    def stratum(self) -> Mapping[str, str]:
        """The values of the other axes."""
        return self.values

    def side(self, of: Definition) -> Quantity | None:
        """Mean of a quantity over the runs that state it with an interval; None if none does."""
        sides = self.sides(of)
        return Quantity.mean(sides) if sides else None

    @property
    def words(self) -> str:
        """The group in a sentence: "the SD card", "LevelDB on the SD card"."""
        if self.by == (SIDE,):
            return self.name
        values = [self._said(value_words, axis, self.runs[0].value(axis)) for axis in self.by]
        return (" on " if set(self.by) <= set(NAMED) else ", ").join(values)

    @property
    def where(self) -> str:
        """Its stratum in a sentence: "on SQLite, workload a"; empty without other axes."""
        named = sorted(self.stratum, key=lambda axis: (axis not in NAMED, list(self.stratum).index(axis)))
        parts = [self._said(value_words, axis, self.stratum[axis]) for axis in named]
        return f"{'on' if named[0] in NAMED else 'with'} {', '.join(parts)}" if named else ""

    @property
    def label(self) -> str:
        """The group as the label of a row or a bar: "SD card", "LevelDB, SD card"."""
        if self.by == (SIDE,):
            return self.name
        return ", ".join(self._said(label, axis, self.runs[0].value(axis)) for axis in self.by)

    @property
    def place_labels(self) -> dict[str, str]:
        """The values of the other axes, by axis, as labels."""
        return {axis: self._said(label, axis, value) for axis, value in self.stratum.items()}

    def _said(self, words: Callable[[str, str, Collection[str]], str], axis: str, value: str) -> str:
        """A value by `value_words` or `label`; a database has the name that its study uses."""
        if axis in ("db", SYSTEM):
            value = self.runs[0].words(axis) or value
        return words(axis, value, self.among[axis])


RIG_NAME = "rig_name"
"""Key in `asked` of runs of a fleet."""
Block = tuple[Path | None, int, str]
"""Folder of the campaign, number of the block, rig."""


def paired(
    a: Mapping[Block, Quantity], b: Mapping[Block, Quantity], *, is_log: bool = False
) -> tuple[Quantity, Quantity] | None:
    """Means of two groups over the blocks that both have; None without such a block.

    Effects of a block, such as those of its rig (board, meter, room), are then neither in the difference nor in its
    spread. The spread is that between blocks, of the ratio where all values are above 0, else of the difference
    (`is_log`: of logarithms). It has one degree of freedom less than there are blocks: each side has half of the
    variance and half of those degrees.
    Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 3 (paired comparisons).
    """
    blocks = [block for block in a if block in b]
    if not blocks:
        return None
    sides = [Quantity.mean([of[block] for block in blocks]) for of in (a, b)]
    if len(blocks) > 1:
        pairs = [(float(a[block]), float(b[block])) for block in blocks]
        is_ratio = not is_log and min(min(pair) for pair in pairs) > 0
        apart = [math.log(one / other) if is_ratio else one - other for one, other in pairs]
        spread_u = stdev(apart) / math.sqrt(len(blocks))
        half_u = [(abs(float(side)) if is_ratio else 1.0) * spread_u / math.sqrt(2) for side in sides]
        about = (len(blocks) - 1) / 2, len(blocks)
        sides = [side.with_spread(u, *about) for side, u in zip(sides, half_u, strict=True)]
    return sides[0], sides[1]


def by_block(runs: Sequence[ComparedRun], quantity: Definition) -> dict[Block, Quantity]:
    """Mean of each block, over the runs that have the quantity."""
    by_block: dict[Block, list[ComparedRun]] = {}
    for run in runs:
        block = run.index, run.block, str(run.asked.get(RIG_NAME) or "")
        by_block.setdefault(block, []).append(run)
    known = {block: ComparedCell({}, of_block).sides(quantity) for block, of_block in by_block.items()}
    return {block: Quantity.mean(sides) for block, sides in known.items() if sides}
