"""Several conditions side by side: the terminal's output at the end of a campaign."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Console
from rich.table import Table

from opjoule.comparison.cell_mean import cell_mean
from opjoule.comparison.compared_run import ComparedRun
from opjoule.comparison.contrasts import Compared, Question, compare, judged_together
from opjoule.comparison.costs import costs, time_beside
from opjoule.comparison.index import (
    COMPLETE,
    ConditionRun,
    compared_by,
    means_of,
    measured_again,
    names_of,
    read_index,
    with_result,
)
from opjoule.comparison.plotted import Plotted, check_drawable, plotted
from opjoule.comparison.run_warnings import RunWarning, print_above, warnings_of
from opjoule.comparison.unbroken import print_unbroken
from opjoule.comparison.value_words import quantity_words
from opjoule.comparison.winners import conclusions
from opjoule.errors import OpJouleError
from opjoule.opened.quantities import quantity_text
from opjoule.scripts import program
from opjoule.units import from_json


@dataclass(frozen=True)
class Answers:
    """The comparisons of some runs."""

    compared: Sequence[Compared]
    """One for each axis with several values, the comparison with the fewest strata first."""
    cells: Plotted | None
    """All cells; None without a run that can be drawn."""
    refused: str
    """Reason why the cells must not be in one figure; empty if they may."""
    troubles: Sequence[str]
    """Reasons why an axis is not compared or the cells are not drawn, and notes of the comparisons."""

    @property
    def warnings(self) -> list[RunWarning]:
        """Warnings of all runs."""
        return warnings_of(cell.runs for cell in self.cells.cells) if self.cells else []

    @cached_property
    def conclusions(self) -> list[str]:
        """Lines that answer the question: winners by each axis, then what they depend on."""
        return conclusions(self.compared)


def answers_of(runs: Sequence[ComparedRun]) -> Answers:
    """The comparisons of the runs of a campaign that have a result."""
    troubles: list[str] = []
    cells, refused = None, ""
    try:
        cells = plotted(runs)
        check_drawable(cells)
    except OpJouleError as error:
        refused = str(error) if cells else ""
        troubles.append(str(error))
    compared: list[Compared] = []
    for axis in dict.fromkeys(axis for run in runs for axis in run.condition):
        if len({run.condition[axis] for run in runs if axis in run.condition}) > 1:
            try:
                compared.append(compare(runs, Question((axis,))))
            except OpJouleError as error:
                troubles.append(f"by {axis}: {error}")
    compared = sorted(
        judged_together(compared),
        key=lambda one: len({tuple(group.stratum.items()) for group in one.groups}),
    )
    troubles += [line for comparison in compared for line in comparison.notes]
    return Answers(compared, cells, refused, list(dict.fromkeys(troubles)))


SIDE_BY_SIDE_MAX = 4
"""Greatest number of conditions side by side on a terminal."""


def cells(runs: Sequence[ConditionRun]) -> list[tuple[str, list[str]]]:
    """Rows of the table: each quantity's words, and its value in each condition, rounded and with its unit."""
    means = [means_of(runs, name) for name in names_of(runs)]
    lines = [("runs with a result", [_count(runs, name) for name in names_of(runs)])]
    for quantity in compared_by(runs):
        lines.append(
            (quantity_words(quantity), [quantity_text(from_json(mean[quantity.key])) for mean in means])
        )
    return lines


def _count(runs: Sequence[ConditionRun], name: str) -> str:
    """Number of blocks with a result, of all blocks; a run that was interrupted and repeated counts as one block."""
    condition_runs = [run for run in runs if run.name == name]
    with_result = {run.block for run in condition_runs if run.run}
    return f"{len(with_result)} of {len({run.block for run in condition_runs})}"


def notes(runs: Sequence[ConditionRun]) -> list[str]:
    """One line for each run that has no result or ended with faults."""
    lines = []
    again = measured_again(runs)
    for run in runs:
        if run.run and run.status == COMPLETE:
            continue
        outcome = run.status if run.run else f"no result: {run.why}"
        counted_as = f"; measured again as {again[run.folder]}" if run.folder in again else ""
        lines.append(f"{run.folder} (block {run.block}, {run.name}): {outcome}{counted_as}")
    return lines


def print_comparison(directory: Path) -> None:
    """Prints the warnings, the conclusions, the table of all conditions, reasons for missing runs, and file locations.

    Raises: RecordFault: no readable index.
    """
    runs, simulated = read_index(directory)
    console = Console(highlight=False, markup=False)
    answers = answers_of(with_result(runs))
    print_above(console, answers.warnings, answers.conclusions, simulated=simulated)
    if len(names_of(runs)) > SIDE_BY_SIDE_MAX:
        columns, rows = _by_condition(runs)
    else:
        columns, rows = names_of(runs), cells(runs)
    mark = " (SIMULATED)" if simulated else ""
    shown = Table("", *columns, box=None, title=f"means of the blocks{mark}, 95 %")
    shown.title_justify = "left"
    for title, values in rows:
        shown.add_row(title, *values)
    print_unbroken(console, shown)
    axes = ", ".join(dict.fromkeys(axis for run in runs for axis in run.condition))
    for line in (
        *notes(runs),
        f"records    {directory}",
        f"report     {directory / 'report.html'}",
        f"compare    {program('compare')} {directory} --by AXIS, of {axes}",
    ):
        console.print(line, soft_wrap=True)


def _by_condition(runs: Sequence[ConditionRun]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Columns and rows of a table with one line per condition: the costs of the work and its time."""
    tables = [run.run.quantities for run in runs if run.run][:1]
    shown = [of for table in tables for of in (*costs(table), time_beside(table)) if of]
    rows = []
    for name in names_of(runs):
        results = [run.numbers for run in with_result([run for run in runs if run.name == name])]
        values = [quantity_text(from_json(cell_mean(results, quantity))) for quantity in shown]
        rows.append((name, [_count(runs, name), *values]))
    return ["with a result", *map(quantity_words, shown)], rows
