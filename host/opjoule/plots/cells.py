"""What is plotted: the runs of each combination of settings as one cell, with the means of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from opjoule.analysis.run_list import find_runs
from opjoule.campaign.index import mean_number
from opjoule.errors import BadInput
from opjoule.record.run import Run
from opjoule.report.answer import Answer, open_answer
from opjoule.units import Quantity, from_json

AXES: Final[Mapping[str, Callable[[Answer], str]]] = {
    "db": lambda of: of.wording.subject(of.run),
    "storage": lambda of: of.subject.storage,
    "device": lambda of: of.run.asked.device or "",
    "workload": lambda of: of.run.asked.workload or "",
    "distribution": lambda of: _distribution(of.run),
    "value size": lambda of: _value_bytes(of.run),
    "threads": lambda of: str(of.run.asked.threads or ""),
}
"""What runs can differ in, in words; the first that differs tells bars apart, the second their groups."""


@dataclass(frozen=True)
class PlottedCell:
    """The runs that share all settings."""

    values: Mapping[str, str]
    """Axis -> value."""
    runs: Sequence[Answer]

    def number(self, path: str) -> Quantity:
        """The mean over the runs of a number of result.json."""
        found = [each.quantity(path) for each in self.runs]
        return from_json(mean_number([{name: getattr(of, name, None) for name in _FIELDS} for of in found]))

    @cached_property
    def kinds(self) -> list[str]:
        """Kinds of operation that its runs did."""
        return sorted({kind for run in self.runs for kind in run.result.get("by_operation") or {}})


_FIELDS: Final = ("value", "u", "unit", "reason")


@dataclass(frozen=True)
class Plotted:
    """All cells, and which axes they are laid out by."""

    cells: Sequence[PlottedCell]
    series_axes: Sequence[str]
    """Told apart by colour, hatching and legend."""
    group_axes: Sequence[str]
    """Told apart by place."""
    left_out: Sequence[str] = ()
    """Why records are not among them, a line each."""

    @property
    def simulated(self) -> bool:
        """They all are, or none is."""
        return self.cells[0].runs[0].record.simulated

    @property
    def series(self) -> list[str]:
        """Names of the series, each once, in order of the records."""
        return list(dict.fromkeys(self.series_of(cell) for cell in self.cells))

    @property
    def groups(self) -> list[str]:
        """Names of the groups, each once, in order of the records."""
        return list(dict.fromkeys(self.group_of(cell) for cell in self.cells))

    def series_of(self, cell: PlottedCell) -> str:
        """The series that a cell belongs to."""
        return ", ".join(cell.values[axis] for axis in self.series_axes)

    def group_of(self, cell: PlottedCell) -> str:
        """The group that a cell stands in."""
        return ", ".join(cell.values[axis] for axis in self.group_axes)

    def cell(self, series: str, group: str) -> PlottedCell | None:
        """The cell of a series in a group; None where there is no run of it."""
        found = (
            each for each in self.cells if (self.series_of(each), self.group_of(each)) == (series, group)
        )
        return next(found, None)


def plotted(places: Sequence[Path]) -> Plotted:
    """The runs in or below some places, by their settings.

    Raises: BadInput: no record with a result, or simulated ones with real ones.
    """
    cells: dict[tuple[str, ...], list[Answer]] = {}
    left_out: list[str] = []
    for each in find_runs(places):
        answer = None if each.why else open_answer(each.path)
        if answer is None or not answer.result or answer.trace_only:
            left_out.append(
                f"{each.path}: {each.why or (answer and answer.problem) or 'no workload was run'}"
            )
            continue
        cells.setdefault(tuple(axis(answer) for axis in AXES.values()), []).append(answer)
    if not cells:
        raise BadInput(
            f"no run with a result in {', '.join(map(str, places))}: {'; '.join(left_out[:3]) or 'no record'}"
        )
    if len({answer.record.simulated for runs in cells.values() for answer in runs}) > 1:
        raise BadInput("simulated runs and measured ones do not stand in one figure: name places of one sort")
    made = [PlottedCell(dict(zip(AXES, values, strict=True)), runs) for values, runs in sorted(cells.items())]
    varying = [axis for axis in AXES if len({cell.values[axis] for cell in made}) > 1] or ["db"]
    groups = varying[1:] or [axis for axis in ("storage", "device") if axis not in varying][:1]
    return Plotted(made, varying[:1], groups, left_out)


def numbers(cells: Iterable[PlottedCell], path: str) -> list[float]:
    """The values of a number in those cells that have it."""
    found = [cell.number(path).value for cell in cells]
    return [float(value) for value in found if value is not None]


def _distribution(run: Run) -> str:
    return run.summary.workload.get("requestdistribution") or run.asked.distribution or ""


def _value_bytes(run: Run) -> str:
    """Fields times their length, as the workload had them."""
    own = run.summary.workload
    try:
        return f"{int(own['fieldcount']) * int(own['fieldlength'])} B"
    except (KeyError, ValueError):
        return ""
