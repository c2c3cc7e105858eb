"""A study's measures over the axis of sizes that its job varies: a panel for each phase, a line for each system."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from opjoule.base.units import Quantity
from opjoule.pages.drawing.drawing import Chart, Drawing, DrawnAxis, Point
from opjoule.pages.plots.phases import figure_name
from opjoule.results.comparison.study.rows import PhaseRow, Place, StudyTable, apart_from
from opjoule.results.comparison.value_words import measure_unit, measure_words

PANELS_A_ROW: Final = 5
CURVES: Final = ("mean_s", "phase_energy_j")
"""Measures of a phase that are drawn over the axis of sizes."""


def series_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """(name, function that draws it) of a figure for each measure of the study's [best] and each place."""
    axis = size_axis(study)
    if not axis:
        return
    for place in dict.fromkeys(apart_from([axis], row.place) for row in study.rows):
        for measure in study.best:
            if any(measure in row.measures for row in study.rows if apart_from([axis], row.place) == place):
                name = figure_name(study, place, "by", axis, measure)
                yield name, partial(series_figure, study, axis, place, measure)


def curve_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """Figures of time and energy over the axis of sizes for each phase and place, with a line for each system."""
    axis = size_axis(study)
    for place in dict.fromkeys(apart_from([axis], row.place) for row in study.rows) if axis else ():
        for phase in study.phases:
            rows = [row for row in study.rows if apart_from([axis], row.place) == place and row.phase == phase]
            if any(CURVES[0] in row.measures for row in rows):
                name = figure_name(study, place, "by", axis, phase, also="_")
                yield name, partial(curve_figure, study, axis, rows)


def curve_figure(study: StudyTable, axis: str, rows: Sequence[PhaseRow]) -> Drawing:
    """Two panels with logarithmic axes for time [s] and energy [J] of one run of a phase."""
    panels = []
    for measure in CURVES:
        points = _points(study, axis, rows, measure)
        title = f"{measure_words(measure)} [{measure_unit(measure)}]"
        panels.append(_panel(points, points, title, axis, "", ""))
    return _drawing(study, panels)


def _drawing(study: StudyTable, panels: Sequence[Chart]) -> Drawing:
    about = study.simulated, study.warnings
    return Drawing(panels, study.systems, across=PANELS_A_ROW, simulated=about[0], warnings=about[1])


def _panel(points: Sequence[Point], shown: Sequence[Point], title: str, axis: str, words: str, unit: str) -> Chart:
    """A panel whose logarithmic axes hold the points of all panels (`shown`)."""
    x = [(point.x, 0.0) for point in shown] or [(1.0, 0.0)]
    y = [(point.y, point.y_u) for point in shown] or [(1.0, 0.0)]
    axes = DrawnAxis.about(axis, "", x, logarithmic=True), DrawnAxis.about(words, unit, y, logarithmic=True)
    return Chart(*axes, points, title=title, joined=True)


def size_axis(study: StudyTable) -> str:
    """The axis that has several values, all of them whole numbers; empty if there is none."""
    axes = dict.fromkeys(name for row in study.rows for name in row.cell)
    for name in axes:
        values = {row.cell.get(name, "") for row in study.rows}
        if len(values) > 1 and all(value.isdecimal() for value in values):
            return name
    return ""


def series_figure(study: StudyTable, axis: str, place: Place, measure: str) -> Drawing:
    """Panels with logarithmic axes; each point is a mean over records with its interval (95 %)."""
    rows = [row for row in study.rows if apart_from([axis], row.place) == place and measure in row.measures]
    there = {phase: [row for row in rows if row.phase == phase] for phase in study.phases}
    points = {phase: _points(study, axis, of, measure) for phase, of in there.items() if of}
    everything = [point for of in points.values() for point in of]
    unit = measure_unit(measure)
    about = axis, measure_words(measure), "" if unit == "1" else unit
    return _drawing(study, [_panel(of, everything, phase, *about) for phase, of in points.items()])


def _points(study: StudyTable, axis: str, rows: Sequence[PhaseRow], measure: str) -> list[Point]:
    """The mean over the records of each size and system that is above 0."""
    groups: dict[tuple[int, int], list[Quantity]] = {}
    for row in rows:
        if measure in row.measures:
            place = study.systems.index(row.system), int(row.cell[axis])
            groups.setdefault(place, []).append(row.measures[measure])
    means = {place: Quantity.mean(groups[place]) for place in sorted(groups)}
    known = [(*place, mean) for place, mean in means.items() if float(mean) > 0]
    return [Point(size, float(mean), system, system, y_u=mean.u or 0.0) for system, size, mean in known]
