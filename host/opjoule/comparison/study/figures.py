"""The figures of a study that is a workload of the loader, from its records: which runs each shows, and by what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from opjoule.comparison.compared_run import ComparedRun
from opjoule.comparison.plotted import Plotted, plotted
from opjoule.studies.definition import DEVICE

SCALE: Final = "scale"
NAMED: Final = (SCALE, "journal")
"""Axes whose values mean nothing without their name."""


def figures_of_studies(runs: Iterable[ComparedRun]) -> dict[str, Plotted]:
    """Name (`s1-figure-7`) -> its cells, by the study's own axes; those with one value of what they are about left out.

    A figure that is not about boards is one for each board (`s1-figure-3-rpi4`). The records say themselves which
    figures show them, and by which axes (`figures` of `asked` in run.json).
    """
    shown: dict[str, list[ComparedRun]] = {}
    about: dict[str, list[str]] = {}
    for run in runs:
        for figure, by in (run.asked.get("figures") or {}).items():
            name = f"{Path(str(run.asked['folder'])).name}-figure-{figure}"
            shown.setdefault(name, []).append(run)
            about[name] = [str(axis) for axis in by]
    return {
        part: plotted(few, words=_words, axes=[*few[0].asked["cell"], SCALE])
        for name, figure_runs in sorted(shown.items())
        for part, few in _parts(name, figure_runs, about[name])
        if any(len({run.value(axis) for run in few}) > 1 for axis in about[name])
    }


def _parts(
    name: str, runs: Sequence[ComparedRun], about: Sequence[str]
) -> Iterator[tuple[str, list[ComparedRun]]]:
    """A figure whole, or board by board."""
    boards = sorted({run.value(DEVICE) for run in runs})
    if DEVICE in about or len(boards) == 1:
        yield name, list(runs)
        return
    for board in boards:
        yield f"{name}-{board}", [run for run in runs if run.value(DEVICE) == board]


def _words(run: ComparedRun, axis: str) -> str:
    return f"{axis} {run.value(axis)}" if axis in NAMED else run.words(axis)
