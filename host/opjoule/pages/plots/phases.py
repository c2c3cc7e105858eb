"""Figures of a study: time and energy of its phases by system, cold against repeated phases, bulk measures, measures
over the axis of sizes that its job varies, and the best system of every cell as a grid coloured by system.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Final

from opjoule.base.units import NOT_STATED, Quantity, unstated
from opjoule.pages.drawing.drawing import Bar, Bars, Chart, Drawing, DrawnAxis, Grid, Point, interval
from opjoule.results.comparison.compared_run import ComparedRun, Place, apart_from
from opjoule.results.comparison.study_best import Best, best_systems, mean_of, value_words
from opjoule.results.comparison.study_rows import StudyTable
from opjoule.results.comparison.value_words import measure_unit, measure_words
from opjoule.results.rounding import NONE, rounded

NOT_SUPPORTED: Final = "n/s"
Value = tuple[float | None, float | None]
"""A value and its expanded uncertainty; None: not known, not stated."""
Slot = tuple[int, str, Sequence[ComparedRun], bool]
"""Place of a bar: its group and system, the rows of which it is the mean, whether it is faint."""
_CALLS: Final = "calls"
"""Figure reported by the job: number of operations of a phase in one of its runs."""


def study_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """(name of its files, function that draws it) of a figure for each place in which systems are compared."""
    for place in dict.fromkeys(row.stratum for row in study.rows):
        yield figure_name(study, place, "phases"), partial(phases_figure, study, place)


def cold_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """(name, function that draws it) of a figure of the phases in [cold] and one of [bars], for each place."""
    for place in dict.fromkeys(row.stratum for row in study.rows):
        reported = {row.phase for row in study.rows if row.stratum == place}
        if reported & set(study.definition.cold):
            yield figure_name(study, place, "cold"), partial(cold_figure, study, place)
        if reported & set(study.definition.bars.values()):
            yield figure_name(study, place, "bulk"), partial(bars_figure, study, place)


def figure_name(study: StudyTable, place: Place, *words: str, also: str = "") -> str:
    """Name of a figure's files from study, place and `words`; only letters, digits and characters in `also`."""
    name = "-".join([study.definition.name.rpartition("/")[2], *(f"{axis}-{value}" for axis, value in place), *words])
    return "".join(letter if letter.isalnum() or letter in also else "-" for letter in name)


def phases_figure(study: StudyTable, place: Place) -> Drawing:
    """Bars with a colour for each system; n/s: the system does not support the phase; a dash: its value is unknown."""
    rows = [row for row in study.rows if row.stratum == place]
    phases = [phase for phase in study.definition.phases if any(row.phase == phase for row in rows)]
    systems = _systems(rows)
    slots = [(at, name, rows_of(rows, phase, name), False) for at, phase in enumerate(phases) for name in systems]
    which = f"per {study.definition.per}" if study.definition.per else "of a phase"
    time = partial(_mean, names=[f"per_{study.definition.per}_us"]) if study.definition.per else seconds
    energy = "energy_per_operation_j" if study.definition.per else "energy_j"
    above = _bars(study, slots, time, Bars(f"time {which}", "µs" if study.definition.per else "s", (), phases))
    below = _bars(study, slots, None, Bars(f"energy {which}", "J", (), phases), energy)
    return _drawing(study, rows, [above, below])


def cold_figure(study: StudyTable, place: Place) -> Drawing:
    """Cold and repeated bar for each system and phase, with their ratio; upper panel: seconds, lower panel: joules."""
    rows = [row for row in study.rows if row.stratum == place]
    phases = [phase for phase in study.definition.phases if phase in study.definition.cold]
    slots = [
        (at, system, rows_of(rows, name, system), name == phase)
        for at, phase in enumerate(phases)
        for system in _systems(rows)
        for name in (study.definition.cold[phase], phase)
    ]
    above = _bars(study, slots, seconds, Bars("time", "s", (), phases))
    below = _bars(study, slots, None, Bars("energy", "J", (), phases))
    panels = [replace(of, bars=_with_ratios(of.bars), has_texts=True) for of in (above, below)]
    return replace(_drawing(study, rows, panels), faint=("left: cold", "right: repeated"))


def bars_figure(study: StudyTable, place: Place) -> Drawing:
    """Panels of each measure of [bars] and of the joules of each of their phases; a bar from 0 for each system.

    Each has its value as text, because small bars are invisible on a linear axis.
    """
    rows = [row for row in study.rows if row.stratum == place]
    panels = []
    for measure, phase in [
        *study.definition.bars.items(),
        *(("", phase) for phase in dict.fromkeys(study.definition.bars.values())),
    ]:
        slots = [(0, system, rows_of(rows, phase, system), False) for system in _systems(rows)]
        unit = "J" if not measure else measure_unit(measure) if "_per_" not in measure else "1"
        empty = Bars("", "", (), [""], title=f"{phase}: {measure_words(measure or 'energy_j')}")
        made = _bars(study, slots, partial(_mean, names=[measure]) if measure else None, empty)
        panels.append(replace(made, bars=[_with_value(bar, unit) for bar in made.bars], has_texts=True))
    return replace(_drawing(study, rows, panels), across=len(panels))


def _bars(
    study: StudyTable,
    slots: Sequence[Slot],
    value: Callable[[Sequence[ComparedRun]], Value] | None,
    panel: Bars,
    energy: str = "energy_j",
) -> Bars:
    """The panel with a bar for each slot, or n/s or a dash where there is no value above 0.

    `value`: what is drawn of the rows; None: an energy, with a point for its part above idle.
    """
    bars, above_idle = [], []
    places = len(slots) // len(panel.groups)
    for at, (group, system, rows, faint) in enumerate(slots):
        number, u = value(rows) if value else joules(rows, energy)
        bar = Bar("", group, at % places, None, faint=faint)
        if number is None or number <= 0:
            supported = not any(row.not_supported for row in rows)
            bars.append(replace(bar, text=NONE if supported else NOT_SUPPORTED))
        else:
            parts = [(number, study.systems.index(system))]
            bars.append(replace(bar, value=number, limits=interval(number, u), parts=parts))
        marginal_j, _ = joules(rows, f"marginal_{energy}")
        if marginal_j is not None and marginal_j > 0:
            above_idle.append((group, at % places, marginal_j, None))
    return replace(panel, bars=bars, places=places, dots={} if value else {"above idle": above_idle})


def _with_ratios(bars: Sequence[Bar]) -> list[Bar]:
    """The bars, with the ratio to the repeated bar as the text of each cold one."""
    made = []
    for cold, repeated in zip(bars[::2], bars[1::2], strict=True):
        if cold.value is not None and repeated.value is not None:
            words = f"\N{MULTIPLICATION SIGN}{rounded(cold.value / repeated.value, None, '1', 3)}"
            made += [replace(cold, text=words), repeated]
        else:
            made += [cold, repeated]
    return made


def _with_value(bar: Bar, unit: str) -> Bar:
    """The bar with its value as its text; one without a value keeps what stands in its place."""
    if bar.value is None:
        return bar
    u = bar.limits[1] - bar.value if bar.limits else None
    return replace(bar, text=str(rounded(bar.value, u or None, unit, 3)))


def _systems(rows: Sequence[ComparedRun]) -> list[str]:
    return sorted({row.system for row in rows})


def _drawing(study: StudyTable, rows: Sequence[ComparedRun], panels: Sequence[Bars]) -> Drawing:
    """The drawing with the legend of its systems, whose colours are the same in all figures of the study."""
    names = [system if system in _systems(rows) else "" for system in study.systems]
    return Drawing(panels, names, simulated=study.simulated, warnings=study.warnings)


def rows_of(rows: Sequence[ComparedRun], phase: str, system: str) -> list[ComparedRun]:
    """The rows of one phase on one system."""
    return [row for row in rows if (row.phase, row.system) == (phase, system)]


def seconds(rows: Sequence[ComparedRun]) -> Value:
    """Duration of one run of a phase [s], measured by the job, else from the marks; mean over records."""
    return _mean(rows, ["mean_s", "duration_s"])


def joules(rows: Sequence[ComparedRun], name: str) -> Value:
    """Energy of one run of a phase [J] and its expanded uncertainty, None if they are not known.

    For a repeated phase, of the calls of one run; mean over records.
    """
    sides = _of_one_run(rows, name)
    mean = mean_of(sides) if sides else None
    return (mean.value, mean.u) if mean else (None, None)


def _of_one_run(rows: Sequence[ComparedRun], name: str) -> list[Quantity]:
    """Energy of one run of a phase [J] in each row that has it."""
    per_call = name.replace("_j", "_per_operation_j")
    sides: list[Quantity] = []
    for row in rows:
        if {per_call, _CALLS} <= row.means.keys():
            sides.append(row.means[per_call].scale(float(row.means[_CALLS])))
        elif name in row.means:
            sides.append(row.means[name])
    return sides


def _mean(rows: Sequence[ComparedRun], names: Sequence[str]) -> Value:
    """Mean over the rows of the first of some measures that a row has, without an interval; None if none has any."""
    there = [next((row.means[name] for name in names if name in row.means), None) for row in rows]
    known = [float(of) for of in there if of]
    return (fmean(known) if known else None), None


def grid_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """A grid for each measure of the study's [best] except `also`, and for each combination of the other axes."""
    if not study.definition.grid:
        return
    inside = [study.definition.grid["down"], *study.definition.grid["across"]]
    bests = best_systems(study)
    also = study.definition.grid.get("also")
    for place in dict.fromkeys(apart_from(inside, best.place) for best in bests):
        there = [best for best in bests if apart_from(inside, best.place) == place]
        for measure in study.definition.best:
            place_bests = [best for best in there if best.measure in (measure, also)]
            if measure != also and any(best.measure == measure for best in place_bests):
                name = figure_name(study, place, "winners", measure)
                yield name, partial(grid_figure, study, place_bests)


def grid_figure(study: StudyTable, bests: Sequence[Best]) -> Drawing:
    """Grid of the best systems. Rows: phases and the measure `also`, by the axis `down`; columns: the axes `across`."""
    across = study.definition.grid["across"]
    rows = _rows(study, bests, study.definition.grid["down"])
    columns = sorted(dict.fromkeys(_values(best, across) for best in bests), key=_numbers_first)
    fields = [
        (
            rows.index(_row(study, best)),
            columns.index(_values(best, across)),
            study.systems.index(best.system),
            _words(best),
        )
        for best in bests
    ]
    names = [f"{name}  {value}" for name, value in rows], ["\n".join(column) for column in columns]
    return Drawing([Grid(*names, fields)], study.systems, simulated=study.simulated, warnings=study.warnings)


def _rows(study: StudyTable, bests: Sequence[Best], down: str) -> list[tuple[str, str]]:
    """(name, value) of each row: phases in the study's order, then `also`, each with every value of `down`."""
    also = study.definition.grid.get("also", "")
    values = list(dict.fromkeys(dict(best.place).get(down, "") for best in bests))
    kinds = [(best.phase, best.measure) for best in bests]
    names = [phase for phase in study.definition.phases if any(kind != (phase, also) for kind in kinds)]
    there = {_row(study, best) for best in bests}
    wanted = [(name, value) for name in [*names, also.replace("_", " ")] for value in values]
    return [row for row in wanted if row in there]


def _row(study: StudyTable, best: Best) -> tuple[str, str]:
    name = best.measure.replace("_", " ") if best.measure == study.definition.grid.get("also") else best.phase
    return name, dict(best.place).get(study.definition.grid["down"], "")


def _numbers_first(values: Sequence[str]) -> list[tuple[int, int, str]]:
    return [(0, int(value), "") if value.isdecimal() else (1, 0, value) for value in values]


def _values(best: Best, across: Sequence[str]) -> tuple[str, ...]:
    place: Mapping[str, str] = dict(best.place)
    return tuple(place.get(axis, "") for axis in across)


def _words(best: Best) -> str:
    doubt = "~" if best.differs is False else ""
    value = value_words(unstated(float(best.mean), "", NOT_STATED), best.measure)
    return f"{doubt}{best.system}\n{value}{' [1 run]' if best.single else ''}"


PANELS_A_ROW: Final = 5
CURVES: Final = ("mean_s", "phase_energy_j")
"""Measures of a phase that are drawn over the axis of sizes."""


def series_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """(name, function that draws it) of a figure for each measure of the study's [best] and each place."""
    axis = size_axis(study)
    if not axis:
        return
    for place in dict.fromkeys(apart_from([axis], row.stratum) for row in study.rows):
        for measure in study.definition.best:
            if any(measure in row.means for row in study.rows if apart_from([axis], row.stratum) == place):
                name = figure_name(study, place, "by", axis, measure)
                yield name, partial(series_figure, study, axis, place, measure)


def curve_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Drawing]]]:
    """Figures of time and energy over the axis of sizes for each phase and place, with a line for each system."""
    axis = size_axis(study)
    for place in dict.fromkeys(apart_from([axis], row.stratum) for row in study.rows) if axis else ():
        for phase in study.definition.phases:
            rows = [row for row in study.rows if apart_from([axis], row.stratum) == place and row.phase == phase]
            if any(CURVES[0] in row.means for row in rows):
                name = figure_name(study, place, "by", axis, phase, also="_")
                yield name, partial(curve_figure, study, axis, rows)


def curve_figure(study: StudyTable, axis: str, rows: Sequence[ComparedRun]) -> Drawing:
    """Two panels with logarithmic axes for time [s] and energy [J] of one run of a phase."""
    panels = []
    for measure in CURVES:
        points = _points(study, axis, rows, measure)
        title = f"{measure_words(measure)} [{measure_unit(measure)}]"
        panels.append(_panel(points, points, title, axis, "", ""))
    return _curves(study, panels)


def _curves(study: StudyTable, panels: Sequence[Chart]) -> Drawing:
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
    rows = [row for row in study.rows if apart_from([axis], row.stratum) == place and measure in row.means]
    there = {phase: [row for row in rows if row.phase == phase] for phase in study.definition.phases}
    points = {phase: _points(study, axis, of, measure) for phase, of in there.items() if of}
    everything = [point for of in points.values() for point in of]
    unit = measure_unit(measure)
    about = axis, measure_words(measure), "" if unit == "1" else unit
    return _curves(study, [_panel(of, everything, phase, *about) for phase, of in points.items()])


def _points(study: StudyTable, axis: str, rows: Sequence[ComparedRun], measure: str) -> list[Point]:
    """The mean over the records of each size and system that is above 0."""
    groups: dict[tuple[int, int], list[Quantity]] = {}
    for row in rows:
        if measure in row.means:
            place = study.systems.index(row.system), int(row.cell[axis])
            groups.setdefault(place, []).append(row.means[measure])
    means = {place: Quantity.mean(groups[place]) for place in sorted(groups)}
    known = [(*place, mean) for place, mean in means.items() if float(mean) > 0]
    return [Point(size, float(mean), system, system, y_u=mean.u or 0.0) for system, size, mean in known]
