"""Time and energy of a study's phases by system: each phase, cold against repeated phases, and bulk measures."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from opjoule.base.units import Quantity
from opjoule.pages.plots.style import INK, canvas, fill, legend, lie_apart, name_places
from opjoule.results.comparison.study.rows import PhaseRow, Place, StudyTable
from opjoule.results.comparison.study.table import mean_of
from opjoule.results.comparison.value_words import measure_unit, measure_words
from opjoule.results.rounding import NONE, rounded

PHASES_HEIGHT_IN: Final = 5.2
BARS_HEIGHT_IN: Final = 2.9
WIDTH: Final = 0.84
"""Width of all bars of one phase; phases are 1 apart."""
NOT_SUPPORTED: Final = "n/s"
LOWEST: Final = 0.9
"""Longest lower half of an interval on a logarithmic axis, as a part of its value."""
LIGHT: Final = 0.4
"""Opacity of the bars of repeated phases, which are at the right of the cold ones."""
ROOM: Final = 4.0
"""End of a logarithmic axis, as a multiple of the greatest value; leaves room for ratios above the bars."""
LINEAR_ROOM: Final = 1.15
"""The same for an axis from zero."""
_CALLS: Final = "calls"
"""Figure reported by the job: number of operations of a phase in one of its runs."""


def study_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """(name of its files, function that draws it) of a figure for each place in which systems are compared."""
    for place in dict.fromkeys(row.place for row in study.rows):
        yield figure_name(study, place, "phases"), partial(phases_figure, study, place)


def cold_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """(name, function that draws it) of a figure of the phases in [cold] and one of [bars], for each place."""
    for place in dict.fromkeys(row.place for row in study.rows):
        reported = {row.phase for row in study.rows if row.place == place}
        if reported & set(study.cold):
            yield figure_name(study, place, "cold"), partial(cold_figure, study, place)
        if reported & set(study.bars.values()):
            yield figure_name(study, place, "bulk"), partial(bars_figure, study, place)


def figure_name(study: StudyTable, place: Place, *words: str, also: str = "") -> str:
    """Name of a figure's files from study, place and `words`; only letters, digits and characters in `also`."""
    name = "-".join([study.name.rpartition("/")[2], *(f"{axis}-{value}" for axis, value in place), *words])
    return "".join(letter if letter.isalnum() or letter in also else "-" for letter in name)


def phases_figure(study: StudyTable, place: Place) -> Figure:
    """Bars with a colour for each system; n/s: the system does not support the phase; a dash: its value is unknown."""
    rows = [row for row in study.rows if row.place == place]
    styles = system_styles(study, rows)
    phases = [phase for phase in study.phases if any(row.phase == phase for row in rows)]
    words = "time of a phase [s]", "energy of a phase"
    if study.per:
        words = f"time per {study.per} [µs]", f"energy per {study.per}"
    figure, above, below = _two_panels(*words)
    grouped = {(phase, system): rows_of(rows, phase, system) for phase in phases for system in styles}
    values = {bars: _of_bars(group, study.per) for bars, group in grouped.items()}
    scale_upwards(above, [time for time, *_ in values.values()])
    scale_upwards(below, [energy_j for _, energy_j, *_ in values.values()])
    width = WIDTH / len(styles)
    for (phase, system), group in grouped.items():
        x = phases.index(phase) + ([*styles].index(system) - (len(styles) - 1) / 2) * width
        time, energy_j, u_j, marginal_energy_j = values[phase, system]
        bar(above, group, time, x, width, styles[system])
        bar(below, group, energy_j, x, width, styles[system], u_j)
        point(below, marginal_energy_j, x)
    _name_phases(above, below, phases)
    return _with_legend(figure, study, styles)


def cold_figure(study: StudyTable, place: Place) -> Figure:
    """Cold and repeated bar for each system and phase, with their ratio; upper panel: seconds, lower panel: joules."""
    rows = [row for row in study.rows if row.place == place]
    styles, phases = system_styles(study, rows), [phase for phase in study.phases if phase in study.cold]
    figure, above, below = _two_panels("time [s]", "energy")
    width = WIDTH / (2 * len(styles))
    in_figure = [row for row in rows if row.phase in {*phases, *study.cold.values()}]
    scale_upwards(above, [seconds([row]) for row in in_figure])
    scale_upwards(below, [joules([row], "energy_j")[0] for row in in_figure])
    for at, phase in enumerate(phases):
        for number, (system, style) in enumerate(styles.items()):
            pair = [rows_of(rows, name, system) for name in (study.cold[phase], phase)]
            energies_j, us_j = zip(*(joules(group, "energy_j") for group in pair), strict=True)
            x = at + (2 * number + 0.5 - len(styles)) * width
            _ratio(above, [seconds(group) for group in pair], [None, None], x + width / 2)
            _ratio(below, energies_j, us_j, x + width / 2)
            for side, (group, opacity) in enumerate(zip(pair, (1.0, LIGHT), strict=True)):
                shown, place_x = style | {"alpha": opacity}, x + side * width
                bar(above, group, seconds(group), place_x, width, shown)
                bar(below, group, energies_j[side], place_x, width, shown, us_j[side])
                point(below, joules(group, "marginal_energy_j")[0], place_x)
    for axes in (above, below):
        axes.set_ylim(top=axes.get_ylim()[1] * (ROOM if axes.get_yscale() == "log" else LINEAR_ROOM))
    _name_phases(above, below, phases)
    grey: dict[str, Any] = {"facecolor": INK, "edgecolor": INK, "linewidth": 0.4}
    both = Patch(label="left: cold", **grey), Patch(label="right: repeated", **grey, alpha=LIGHT)
    return _with_legend(figure, study, styles, *both)


def bars_figure(study: StudyTable, place: Place) -> Figure:
    """Panels of each measure of [bars] and of the joules of each of their phases; a bar from 0 for each system."""
    rows = [row for row in study.rows if row.place == place]
    phases = list(dict.fromkeys(study.bars.values()))
    figure = canvas(BARS_HEIGHT_IN)
    panels = list(figure.subplots(1, len(study.bars) + len(phases), squeeze=False).flat)
    styles = system_styles(study, rows)
    for panel, (measure, phase) in zip(panels, study.bars.items(), strict=False):
        panel.set_title(f"{phase}: {measure_words(measure)}", fontsize=8)
        unit = measure_unit(measure) if "_per_" not in measure else "1"
        for at, (system, style) in enumerate(styles.items()):
            group = rows_of(rows, phase, system)
            value = _mean(group, measure)
            _bar_with_words(panel, group, value, None, unit, at, style)
    for panel, phase in zip(panels[len(study.bars) :], phases, strict=True):
        panel.set_title(f"{phase}: energy", fontsize=8)
        for at, (system, style) in enumerate(styles.items()):
            group = rows_of(rows, phase, system)
            _bar_with_words(panel, group, *joules(group, "energy_j"), "J", at, style)
            point(panel, joules(group, "marginal_energy_j")[0], at)
    for panel in panels:
        panel.set(xlim=(-0.6, len(styles) - 0.4), ylim=(0.0, panel.get_ylim()[1] * 1.08), xticks=[], yticks=[])
        panel.spines[["top", "right", "left"]].set_visible(False)
    return _with_legend(figure, study, styles)


def _two_panels(time_words: str, energy_words: str) -> tuple[Figure, Axes, Axes]:
    """An empty figure with a panel for time above and one for energy below."""
    figure = canvas(PHASES_HEIGHT_IN)
    above, below = figure.subplots(2, 1, sharex=True)
    above.set_ylabel(time_words)
    below.set_ylabel(f"{energy_words} [J]\n(points: above idle)")
    return figure, above, below


def _name_phases(above: Axes, below: Axes, phases: Sequence[str]) -> None:
    above.set_xlim(-0.6, len(phases) - 0.4)
    name_places(below, phases)
    above.tick_params(axis="x", length=0)


def _with_legend(figure: Figure, study: StudyTable, styles: Mapping[str, Mapping[str, Any]], *more: Patch) -> Figure:
    patches = [Patch(label=system, **style) for system, style in styles.items()]
    points = Line2D([], [], label="above idle", **_POINT)
    return legend(figure, [*patches, *more, points], simulated=study.simulated, warnings=study.warnings)


def rows_of(rows: Sequence[PhaseRow], phase: str, system: str) -> list[PhaseRow]:
    """The rows of one phase on one system."""
    return [row for row in rows if (row.phase, row.system) == (phase, system)]


def _of_bars(rows: Sequence[PhaseRow], per: str) -> tuple[float | None, ...]:
    """(time, energy, its expanded uncertainty, energy above idle) of one run of a phase, or of a named operation.

    Joules; the time of a phase is in seconds, that of an operation in microseconds.
    """
    time = _mean(rows, f"per_{per}_us") if per else seconds(rows)
    energy = "energy_per_operation_j" if per else "energy_j"
    return time, *joules(rows, energy), joules(rows, f"marginal_{energy}")[0]


def system_styles(study: StudyTable, rows: Sequence[PhaseRow]) -> dict[str, dict[str, Any]]:
    """System -> style of its bars, which is the same in all figures of the study."""
    there = {row.system for row in rows}
    return {system: fill(at, 0.4) for at, system in enumerate(study.systems) if system in there}


def scale_upwards(axes: Axes, values: Iterable[float | None]) -> None:
    """Scales an axis for bars: from zero, or logarithmic if the values lie far apart."""
    if lie_apart(values):
        axes.set_yscale("log")
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def seconds(rows: Sequence[PhaseRow]) -> float | None:
    """Duration of one run of a phase [s], measured by the job, else from the marks; mean over records."""
    return _mean(rows, "mean_s", "duration_s")


def joules(rows: Sequence[PhaseRow], name: str) -> tuple[float | None, float | None]:
    """Energy of one run of a phase [J] and its expanded uncertainty, None if they are not known.

    For a repeated phase, of the calls of one run; mean over records.
    """
    sides = _of_one_run(rows, name)
    mean = mean_of(sides) if sides else None
    return (mean.value, mean.u) if mean else (None, None)


def _of_one_run(rows: Sequence[PhaseRow], name: str) -> list[Quantity]:
    """Energy of one run of a phase [J] in each row that has it."""
    per_call = name.replace("_j", "_per_operation_j")
    sides: list[Quantity] = []
    for row in rows:
        if {per_call, _CALLS} <= row.measures.keys():
            sides.append(row.measures[per_call].scale(float(row.measures[_CALLS])))
        elif name in row.measures:
            sides.append(row.measures[name])
    return sides


def _mean(rows: Sequence[PhaseRow], *measures: str) -> float | None:
    """Mean over the rows of the first of some measures that a row has; None if none has any."""
    there = [next((row.measures[name] for name in measures if name in row.measures), None) for row in rows]
    known = [float(of) for of in there if of]
    return fmean(known) if known else None


def bar(
    axes: Axes,
    rows: Sequence[PhaseRow],
    value: float | None,
    x: float,
    width: float,
    style: Mapping[str, Any],
    u: float | None = None,
) -> None:
    """Draws one bar with its interval, or n/s or a dash if there is no value."""
    if value is not None and value > 0:
        axes.bar(x, value, width * 0.92, **style)
        if u is not None:
            low = min(u, (LOWEST if axes.get_yscale() == "log" else 1.0) * value)
            axes.errorbar(x, value, yerr=[[low], [u]], ecolor=INK, elinewidth=0.7, capsize=1.4)
        return
    words, rotation = (NOT_SUPPORTED, 90) if any(row.not_supported for row in rows) else (NONE, 0)
    place: dict[str, Any] = {"xy": (x, 0.01), "xycoords": ("data", "axes fraction"), "ha": "center"}
    axes.annotate(words, **place, va="bottom", rotation=rotation, fontsize=5.5, color=INK)


def _ratio(axes: Axes, pair: Sequence[float | None], us: Sequence[float | None], x: float) -> None:
    """Writes the ratio of the first to the second bar above both bars and their intervals."""
    cold, repeated = pair
    if cold is None or repeated is None or repeated <= 0 or cold <= 0:
        return
    top = max(value + (u or 0.0) for value, u in zip((cold, repeated), us, strict=True))
    words = rounded(cold / repeated, None, "1", 3)
    _words_above(axes, f"\N{MULTIPLICATION SIGN}{words}", x, top)


def _words_above(axes: Axes, words: str, x: float, y: float) -> None:
    at: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
    axes.annotate(words, (x, y), fontsize=6.5, color=INK, **at)


def _bar_with_words(
    axes: Axes,
    rows: Sequence[PhaseRow],
    value: float | None,
    u: float | None,
    unit: str,
    x: float,
    style: Mapping[str, Any],
) -> None:
    """Draws one bar with its value as text, because small bars are invisible on a linear axis."""
    bar(axes, rows, value, x, WIDTH, style, u)
    if value is not None and value > 0:
        _words_above(axes, str(rounded(value, u, unit, 3)), x, value + (u or 0.0))


def point(axes: Axes, value: float | None, x: float) -> None:
    """Draws a point for the energy above idle."""
    if value is not None and value > 0:
        axes.plot([x], [value], **_POINT)


_EDGE: Final[dict[str, Any]] = {"markeredgecolor": "white", "markeredgewidth": 0.5, "linestyle": "none"}
_POINT: Final[dict[str, Any]] = {"marker": "D", "markersize": 3.2, "markerfacecolor": INK, **_EDGE}
