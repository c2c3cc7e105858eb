"""Several conditions side by side: the terminal's output at the end of a campaign."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from rich.table import Table

from opjoule.base.errors import OpJouleError
from opjoule.base.notices import Notice
from opjoule.base.scripts import program
from opjoule.base.terminal import print_unbroken, terminal
from opjoule.results.comparison.cell import Plotted, check_drawable, plotted
from opjoule.results.comparison.compared_run import ComparedRun, costs, kind_of, time_beside, told_by
from opjoule.results.comparison.conclusion import print_compared, ratios, to_json
from opjoule.results.comparison.contrasts import Compared, Question, compare, judged_together
from opjoule.results.comparison.index import (
    COMPLETE,
    ConditionRun,
    cell_of,
    compared_by,
    measured_again,
    names_of,
    read_index,
    with_result,
)
from opjoule.results.comparison.run_warnings import print_above, warnings_of
from opjoule.results.comparison.value_words import quantity_words
from opjoule.results.comparison.winners import conclusions
from opjoule.results.long_table import part_text
from opjoule.runs.evaluation.quantities.definition import Definition
from opjoule.runs.studies.definition import COMMAND


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
    def warnings(self) -> list[Notice]:
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
    of_names = [cell_of(runs, name) for name in names_of(runs)]
    counted = "runs with a result", [_count(runs, name) for name in names_of(runs)]
    means = [(quantity_words(of), [part_text(of.key, cell.mean(of)) for cell in of_names]) for of in compared_by(runs)]
    return [counted, *means]


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
    console = terminal()
    answers = answers_of(with_result(runs))
    print_above(console, answers.warnings, answers.conclusions, simulated=simulated)
    mark = f"{' (SIMULATED)' if simulated else ''}, 95 %"
    if len(names_of(runs)) > SIDE_BY_SIDE_MAX:
        print_unbroken(console, _by_condition(runs, f"means of the blocks{mark}", _costs_and_time(runs)))
        if told := told_by(with_result(runs)):
            by_kind = {kind_of(of): of for of in told}
            print_unbroken(console, _by_condition(runs, f"all told{mark}", by_kind))
    else:
        shown = Table("", *names_of(runs), box=None, title=f"means of the blocks{mark}", title_justify="left")
        for words, values in cells(runs):
            shown.add_row(words, *values)
        print_unbroken(console, shown)
        for compared in answers.compared:
            if any(map(compared.contrasts_of, compared.told)):
                title = f"all told, ratios by {', '.join(compared.question.by)}{mark}"
                by_kind = {kind_of(of): of for of in compared.told}
                print_unbroken(console, ratios(compared, title, by_kind))
    _print_places(directory, runs)


def _print_places(directory: Path, runs: Sequence[ConditionRun]) -> None:
    """Prints the reasons for missing runs, and where everything is."""
    axes = ", ".join(dict.fromkeys(axis for run in runs for axis in run.condition))
    for line in (
        *notes(runs),
        f"records    {directory}",
        f"report     {directory / 'report.html'}",
        f"compare    {program('compare')} {directory} --by AXIS, of {axes}",
    ):
        terminal().print(line, soft_wrap=True)


def _by_condition(runs: Sequence[ConditionRun], title: str, columns: Mapping[str, Definition]) -> Table:
    """A table with one line per condition; `columns`: heading -> quantity."""
    shown = Table("", "with a result", *columns, box=None, title=title, title_justify="left")
    for name in names_of(runs):
        values = [part_text(of.key, cell_of(runs, name).mean(of)) for of in columns.values()]
        shown.add_row(name, _count(runs, name), *values)
    return shown


def _costs_and_time(runs: Sequence[ConditionRun]) -> dict[str, Definition]:
    """Heading -> quantity of the costs of the work and its time; empty without a result."""
    tables = [run.run.quantities for run in runs if run.run][:1]
    return {quantity_words(of): of for table in tables for of in (*costs(table), time_beside(table)) if of}


OF_COMMANDS: Final = ("marginal_energy_j", "energy_j", "duration_s")
"""Quantities by which commands are compared."""


def compared_commands(directory: Path) -> tuple[Compared, list[ConditionRun]]:
    """The comparison of a folder's commands, the greater side of each pair first, and all its runs.

    Raises: OpJouleError: nothing to compare.
    """
    runs, _ = read_index(directory)
    compared = compare(with_result(runs), Question((COMMAND,), OF_COMMANDS))
    return replace(compared, contrasts=tuple(pair.greater_first for pair in compared.contrasts)), runs


def print_campaign(directory: Path) -> None:
    """Prints the answer of a folder of several conditions; of commands, their comparison by energy and time.

    Raises: RecordFault: no readable index.
    """
    runs, _ = read_index(directory)
    if not any(COMMAND in run.condition for run in runs):
        return print_comparison(directory)
    try:
        compared, runs = compared_commands(directory)
    except OpJouleError:  # fewer than two commands have a result: the table says what is there
        return print_comparison(directory)
    print_compared(compared)
    return _print_places(directory, runs)


def commands_json(directory: Path) -> str:
    """The comparison of a folder's commands as JSON. Raises: OpJouleError: nothing to compare."""
    return json.dumps(to_json(compared_commands(directory)[0]), indent=2)
