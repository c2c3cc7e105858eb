"""A study's measures over the axis of sizes that its job varies: a panel for each phase, a line for each system."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from opjoule.base.units import Quantity
from opjoule.pages.plots.phases import figure_name, rows_of
from opjoule.pages.plots.style import COLOURS, FILLS, MARKERS, canvas, legend
from opjoule.results.comparison.study.rows import PhaseRow, Place, StudyTable, apart_from
from opjoule.results.comparison.value_words import measure_unit, measure_words

PANELS_A_ROW: Final = 5
CURVES: Final = ("mean_s", "phase_energy_j")
"""Measures of a phase that are drawn over the axis of sizes."""
_HEIGHT_IN: Final = 2.1


def series_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """(name, function that draws it) of a figure for each measure of the study's [best] and each place."""
    axis = size_axis(study)
    if not axis:
        return
    for place in dict.fromkeys(apart_from([axis], row.place) for row in study.rows):
        for measure in study.best:
            if any(measure in row.measures for row in study.rows if apart_from([axis], row.place) == place):
                name = figure_name(study, place, "by", axis, measure)
                yield name, partial(series_figure, study, axis, place, measure)


def curve_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """Figures of time and energy over the axis of sizes for each phase and place, with a line for each system."""
    axis = size_axis(study)
    for place in dict.fromkeys(apart_from([axis], row.place) for row in study.rows) if axis else ():
        for phase in study.phases:
            rows = [row for row in study.rows if apart_from([axis], row.place) == place and row.phase == phase]
            if any(CURVES[0] in row.measures for row in rows):
                name = figure_name(study, place, "by", axis, phase, also="_")
                yield name, partial(curve_figure, study, axis, rows)


def curve_figure(study: StudyTable, axis: str, rows: list[PhaseRow]) -> Figure:
    """Two panels with logarithmic axes for time [s] and energy [J] of one run of a phase."""
    figure = canvas(_HEIGHT_IN + 0.6)
    for panel, measure in zip(figure.subplots(1, len(CURVES)), CURVES, strict=True):
        _panel(panel, f"{measure_words(measure)} [{measure_unit(measure)}]")
        panel.set_xlabel(axis, fontsize=8)
        for number, system in enumerate(study.systems):
            line_rows = [row for row in rows if row.system == system and measure in row.measures]
            _line(panel, line_rows, axis, measure, number)
    return _with_legend(figure, study)


def _with_legend(figure: Figure, study: StudyTable) -> Figure:
    handles = [Line2D([], [], label=name, **_line_style(at)) for at, name in enumerate(study.systems)]
    return legend(figure, handles, simulated=study.simulated, warnings=study.warnings)


def _panel(panel: Axes, title: str) -> None:
    panel.set_title(title, fontsize=8)
    panel.set(xscale="log", yscale="log")
    panel.grid(color="#DDDDDD", linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)


def size_axis(study: StudyTable) -> str:
    """The axis that has several values, all of them whole numbers; empty if there is none."""
    axes = dict.fromkeys(name for row in study.rows for name in row.cell)
    for name in axes:
        values = {row.cell.get(name, "") for row in study.rows}
        if len(values) > 1 and all(value.isdecimal() for value in values):
            return name
    return ""


def series_figure(study: StudyTable, axis: str, place: Place, measure: str) -> Figure:
    """Panels with logarithmic axes; each point is a mean over records with its interval (95 %)."""
    rows = [row for row in study.rows if apart_from([axis], row.place) == place and measure in row.measures]
    phases = [phase for phase in study.phases if any(row.phase == phase for row in rows)]
    across = min(len(phases), PANELS_A_ROW)
    down = math.ceil(len(phases) / across)
    figure = canvas(0.7 + _HEIGHT_IN * down)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for panel in panels.flat[len(phases) :]:
        panel.set_visible(False)
    for panel, phase in zip(panels.flat, phases, strict=False):
        _panel(panel, phase)
        for number, system in enumerate(study.systems):
            _line(panel, rows_of(rows, phase, system), axis, measure, number)
    unit = measure_unit(measure)
    figure.supylabel(measure_words(measure) + (f" [{unit}]" if unit != "1" else ""), fontsize=8)
    figure.supxlabel(axis, fontsize=8)
    return _with_legend(figure, study)


def _line(panel: Axes, rows: list[PhaseRow], axis: str, measure: str, number: int) -> None:
    points: dict[int, list[PhaseRow]] = {}
    for row in rows:
        points.setdefault(int(row.cell[axis]), []).append(row)
    sizes = sorted(points)
    means = [Quantity.mean([row.measures[measure] for row in points[size]]) for size in sizes]
    shown = [(size, float(mean), mean.u or 0.0) for size, mean in zip(sizes, means, strict=True) if float(mean) > 0]
    if shown:
        xs, ys, bars = zip(*shown, strict=True)
        low = [min(u, 0.99 * value) for value, u in zip(ys, bars, strict=True)]
        panel.errorbar(xs, ys, yerr=[low, bars], elinewidth=0.6, **_line_style(number))


def _line_style(number: int) -> dict[str, Any]:
    choices = {"color": COLOURS, "marker": MARKERS, "fillstyle": FILLS}
    style = {name: values[number % len(values)] for name, values in choices.items()}
    return {**style, "markersize": 3.5, "linewidth": 0.9}
