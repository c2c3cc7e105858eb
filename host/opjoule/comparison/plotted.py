"""Cells of a figure: the runs of each combination of settings, with the means of their numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from opjoule.comparison.cell_mean import cell_mean
from opjoule.comparison.compared_run import ComparedRun, check_comparable
from opjoule.comparison.run_warnings import summary_of
from opjoule.errors import BadInput
from opjoule.evaluation.quantities.definition import Definition, Topic
from opjoule.opened.quantities import by_kind, quantity
from opjoule.units import Measured, Missing, Quantity, Unstated, from_json

AXES: Final = ("db", "storage", "device", "workload", "distribution", "value_size", "threads")
"""Axes in which runs may differ, besides those of their campaign. The first that differs gives the series, the others
the groups.
"""
ENERGY: Final = "marginal_energy_per_operation_j"
THROUGHPUT: Final = "throughput_per_s"
TOTAL: Final = "marginal_energy_j"
ACTIVITIES: Final = ("harness", "flush", "compaction", "checkpoint", "sync", "write_back", "tail")
NOT_IDENTIFIABLE: Final = "not identifiable"


@dataclass(frozen=True)
class PlottedCell:
    """Runs with the same settings."""

    values: Mapping[str, str]
    """Axis -> value."""
    runs: Sequence[ComparedRun]

    def numbers(self, path: str) -> list[Quantity]:
        """A number of result.json in each run."""
        return [quantity(run.numbers, path) for run in self.runs]

    def number(self, path: str) -> Quantity:
        """The mean over the runs of a number of result.json."""
        known = self.runs[0].quantities.get(path)
        return from_json(
            cell_mean([run.numbers for run in self.runs], known or Definition(path, "", Topic.PART))
        )

    @property
    def delay(self) -> Quantity:
        """Seconds per operation: the reciprocal of the throughput, to first order."""
        rate = self.number(THROUGHPUT)
        if not rate.value:
            return Missing("no throughput", "s")
        if isinstance(rate, Measured):
            return Measured(1.0 / rate.value, rate.u / rate.value**2, "s")
        return Unstated(1.0 / rate.value, "s", rate.reason)

    @cached_property
    def parts(self) -> dict[str, float]:
        """Energy above idle of each known part [J]; the remainder is `not identifiable`."""
        total = self.number(TOTAL).value
        if total is None:
            return {}
        joules = self._foreground()
        for name in ACTIVITIES:
            value = self._known_in_every_run(f"by_activity.{name}")
            if value is not None:
                joules[name.replace("_", "-")] = value
        joules[NOT_IDENTIFIABLE] = total - sum(joules.values())
        return {name: value for name, value in joules.items() if abs(value) > 1e-3 * abs(total)}

    def _known_in_every_run(self, path: str) -> float | None:
        """Mean of a part that every run states; None if any run withholds it."""
        known = [of.value for of in self.numbers(path)]
        return None if None in known else self.number(path).value

    def _foreground(self) -> dict[str, float]:
        """Parts by kind if every kind is known, otherwise all kinds as one if that is known."""
        joules: dict[str, float] = {}
        for kind in sorted({kind for run in self.runs for kind in by_kind(run.numbers)}):
            energy_j = self._known_in_every_run(f"by_operation.{kind}.energy_per_operation_j")
            count = self._known_in_every_run(f"by_operation.{kind}.count")
            if energy_j is None or count is None:
                joules.clear()
                break
            joules[kind] = energy_j * count
        if joules:
            return joules
        whole = self._known_in_every_run("by_activity.foreground")
        return {} if whole is None else {"foreground": whole}


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

    def series_of(self, cell: PlottedCell) -> str:
        """The series that a cell belongs to."""
        return ", ".join(cell.values[axis] for axis in self.series_axes)

    def group_of(self, cell: PlottedCell) -> str:
        """The group that a cell belongs to."""
        return ", ".join(cell.values[axis] for axis in self.group_axes)

    def name_of(self, cell: PlottedCell) -> str:
        """Name of a cell: series and group."""
        return ", ".join(name for name in (self.series_of(cell), self.group_of(cell)) if name)

    def cell(self, series: str, group: str) -> PlottedCell | None:
        """The cell of a series in a group; None if there is no run of it."""
        matching = (
            cell for cell in self.cells if (self.series_of(cell), self.group_of(cell)) == (series, group)
        )
        return next(matching, None)


def plotted(
    runs: Iterable[ComparedRun],
    left_out: Iterable[str] = (),
    words: Callable[[ComparedRun, str], str] = ComparedRun.words,
    axes: Sequence[str] = (),
) -> Plotted:
    """Groups runs into cells by their settings, in the campaign's order, else by name.

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
    ordered = sorted(cells.items(), key=lambda item: (min(run.rank for run in item[1]), item[0]))
    made = [PlottedCell(dict(zip(axes, values, strict=True)), cell_runs) for values, cell_runs in ordered]
    varying = [axis for axis in axes if len({cell.values[axis] for cell in made}) > 1] or ["db"]
    groups = varying[1:] or [axis for axis in ("storage", "device") if axis not in varying][:1]
    return Plotted(made, varying[:1], groups, without)


def check_drawable(layout: Plotted, although: Iterable[str] = ()) -> list[str]:
    """Checks that cells differ only in the axes that arrange them, as `check_comparable` does."""
    runs = [cell.runs for cell in layout.cells]
    return check_comparable([runs], [*layout.series_axes, *layout.group_axes], although, cells=True)


def known(cells: Iterable[PlottedCell], path: str) -> list[float]:
    """Values of a number in the cells that have it."""
    values = [cell.number(path).value for cell in cells]
    return [float(value) for value in values if value is not None]
