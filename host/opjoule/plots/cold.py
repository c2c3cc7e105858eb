"""What a study measures cold beside the same repeated, and its bulk measures by system: seconds and joules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opjoule.comparison.study.rows import ENERGIES, PhaseRow, StudyTable
from opjoule.comparison.value_words import measure_words
from opjoule.opened.rounding import rounded
from opjoule.plots.phases import (
    WIDTH,
    Place,
    above_idle,
    bar,
    joules,
    joules_u,
    patch,
    place_name,
    point,
    scale_upwards,
    seconds,
    systems_of,
)
from opjoule.plots.style import INK, canvas, legend, name_places

COLD_HEIGHT_IN: Final = 5.2
BARS_HEIGHT_IN: Final = 2.9
LIGHT: Final = 0.4
"""Opacity of the repeated bars, which stand at the right of the cold ones."""
ROOM: Final = 4.0
"""Greatest value times this is where a logarithmic axis ends: ratios stand above the bars."""
LINEAR_ROOM: Final = 1.15
"""The same for an axis from zero."""
_UNITS: Final = {"s": "s", "j": "J", "bytes": "B", "w": "W"}


def cold_figures(study: StudyTable) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """For each place a figure of the phases of [cold] and one of the measures of [bars]: a name, and what draws it."""
    for place in dict.fromkeys(row.place for row in study.rows):
        reported = {row.phase for row in study.rows if row.place == place}
        if reported & set(study.cold):
            yield place_name(study, place, "cold"), partial(cold_figure, study, place)
        if reported & set(study.bars.values()):
            yield place_name(study, place, "bulk"), partial(bars_figure, study, place)


def cold_figure(study: StudyTable, place: Place) -> Figure:
    """Two bars a system and phase, cold and repeated, with the ratio of both: seconds above and joules below."""
    rows = [row for row in study.rows if row.place == place]
    looks, phases = systems_of(study, rows), [phase for phase in study.phases if phase in study.cold]
    figure = canvas(COLD_HEIGHT_IN)
    above, below = figure.subplots(2, 1, sharex=True)
    above.set_ylabel("time [s]")
    below.set_ylabel("energy [J]\n(points: above idle)")
    width = WIDTH / (2 * len(looks))
    in_figure = [row for row in rows if row.phase in {*phases, *study.cold.values()}]
    scale_upwards(above, [seconds([row]) for row in in_figure])
    scale_upwards(below, [joules([row], name) for row in in_figure for name in ENERGIES])
    for at, phase in enumerate(phases):
        for number, (system, looks_so) in enumerate(looks.items()):
            pair = [_of(rows, name, system) for name in (study.cold[phase], phase)]
            x = at + (2 * number + 0.5 - len(looks)) * width
            for own, place_x, opacity in zip(pair, (x, x + width), (1.0, LIGHT), strict=True):
                shown = looks_so | {"alpha": opacity}
                bar(above, own, seconds(own), place_x, width, shown)
                bar(below, own, joules(own, "energy_j"), place_x, width, shown, joules_u(own, "energy_j"))
                point(below, joules(own, "marginal_energy_j"), place_x)
            middle = x + width / 2
            _ratio(above, [seconds(own) for own in pair], [None, None], middle)
            of_energy = [joules(own, "energy_j") for own in pair]
            _ratio(below, of_energy, [joules_u(own, "energy_j") for own in pair], middle)
    for axes in (above, below):
        axes.set_xlim(-0.6, len(phases) - 0.4)
        axes.set_ylim(top=axes.get_ylim()[1] * (ROOM if axes.get_yscale() == "log" else LINEAR_ROOM))
    name_places(below, phases)
    above.tick_params(axis="x", length=0)
    grey: dict[str, Any] = {"color": INK, "edgecolor": INK, "linewidth": 0.4}
    handles = [patch(looks_so, system) for system, looks_so in looks.items()]
    handles += [patch(grey, "left: cold"), patch(grey | {"alpha": LIGHT}, "right: repeated")]
    legend(figure, [*handles, above_idle()], simulated=study.simulated, warnings=study.warnings)
    return figure


def _ratio(axes: Axes, pair: Sequence[float | None], us: Sequence[float | None], x: float) -> None:
    """How many times the second the first is, above both and their intervals."""
    cold, repeated = pair
    if cold is None or repeated is None or repeated <= 0 or cold <= 0:
        return
    top = max(value + (u or 0.0) for value, u in zip((cold, repeated), us, strict=True))
    words = rounded(cold / repeated, None, "1", 3)
    _words_above(axes, f"\N{MULTIPLICATION SIGN}{words}", x, top)


def _words_above(axes: Axes, words: str, x: float, y: float) -> None:
    at: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
    axes.annotate(words, (x, y), fontsize=6.5, color=INK, **at)


def bars_figure(study: StudyTable, place: Place) -> Figure:
    """A panel for each measure of [bars], and one for the joules of each of their phases; a bar a system, from 0."""
    rows = [row for row in study.rows if row.place == place]
    phases = list(dict.fromkeys(study.bars.values()))
    figure = canvas(BARS_HEIGHT_IN)
    panels = list(figure.subplots(1, len(study.bars) + len(phases), squeeze=False).flat)
    looks = systems_of(study, rows)
    for panel, (measure, phase) in zip(panels, study.bars.items(), strict=False):
        panel.set_title(f"{phase}: {measure_words(measure)}", fontsize=8)
        unit = _UNITS.get(measure.rpartition("_")[2], "1") if "_per_" not in measure else "1"
        for at, (system, looks_so) in enumerate(looks.items()):
            own = _of(rows, phase, system)
            known = [row.measures[measure] for row in own if measure in row.measures]
            _bar(panel, own, fmean(known) if known else None, None, unit, at, looks_so)
    for panel, phase in zip(panels[len(study.bars) :], phases, strict=True):
        panel.set_title(f"{phase}: energy", fontsize=8)
        for at, (system, looks_so) in enumerate(looks.items()):
            own = _of(rows, phase, system)
            _bar(panel, own, joules(own, "energy_j"), joules_u(own, "energy_j"), "J", at, looks_so)
            point(panel, joules(own, "marginal_energy_j"), at)
    for panel in panels:
        panel.set_xlim(-0.6, len(looks) - 0.4)
        panel.set_ylim(0.0, panel.get_ylim()[1] * 1.08)
        panel.set_xticks([])
        panel.set_yticks([])
        panel.spines[["top", "right", "left"]].set_visible(False)
    handles = [patch(looks_so, system) for system, looks_so in looks.items()]
    legend(figure, [*handles, above_idle()], simulated=study.simulated, warnings=study.warnings)
    return figure


def _bar(
    axes: Axes,
    rows: Sequence[PhaseRow],
    value: float | None,
    u: float | None,
    unit: str,
    x: float,
    look: Mapping[str, Any],
) -> None:
    """One bar with its value in words: linear axes of very unlike systems show little else."""
    bar(axes, rows, value, x, WIDTH, look, u)
    if value is not None and value > 0:
        _words_above(axes, str(rounded(value, u, unit, 3)), x, value + (u or 0.0))


def _of(rows: Sequence[PhaseRow], phase: str, system: str) -> list[PhaseRow]:
    return [row for row in rows if (row.phase, row.system) == (phase, system)]
