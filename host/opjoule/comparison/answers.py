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
        return warnings_of(each.runs for each in self.cells.cells) if self.cells else []

    @cached_property
    def conclusions(self) -> list[str]:
        """The lines that answer the question: winners by each axis, then what decides."""
        winners = [line for each in self.compared for line in winner_lines(each)]
        return list(dict.fromkeys([*winners, *deciding_lines(self.compared)]))


def answers_of(folder: Path) -> Answers:
    """The comparisons of a folder with an index.

    Raises: RecordFault: no readable index.
    """
    try:
        found, _ = gather([str(folder)])
    except BadInput:  # no run has left a record; the index says why
        found = []
    troubles: list[str] = []
    cells, refused = None, ""
    try:
        cells = plotted(found)
        check_drawable(cells)
    except OpJouleError as error:
        refused = str(error) if cells else ""
        troubles.append(str(error))
    compared: list[Compared] = []
    for axis, values in _axes(found).items():
        if len(values) > 1:
            try:
                compared.append(compare(found, Question((axis,))))
            except OpJouleError as error:
                troubles.append(f"by {axis}: {error}")
    compared = sorted(
        judged_together(compared),
        key=lambda one: len({tuple(each.stratum.items()) for each in one.groups}),
    )
    troubles += [line for each in compared for line in each.notes]
    return Answers(found, compared, cells, refused, list(dict.fromkeys(troubles)))


def _axes(runs: Sequence[ComparedRun]) -> Mapping[str, set[str]]:
    """Axis -> the values that runs with a result have."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for axis, value in run.condition.items():
            found.setdefault(axis, set()).add(value)
    return found
