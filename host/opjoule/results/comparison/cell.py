"""Cells: runs of the same settings. The mean over them has one interval, for every table, page and figure.

`Group` is a cell of a comparison, `Plotted` the layout of all cells in a figure.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

from opjoule.base.errors import BadInput, DataFault
from opjoule.base.settings import MEDIUM
from opjoule.base.units import Quantity, missing, unstated
from opjoule.results.comparison.compared_run import COUNTED, SIDE, ComparedRun, check_comparable, told_by
from opjoule.results.comparison.run_warnings import summary_of
from opjoule.results.comparison.value_words import NAMED, label, value_order, value_words
from opjoule.results.long_table import NOT_IDENTIFIABLE, part_text
from opjoule.runs.evaluation.quantities.definition import Definition
from opjoule.runs.record.json_file import plain
from opjoule.runs.studies.definition import SYSTEM

THROUGHPUT: Final = "throughput_per_s"
FOREGROUND: Final = "foreground"
"""All kinds of operation together."""
ACTIVITIES: Final = ("harness", "flush", "compaction", "checkpoint", "sync", "write_back", "tail")
BEFORE: Final = "before"
AFTER: Final = "after"


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

    def text(self, path: str) -> str:
        """The mean with its interval; a dash, or `not identifiable`, if there is none."""
        return part_text(path, self.number(path))

    @property
    def delay(self) -> Quantity:
        """Seconds per operation: the reciprocal of the throughput, to first order."""
        rate = self.number(THROUGHPUT)
        if not rate.value:
            return missing("no throughput", "s")
        if rate.u is not None:
            return Quantity(1.0 / rate.value, rate.u / rate.value**2, "s")
        return unstated(1.0 / rate.value, "s", rate.reason)

    @cached_property
    def kinds(self) -> dict[str, float]:
        """Energy of each kind of operation [J]; empty if a run withholds that of any."""
        joules: dict[str, float] = {}
        for kind in sorted({kind for run in self.runs for kind in run.kinds}):
            energy_j = self._known_in_every_run(f"by_operation.{kind}.energy_per_operation_j")
            count = self._known_in_every_run(f"by_operation.{kind}.count")
            if energy_j is None or count is None:
                return {}
            joules[kind] = energy_j * count
        return joules

    @cached_property
    def parts(self) -> dict[str, float]:
        """Energy of each known part [J]: kinds of operation, all of these together, and activities."""
        known = {name: self._known_in_every_run(f"by_activity.{name}") for name in (FOREGROUND, *ACTIVITIES)}
        activities = {name.replace("_", "-"): value for name, value in known.items() if value is not None}
        together = {FOREGROUND: sum(self.kinds.values())} if self.kinds else {}
        return activities | together | self.kinds

    def _known_in_every_run(self, path: str) -> float | None:
        """Mean of a part that every run states; None if any run withholds it."""
        known = [of.value for of in self.numbers(path)]
        return None if None in known else self.number(path).value

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


def groups_by(by: tuple[str, ...], runs: Sequence[ComparedRun], sides: Mapping[int, str] | None) -> list[Group]:
    """The runs by their values of the axes `by`, or by side, in each stratum; in the campaign's order, else by name.

    Raises: BadInput: no run, or one group.
    """
    if not runs:
        raise BadInput("there is no run with a result to compare")
    apart = sorted({axis for run in runs for axis in run.condition} - set(by))
    by_group: dict[tuple[tuple[str, ...], str], list[ComparedRun]] = {}
    for number, run in enumerate(runs):
        name = sides[number] if sides else " ".join(run.value(axis) for axis in by)
        by_group.setdefault((tuple(run.value(axis) for axis in apart), name), []).append(run)
    ranks: dict[tuple[str, ...] | str, int] = {}
    for parts, members in by_group.items():
        rank = min(run.rank for run in members)
        for part in parts:
            ranks[part] = min(rank, ranks.get(part, rank))

    def place(at: tuple[tuple[str, ...], str]) -> list[object]:
        values, name = at
        of_values = ranks[values], [value_order(value) for value in values]
        return [*of_values, ranks[name], name != BEFORE, value_order(name)]

    axes = apart if by == (SIDE,) else [*apart, *by]
    among = {axis: {run.value(axis) for run in runs} for axis in axes}
    groups = [
        Group(dict(zip(apart, at[0], strict=True)), by_group[at], at[1], by, among)
        for at in sorted(by_group, key=place)
    ]
    names = {group.name for group in groups}
    if len(names) < 2:
        what = f"--by {','.join(by)}" if by != (SIDE,) else "--before and --after"
        raise BadInput(f"{what}: all runs with a result are of '{names.pop()}': there is nothing to compare it with")
    return groups


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


AXES: Final = ("db", MEDIUM, "device", "workload", "distribution", "value_size", "threads")
"""Axes in which runs may differ, besides those of their campaign. The first that differs gives the series, the others
the groups.
"""
ENERGY: Final = "marginal_energy_per_operation_j"
TOTAL: Final = "marginal_energy_j"
LONGEST: Final = 400
"""Maximum number of letters of a name in a figure; fonts take seconds to set a name of 100,000."""
SMALLEST_PART: Final = 1e-3
"""Share of a cell's energy above idle up to which a part is small."""


def _name(cell: ComparedCell, axes: Sequence[str]) -> str:
    """The values of some axes as a name; the middle of a very long one is left out."""
    name = ", ".join(cell.values[axis] for axis in axes)
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}...{name[-LONGEST // 2 :]}"


@dataclass(frozen=True)
class Plotted:
    """All cells, and the axes that arrange them."""

    cells: Sequence[ComparedCell]
    series_axes: Sequence[str]
    """Axes shown by colour, hatching and legend."""
    group_axes: Sequence[str]
    """Axes shown by position."""
    left_out: Sequence[str] = ()
    """Reasons why records are left out, one line each."""

    @property
    def runs(self) -> list[ComparedRun]:
        """Runs of all cells."""
        return [run for cell in self.cells for run in cell.runs]

    @cached_property
    def told(self) -> list[Definition]:
        """What an operation of each kind in any cell costs all told."""
        return told_by(self.runs)

    @property
    def warnings(self) -> str:
        """Warnings of all runs in one line, for a figure; empty without any."""
        return summary_of(cell.runs for cell in self.cells)

    @property
    def simulated(self) -> bool:
        """Whether the runs are simulated: either all are, or none is."""
        return self.cells[0].runs[0].simulated

    @cached_property
    def series(self) -> list[str]:
        """Names of the series, without duplicates, in order of the cells."""
        return list(dict.fromkeys(self.series_of(cell) for cell in self.cells))

    @cached_property
    def groups(self) -> list[str]:
        """Names of the groups, without duplicates, in order of the cells."""
        return list(dict.fromkeys(self.group_of(cell) for cell in self.cells))

    @cached_property
    def part_names(self) -> list[str]:
        """Parts of the energy above idle in all stacked bars, the remainder excepted: the same for every cell.

        A part is left out if it is small in every cell. Kinds of operations are one part if a cell has only their sum.
        """
        apart = all(cell.kinds for cell in self.cells if FOREGROUND in cell.parts)
        kinds = sorted({kind for cell in self.cells for kind in cell.kinds}) if apart else [FOREGROUND]
        names = [*kinds, *(name.replace("_", "-") for name in ACTIVITIES)]
        return [name for name in names if any(self._is_seen(cell, name) for cell in self.cells)]

    def _is_seen(self, cell: ComparedCell, name: str) -> bool:
        total = cell.number(TOTAL).value
        return total is not None and abs(cell.parts.get(name, 0.0)) > SMALLEST_PART * abs(total)

    @cached_property
    def stacks(self) -> list[dict[str, float]]:
        """Energy above idle of each cell by part [J], in the order of `part_names`; the rest is `not identifiable`.

        A part that a cell does not state is not in its stack. The stack of a cell without a total is empty.
        """
        stacks = []
        for cell in self.cells:
            total = cell.number(TOTAL).value
            known = {name: cell.parts[name] for name in self.part_names if name in cell.parts}
            rest = {} if total is None else {NOT_IDENTIFIABLE: total - sum(known.values())}
            stacks.append({**known, **rest} if rest else {})
        return stacks

    def series_of(self, cell: ComparedCell) -> str:
        """The series that a cell belongs to."""
        return _name(cell, self.series_axes)

    def group_of(self, cell: ComparedCell) -> str:
        """The group that a cell belongs to."""
        return _name(cell, self.group_axes)

    def name_of(self, cell: ComparedCell) -> str:
        """Name of a cell: series and group."""
        return ", ".join(name for name in (self.series_of(cell), self.group_of(cell)) if name)

    def cell(self, series: str, group: str) -> ComparedCell | None:
        """The cell of a series in a group; None if there is no run of it."""
        matching = (cell for cell in self.cells if (self.series_of(cell), self.group_of(cell)) == (series, group))
        return next(matching, None)


def plotted(
    runs: Iterable[ComparedRun],
    left_out: Iterable[str] = (),
    words: Callable[[ComparedRun, str], str] = ComparedRun.words,
    axes: Sequence[str] = (),
) -> Plotted:
    """Groups runs into cells by their settings. The values of an axis have one order: the campaign's, else by name.

    Args:
        left_out: reasons why other records have no result, one line each.
        words: gives a run's value of an axis.
        axes: the only axes that distinguish cells; empty: AXES and those of the runs' campaigns.
    Raises: BadInput: no run of a workload, or simulated and real runs mixed.
    """
    runs = list(runs)
    of_workloads = [run for run in runs if not run.trace_only]
    without = [*left_out, *(f"{run.place}: no workload was run" for run in runs if run.trace_only)]
    if not of_workloads:
        raise BadInput(f"no run with a result to draw: {'; '.join(without[:3]) or 'no record'}")
    if len({run.simulated for run in of_workloads}) > 1:
        raise BadInput("simulated and measured runs cannot share a figure: name runs of one kind only")
    axes = axes or [*dict.fromkeys([*AXES, *(axis for run in of_workloads for axis in run.condition)])]
    cells: dict[tuple[str, ...], list[ComparedRun]] = {}
    for run in of_workloads:
        cells.setdefault(tuple(words(run, axis) for axis in axes), []).append(run)
    made = [ComparedCell(dict(zip(axes, values, strict=True)), cell_runs) for values, cell_runs in cells.items()]
    of_campaign = [axis for run in of_workloads for axis in run.condition if axis in axes]
    ranks = {axis: _ranks(made, axis) for axis in dict.fromkeys([*of_campaign, *axes])}
    made.sort(key=lambda cell: [of_axis[cell.values[axis]] for axis, of_axis in ranks.items()])
    varying = [axis for axis in axes if len({cell.values[axis] for cell in made}) > 1] or ["db"]
    groups = varying[1:] or [axis for axis in (MEDIUM, "device") if axis not in varying][:1]
    return Plotted(made, varying[:1], groups, without)


def _ranks(cells: Sequence[ComparedCell], axis: str) -> dict[str, int]:
    """Value of an axis -> its place among the axis's values."""
    first: dict[str, int] = {}
    for cell in cells:
        value, rank = cell.values[axis], min(run.rank for run in cell.runs)
        first[value] = min(rank, first.get(value, rank))
    ordered = sorted(first, key=lambda value: (first[value], value_order(value)))
    return {value: at for at, value in enumerate(ordered)}


def check_drawable(layout: Plotted, although: Iterable[str] = ()) -> list[str]:
    """Checks that cells differ only in the axes that arrange them, as `check_comparable` does."""
    runs = [cell.runs for cell in layout.cells]
    return check_comparable([runs], [*layout.series_axes, *layout.group_axes], although, cells=True)


def known(cells: Iterable[ComparedCell], path: str) -> list[float]:
    """Values of a number in the cells that have it."""
    values = [cell.number(path).value for cell in cells]
    return [float(value) for value in values if value is not None]
