"""What a campaign's runs say: one comparison for each axis, judged together, with conclusions and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from opjoule.comparison.compared_run import ComparedRun, gather
from opjoule.comparison.contrasts import Compared, Question, compare, judged_together
from opjoule.comparison.deciding import deciding_lines
from opjoule.comparison.plotted import Plotted, check_drawable, plotted
from opjoule.comparison.run_warnings import RunWarning, warnings_of
from opjoule.comparison.winners import winner_lines
from opjoule.errors import BadInput, OpJouleError


@dataclass(frozen=True)
class Answers:
    """The comparisons of one folder."""

    runs: Sequence[ComparedRun]
    """Those with a result."""
    compared: Sequence[Compared]
    """One for each axis with several values, the one with the fewest strata first."""
    cells: Plotted | None
    """All cells; None without a run that can be drawn."""
    refused: str
    """Why the cells must not stand in one drawing; empty where they may."""
    troubles: Sequence[str]
    """Why an axis is not compared, or the cells are not drawn; notes of the comparisons."""

    @property
    def warnings(self) -> list[RunWarning]:
        """Those of all runs."""
        return warnings_of(cell.runs for cell in self.cells.cells) if self.cells else []

    @cached_property
    def conclusions(self) -> list[str]:
        """The lines that answer the question: winners by each axis, then what decides."""
        winners = [line for comparison in self.compared for line in winner_lines(comparison)]
        return list(dict.fromkeys([*winners, *deciding_lines(self.compared)]))


def answers_of(folder: Path) -> Answers:
    """The comparisons of a folder with an index.

    Raises: RecordFault: no readable index.
    """
    try:
        runs, _ = gather([str(folder)])
    except BadInput:  # no run has left a record; the index says why
        runs = []
    troubles: list[str] = []
    cells, refused = None, ""
    try:
        cells = plotted(runs)
        check_drawable(cells)
    except OpJouleError as error:
        refused = str(error) if cells else ""
        troubles.append(str(error))
    compared: list[Compared] = []
    for axis, values in _axes(runs).items():
        if len(values) > 1:
            try:
                compared.append(compare(runs, Question((axis,))))
            except OpJouleError as error:
                troubles.append(f"by {axis}: {error}")
    compared = sorted(
        judged_together(compared),
        key=lambda one: len({tuple(group.stratum.items()) for group in one.groups}),
    )
    troubles += [line for comparison in compared for line in comparison.notes]
    return Answers(runs, compared, cells, refused, list(dict.fromkeys(troubles)))


def _axes(runs: Sequence[ComparedRun]) -> Mapping[str, set[str]]:
    """Axis -> the values that runs with a result have."""
    values_by_axis: dict[str, set[str]] = {}
    for run in runs:
        for axis, value in run.condition.items():
            values_by_axis.setdefault(axis, set()).add(value)
    return values_by_axis
