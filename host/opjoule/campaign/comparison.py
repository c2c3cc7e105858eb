"""Several conditions side by side: one table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from opjoule.campaign.index import (
    ConditionRun,
    Difference,
    compared_by,
    differences_of,
    means_of,
    names_of,
    read_index,
)
from opjoule.report.quantities import NONE
from opjoule.report.rounding import rounded
from opjoule.units import Measured, Missing

SIDE_BY_SIDE_MAX = 4
"""Conditions that have room beside each other on a terminal."""


def cells(runs: Sequence[ConditionRun]) -> list[tuple[str, list[str]]]:
    """The table: each quantity's words, and its value in each condition, rounded and with its unit."""
    means = [means_of(runs, name) for name in names_of(runs)]
    lines = [("runs with a result", [_count(runs, name) for name in names_of(runs)])]
    return lines + [(each.label, [_cell(mean[each.key]) for mean in means]) for each in compared_by(runs)]


def _marked(simulated: bool) -> str:
    return " (SIMULATED)" if simulated else ""


def _count(runs: Sequence[ConditionRun], name: str) -> str:
    """Blocks with a result, of all: a run that was cut off and measured again is one block."""
    own = [each for each in runs if each.name == name]
    with_result = {each.block for each in own if each.result is not None}
    return f"{len(with_result)} of {len({each.block for each in own})}"


def _cell(number: Mapping[str, Any]) -> str:
    if number["value"] is None:
        return NONE
    return str(rounded(number["value"], number["u"], number["unit"]))


def difference_cells(runs: Sequence[ConditionRun]) -> list[tuple[str, list[str]]]:
    """The second table: by how much each condition but the first differs from it, in each quantity."""
    base, *others = names_of(runs)
    found = [differences_of(runs, name, base) for name in others]
    return [
        (each.label, [_difference_cell(of[each.key]) for of in found])
        for each in compared_by(runs)
        if any(isinstance(of[each.key].ratio, Measured) for of in found)
    ]


def _difference_cell(found: Difference) -> str:
    if isinstance(found.ratio, Missing):
        return NONE
    change = rounded(100 * (found.ratio.value - 1), 100 * found.ratio.u, "%")
    verdict = {True: ", different", False: ", not told apart", None: ", one run"}[found.differ]
    return f"{'+' if found.ratio.value > 1 else ''}{change}{verdict}"


def notes(runs: Sequence[ConditionRun]) -> list[str]:
    """Why a run has no result, or came to its end with faults; one line each."""
    lines = []
    if any(each.result for each in runs) and max(each.block for each in runs) == 1:
        lines.append("one run of each: the spread between runs is not in these intervals (--repeats)")
    for each in runs:
        if each.result is None:
            lines.append(f"{each.folder} (block {each.block}, {each.name}): no result: {each.why}")
        elif each.status != "complete":
            lines.append(f"{each.folder} (block {each.block}, {each.name}): {each.status}")
    return lines


def print_comparison(directory: Path, console: Console | None = None) -> None:
    """Prints the table of all conditions, why a run is missing from it, and where everything is.

    Raises: RecordFault: no readable index.
    """
    runs, simulated = read_index(directory)
    console = console or Console(highlight=False, markup=False)
    if len(names_of(runs)) > SIDE_BY_SIDE_MAX:
        _print_many(runs, directory, console, simulated=simulated)
        return
    shown = Table(f"mean of blocks{_marked(simulated)}, k = 2", *names_of(runs), box=None)
    for title, values in cells(runs):
        shown.add_row(title, *values)
    console.print(shown)
    if differences := difference_cells(runs):
        base, *others = names_of(runs)
        apart = Table(f"against {base}{_marked(simulated)}, 95 %", *others, box=None)
        for title, values in differences:
            apart.add_row(title, *values)
        console.print(apart)
    for line in notes(runs):
        console.print(line, soft_wrap=True)
    console.print(f"records    {directory}", soft_wrap=True)
    console.print(f"report     {directory / 'report.html'}", soft_wrap=True)


def _print_many(runs: Sequence[ConditionRun], directory: Path, console: Console, *, simulated: bool) -> None:
    """A line for each condition, with its headline alone, and how to compare them."""
    compared = compared_by(runs)
    heading = compared[0].label if compared else ""
    shown = Table(f"mean of blocks{_marked(simulated)}, k = 2", "with a result", heading, box=None)
    for name in names_of(runs):
        values = [_cell(means_of(runs, name)[compared[0].key])] if compared else []
        shown.add_row(name, _count(runs, name), *values)
    console.print(shown)
    for line in notes(runs):
        console.print(line, soft_wrap=True)
    axes = ", ".join(dict.fromkeys(axis for each in runs for axis in each.condition))
    console.print(f"records    {directory}", soft_wrap=True)
    console.print(f"report     {directory / 'report.html'}", soft_wrap=True)
    console.print(f"compare    host/compare.py {directory} --by AXIS, of {axes}", soft_wrap=True)
