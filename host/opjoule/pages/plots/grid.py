"""The best system of every cell as a grid coloured by system, as study S2 shows its results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from opjoule.base.units import NOT_STATED, unstated
from opjoule.pages.plots.phases import figure_name
from opjoule.pages.plots.style import COLOURS, INK, canvas, legend
from opjoule.results.comparison.study.rows import StudyTable, apart_from
from opjoule.results.comparison.study.table import Best, best_systems, value_words

ROW_IN: Final = 0.3
HEAD_IN: Final = 1.1
OPACITY: Final = 0.55


def grid_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """A grid for each measure of the study's [best] except `also`, and for each combination of the other axes."""
    if not study.grid:
        return
    inside = [study.grid["down"], *study.grid["across"]]
    bests = best_systems(study)
    also = study.grid.get("also")
    for place in dict.fromkeys(apart_from(inside, best.place) for best in bests):
        there = [best for best in bests if apart_from(inside, best.place) == place]
        for measure in study.best:
            place_bests = [best for best in there if best.measure in (measure, also)]
            if measure != also and any(best.measure == measure for best in place_bests):
                name = figure_name(study, place, "winners", measure)
                yield name, partial(grid_figure, study, place_bests)


def grid_figure(study: StudyTable, bests: Sequence[Best]) -> Figure:
    """Grid of the best systems. Rows: phases and the measure `also`, by the axis `down`; columns: the axes `across`."""
    down, across = study.grid["down"], study.grid["across"]
    rows = _rows(study, bests, down)
    columns = sorted(dict.fromkeys(_values(best, across) for best in bests), key=_numbers_first)
    figure = canvas(HEAD_IN + ROW_IN * len(rows))
    axes = figure.add_subplot()
    places = {(_row(study, best), _values(best, across)): best for best in bests}
    for at, row in enumerate(rows):
        for number, column in enumerate(columns):
            if best := places.get((row, column)):
                _cell(axes, study.systems, best, number, len(rows) - 1 - at)
    axes.set(xlim=(0, len(columns)), ylim=(0, len(rows)))
    axes.set_xticks(np.arange(len(columns)) + 0.5, ["\n".join(column) for column in columns])
    axes.set_yticks(len(rows) - np.arange(len(rows)) - 0.5, [f"{name}  {value}" for name, value in rows])
    axes.tick_params(length=0, labelsize=6.5)
    axes.spines[:].set_visible(False)
    colours = [(name, COLOURS[at % len(COLOURS)]) for at, name in enumerate(study.systems)]
    handles = [Patch(facecolor=colour, alpha=OPACITY, label=name) for name, colour in colours]
    return legend(figure, handles, simulated=study.simulated, warnings=study.warnings)


def _rows(study: StudyTable, bests: Sequence[Best], down: str) -> list[tuple[str, str]]:
    """(name, value) of each row: phases in the study's order, then `also`, each with every value of `down`."""
    also = study.grid.get("also", "")
    values = list(dict.fromkeys(dict(best.place).get(down, "") for best in bests))
    kinds = [(best.phase, best.measure) for best in bests]
    names = [phase for phase in study.phases if any(kind != (phase, also) for kind in kinds)]
    there = {_row(study, best) for best in bests}
    wanted = [(name, value) for name in [*names, also.replace("_", " ")] for value in values]
    return [row for row in wanted if row in there]


def _row(study: StudyTable, best: Best) -> tuple[str, str]:
    name = best.measure.replace("_", " ") if best.measure == study.grid.get("also") else best.phase
    return name, dict(best.place).get(study.grid["down"], "")


def _numbers_first(values: Sequence[str]) -> list[tuple[int, int, str]]:
    return [(0, int(value), "") if value.isdecimal() else (1, 0, value) for value in values]


def _values(best: Best, across: Sequence[str]) -> tuple[str, ...]:
    place: Mapping[str, str] = dict(best.place)
    return tuple(place.get(axis, "") for axis in across)


def _cell(axes: Axes, systems: Sequence[str], best: Best, x: int, y: int) -> None:
    colour = COLOURS[systems.index(best.system) % len(COLOURS)]
    axes.add_patch(Rectangle((x + 0.02, y + 0.04), 0.96, 0.92, facecolor=colour, alpha=OPACITY, linewidth=0))
    doubt = "~" if best.differs is False else ""
    value = value_words(unstated(float(best.mean), "", NOT_STATED), best.measure)
    words = f"{doubt}{best.system}\n{value}{' [1 run]' if best.single else ''}"
    axes.text(x + 0.5, y + 0.5, words, ha="center", va="center", fontsize=5, color=INK)
