"""Cells of a figure: the runs of each combination of settings, with the means of their numbers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.base.names import MEDIUM
from opjoule.base.units import Quantity, missing, unstated
from opjoule.results.comparison.cell import ComparedCell
from opjoule.results.comparison.compared_run import ComparedRun, check_comparable, told_by
from opjoule.results.comparison.run_warnings import summary_of
from opjoule.results.comparison.value_words import value_order
from opjoule.results.long_table import NOT_IDENTIFIABLE, part_text
from opjoule.runs.evaluation.quantities.definition import Definition

AXES: Final = ("db", MEDIUM, "device", "workload", "distribution", "value_size", "threads")
"""Axes in which runs may differ, besides those of their campaign. The first that differs gives the series, the others
the groups.
"""
ENERGY: Final = "marginal_energy_per_operation_j"
THROUGHPUT: Final = "throughput_per_s"
TOTAL: Final = "marginal_energy_j"
FOREGROUND: Final = "foreground"
"""All kinds of operation together."""
ACTIVITIES: Final = ("harness", "flush", "compaction", "checkpoint", "sync", "write_back", "tail")
LONGEST: Final = 400
"""Maximum number of letters of a name in a figure; fonts take seconds to set a name of 100,000."""
SMALLEST_PART: Final = 1e-3
"""Share of a cell's energy above idle up to which a part is small."""


@dataclass(frozen=True)
class PlottedCell(ComparedCell):
    """A cell of a figure."""

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


def _name(cell: PlottedCell, axes: Sequence[str]) -> str:
    """The values of some axes as a name; the middle of a very long one is left out."""
    name = ", ".join(cell.values[axis] for axis in axes)
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}...{name[-LONGEST // 2 :]}"


@dataclass(frozen=True)
class Plotted:
    """All cells, and the axes that arrange them."""

    cells: Sequence[PlottedCell]
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

    def _is_seen(self, cell: PlottedCell, name: str) -> bool:
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

    def series_of(self, cell: PlottedCell) -> str:
        """The series that a cell belongs to."""
        return _name(cell, self.series_axes)

    def group_of(self, cell: PlottedCell) -> str:
        """The group that a cell belongs to."""
        return _name(cell, self.group_axes)

    def name_of(self, cell: PlottedCell) -> str:
        """Name of a cell: series and group."""
        return ", ".join(name for name in (self.series_of(cell), self.group_of(cell)) if name)

    def cell(self, series: str, group: str) -> PlottedCell | None:
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
    made = [PlottedCell(dict(zip(axes, values, strict=True)), cell_runs) for values, cell_runs in cells.items()]
    of_campaign = [axis for run in of_workloads for axis in run.condition if axis in axes]
    ranks = {axis: _ranks(made, axis) for axis in dict.fromkeys([*of_campaign, *axes])}
    made.sort(key=lambda cell: [of_axis[cell.values[axis]] for axis, of_axis in ranks.items()])
    varying = [axis for axis in axes if len({cell.values[axis] for cell in made}) > 1] or ["db"]
    groups = varying[1:] or [axis for axis in (MEDIUM, "device") if axis not in varying][:1]
    return Plotted(made, varying[:1], groups, without)


def _ranks(cells: Sequence[PlottedCell], axis: str) -> dict[str, int]:
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


def known(cells: Iterable[PlottedCell], path: str) -> list[float]:
    """Values of a number in the cells that have it."""
    values = [cell.number(path).value for cell in cells]
    return [float(value) for value in values if value is not None]
