"""Notices of a set of runs, for all outputs based on them."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from opjoule.base.notices import Notice, NoticeKind
from opjoule.results.answer import Answer
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.unsteady_cells import in_order_of_measuring, unsteady_lines

SIMULATED: Final = "no board was measured; the joules come from a power model of board and medium."
_SINGLE: Final = (
    "{single} of {all} cells rest on a single run. How much runs differ is unknown there and is missing from the "
    "intervals (--repeats)."
)

WarnedRun = ComparedRun | Answer


def print_above(console: Console, warnings: Iterable[Notice], lines: Iterable[str], *, simulated: bool) -> None:
    """Prints warnings above some lines; none is wrapped."""
    mark = [f"SIMULATED: {SIMULATED}"] if simulated else []
    for line in (*mark, *(f"WARNING  {warning}" for warning in warnings), *lines):
        console.print(line, soft_wrap=True)


def is_single(runs: Sequence[WarnedRun]) -> bool:
    """Whether a cell has only one run of one repeat."""
    return len(runs) == 1 and (runs[0].repeats or 1) < 2


def warnings_of(cells: Iterable[Sequence[WarnedRun]]) -> list[Notice]:
    """Every kind of notice in the runs of some cells once, with the names of its runs; the gravest first.

    The text is that of the first run. The runs' own reports have the others.
    """
    known = [list(cell) for cell in cells if cell]
    first: dict[tuple[str, ...], Notice] = {}
    names: dict[tuple[str, ...], dict[str, None]] = {}
    for run in (run for runs in known for run in runs):
        for notice in run.warnings:
            key = (notice.mark, notice.line) if notice.kind in (NoticeKind.FAULT, NoticeKind.NOTE) else (notice.mark,)
            first.setdefault(key, notice)
            names.setdefault(key, {})[run.place.name] = None
    made = [replace(notice, runs=tuple(names[key])) for key, notice in first.items()]
    for cell in known:
        in_order = in_order_of_measuring(cell)
        of_cell = tuple(run.place.name for run in in_order)
        made += [Notice(NoticeKind.UNSTEADY_CELL, line, runs=of_cell) for line in unsteady_lines(in_order)]
    if single := sum(map(is_single, known)):
        made.append(Notice(NoticeKind.ONE_RUN, _SINGLE.format(single=single, all=len(known))))
    return sorted(made, key=lambda notice: notice.kind.rank)


def marks_of(runs: Sequence[WarnedRun]) -> list[str]:
    """Notices of one cell in one or two words each, for a column of a table."""
    return list(dict.fromkeys(notice.mark for notice in warnings_of([runs])))


def summary_of(cells: Iterable[Sequence[WarnedRun]]) -> str:
    """One line for a figure: each kind of notice with the number of its runs; empty without a notice."""
    known = [list(cell) for cell in cells if cell]
    count = len({run.place for runs in known for run in runs})
    runs_of: dict[str, set[str]] = {}
    for notice in warnings_of(known):
        runs_of.setdefault(notice.mark, set()).update(notice.runs)
    parts = [
        f"{mark}: {len(names)} of {count} runs"
        if names
        else f"{mark}: {sum(map(is_single, known))} of {len(known)} cells"
        for mark, names in runs_of.items()
    ]
    return f"WARNING  {'; '.join(parts)}" if parts else ""
