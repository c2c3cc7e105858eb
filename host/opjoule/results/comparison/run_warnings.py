"""Warnings of a set of runs (too short, single run, faults, waits, notes), for all outputs based on them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from opjoule.results.answer import Answer, Banner
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.unsteady_cells import in_order_of_measuring, unsteady_lines
from opjoule.runs.record.result import BUSY, UNSTEADY, says_too_short, says_waited, stands_in_for

SHORT_TITLE: Final = "TOO SHORT"
SINGLE_TITLE: Final = "ONE RUN"
WAITED_TITLE: Final = "WAITED"
CELL_TITLE: Final = "UNSTEADY CELL"
_UNSTEADY_TITLES: Final = {BUSY: "BUSY COMPUTER", UNSTEADY: "UNSTEADY REPEATS"}
"""First words of a warning -> its title."""
SIMULATED: Final = "no board was measured; the joules come from a power model of board and medium."
_SINGLE: Final = (
    "{single} of {all} cells rest on a single run. How much runs differ is unknown there and is missing from the "
    "intervals (--repeats)."
)
_NUMBER: Final = re.compile(r"[0-9][0-9.,e+-]*")


WarnedRun = ComparedRun | Answer


@dataclass(frozen=True)
class RunWarning:
    """A warning, with all runs that have it."""

    kind: str
    """Class of its banner on a page."""
    title: str
    text: str
    """Text of the first run; the others' texts differ in their numbers."""
    runs: tuple[str, ...]
    """Names of the records; empty for a warning about cells."""

    def __str__(self) -> str:
        return f"{self.title}: {self.words}"

    @property
    def words(self) -> str:
        """The text with the runs that have the warning."""
        if not self.runs:
            return self.text
        more = {1: "", 2: " and 1 more run"}.get(len(self.runs), f" and {len(self.runs) - 1} more runs")
        return f"{self.runs[0]}{more}: {self.text}"


def print_above(console: Console, warnings: Iterable[RunWarning], lines: Iterable[str], *, simulated: bool) -> None:
    """Prints warnings above some lines; none is wrapped."""
    mark = [f"SIMULATED: {SIMULATED}"] if simulated else []
    for line in (*mark, *(f"WARNING  {warning}" for warning in warnings), *lines):
        console.print(line, soft_wrap=True)


def is_single(runs: Sequence[WarnedRun]) -> bool:
    """Whether a cell has only one run of one repeat."""
    return len(runs) == 1 and (runs[0].repeats or 1) < 2


def warnings_of(cells: Iterable[Sequence[WarnedRun]]) -> list[RunWarning]:
    """Every warning of the runs of some cells once, the gravest first."""
    known = [list(cell) for cell in cells if cell]
    by_text: dict[tuple[str, str], tuple[Banner, dict[str, None]]] = {}
    for run in (run for runs in known for run in runs):
        for banner in run.warnings:
            key = banner.title, _NUMBER.sub("#", banner.text)
            by_text.setdefault(key, (banner, {}))[1][run.place.name] = None
    made = []
    for banner, runs in by_text.values():
        title = SHORT_TITLE if says_too_short(banner.text) else banner.title
        if says_waited(banner.text):
            title = WAITED_TITLE
        for begins, named in _UNSTEADY_TITLES.items():
            title = named if banner.text.lower().startswith(begins) else title
        if name := stands_in_for(banner.text):
            title = f"not {name}"
        made.append(RunWarning(banner.kind, title, banner.text, tuple(runs)))
    for cell in known:
        in_order = in_order_of_measuring(cell)
        names = tuple(run.place.name for run in in_order)
        made += [RunWarning("warning", CELL_TITLE, line, names) for line in unsteady_lines(in_order)]
    if single := sum(map(is_single, known)):
        text = _SINGLE.format(single=single, all=len(known))
        made.append(RunWarning("warning", SINGLE_TITLE, text, ()))
    order = ["PARTIAL", "FAILED", "WITH FAULTS", SHORT_TITLE, SINGLE_TITLE]
    return sorted(made, key=lambda warning: order.index(warning.title) if warning.title in order else len(order))


def marks_of(runs: Sequence[WarnedRun]) -> list[str]:
    """Warnings of one cell in one or two words each, for a column of a table."""
    return list(dict.fromkeys(warning.title.lower() for warning in warnings_of([runs])))


def summary_of(cells: Iterable[Sequence[WarnedRun]]) -> str:
    """One line for a figure: each kind of warning with the number of its runs; empty without a warning."""
    known = [list(cell) for cell in cells if cell]
    count = len({run.place for runs in known for run in runs})
    runs_of: dict[str, set[str]] = {}
    for warning in warnings_of(known):
        runs_of.setdefault(warning.title, set()).update(warning.runs)
    parts = [
        f"{title.lower()}: {sum(map(is_single, known))} of {len(known)} cells"
        if title == SINGLE_TITLE
        else f"{title.lower() if title.isupper() else title}: {len(names)} of {count} runs"
        for title, names in runs_of.items()
    ]
    return f"WARNING  {'; '.join(parts)}" if parts else ""
