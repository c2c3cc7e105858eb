"""Grouped bars with points on a second axis, which show two quantities of every cell, as in study S1."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from opjoule.base.units import Quantity
from opjoule.pages.drawing.scales import stacked
from opjoule.pages.plots.style import (
    COLOURS,
    HATCHES,
    INK,
    canvas,
    ends,
    error_limits,
    fill,
    legend,
    lie_apart,
    name_places,
)
from opjoule.results.comparison.costs import kind_of
from opjoule.results.comparison.plotted import TOTAL, Plotted, PlottedCell, known
from opjoule.results.quantities import NOT_IDENTIFIABLE
from opjoule.results.rounding import NONE, scaled

WIDTH = 0.8
"""Width of all bars of one group; groups are 1 apart."""
HEIGHT_IN = 2.9
TOLD_IN = 1.6
"""Height of the panel of one kind of operation."""
NAMES_IN = 0.9
"""Height of the names below the panels, and of the legend."""
LOG_ROOM = 2.0
"""Factor by which a logarithmic axis extends beyond its bars at both ends."""
INTERVAL_AT = -0.24
POINTS_AT = {1: (0.2,), 2: (0.06, 0.32)}
"""Number of point series -> distances of points from a bar's middle, in parts of its width, off the interval."""


@dataclass(frozen=True)
class Drawn:
    """A quantity, given by its path in result.json, with the label of its axis."""

    path: str
    words: str
    unit: str


def bars(plotted: Plotted, bar: Drawn, points: Sequence[Drawn], points_words: str) -> Figure:
    """Bars of one quantity against the left axis, points of one or two others against the right one.

    An axis is logarithmic if its values lie far apart. Intervals (95 %) are drawn if they are stated. A cell without a
    value is shown as a dash; a part that is not identifiable says so.
    """
    figure = canvas(HEIGHT_IN)
    left = figure.add_subplot()
    right = left.twinx()
    left.set_ylabel(f"{bar.words} [{_bars(left, plotted, bar)}]  (bars)")
    values = [value for point in points for value in known(plotted.cells, point.path)]
    scale, unit = scaled(values, points[0].unit)
    step = WIDTH / len(plotted.series)
    for x, _, cell in _places(plotted):
        for order, point in enumerate(points):
            _point(right, cell, point, scale, x + step * POINTS_AT[len(points)][order], order)
    name_places(left, plotted.groups)
    right.set_ylabel(f"{points_words} [{unit}]  (points)")
    _scale_axis(right, [cell.number(of.path) for cell in plotted.cells for of in points], scale)
    right.spines["top"].set_visible(False)
    handles = [
        *_series_handles(plotted),
        *(Line2D([], [], label=point.words, **_marker(order)) for order, point in enumerate(points)),
    ]
    return legend(figure, handles, simulated=plotted.simulated, warnings=plotted.warnings)


def told_bars(plotted: Plotted) -> Figure:
    """A panel for each kind of operation with what one costs all told in each cell, some of which has it."""
    figure = canvas(NAMES_IN + TOLD_IN * len(plotted.told))
    panels = figure.subplots(len(plotted.told), 1, squeeze=False)[:, 0]
    for axes, of in zip(panels, plotted.told, strict=True):
        told = Drawn(of.key, f"{kind_of(of)}, all told", of.unit)
        axes.set_ylabel(f"{told.words} [{_bars(axes, plotted, told)}]")
        axes.set_xticks([])
    name_places(panels[-1], plotted.groups)
    return legend(figure, _series_handles(plotted), simulated=plotted.simulated, warnings=plotted.warnings)


def _bars(axes: Axes, plotted: Plotted, bar: Drawn) -> str:
    """Draws a bar of each cell and scales the axis. Returns: its unit."""
    scale, unit = scaled(known(plotted.cells, bar.path), bar.unit)
    step = WIDTH / len(plotted.series)
    for x, number, cell in _places(plotted):
        _bar(axes, cell, bar, scale, x, step, number)
    axes.set_xlim(-0.5, len(plotted.groups) - 0.5)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    _scale_axis(axes, [cell.number(bar.path) for cell in plotted.cells], scale)
    return unit


def _places(plotted: Plotted) -> Iterator[tuple[float, int, PlottedCell | None]]:
    """Middle of each bar, number of its series, and its cell, if there is one."""
    step = WIDTH / len(plotted.series)
    for at, group in enumerate(plotted.groups):
        for number, series in enumerate(plotted.series):
            yield at - WIDTH / 2 + step * (number + 0.5), number, plotted.cell(series, group)


def _series_handles(plotted: Plotted) -> list[Patch]:
    return [Patch(label=name, **fill(at)) for at, name in enumerate(plotted.series)]


def _scale_axis(axes: Axes, shown: Sequence[Quantity], scale: float) -> None:
    values = [of.value for of in shown if of.value is not None]
    if lie_apart(values):
        axes.set_yscale("log")
        axes.set_ylim(min(values) * scale / LOG_ROOM, max(values) * scale * LOG_ROOM)
    else:
        axes.set_ylim(*ends(shown, scale))


def _bar(axes: Axes, cell: PlottedCell | None, of: Drawn, scale: float, x: float, step: float, number: int) -> None:
    quantity = cell.number(of.path) if cell else None
    if quantity is None or quantity.value is None:
        place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
        words = cell.text(of.path) if cell else NONE
        axes.annotate(words, (x, 0.03), **place, color=INK, rotation=0 if words == NONE else 90)
        return
    value = quantity.value * scale
    axes.bar(x, value, step * 0.92, **fill(number))
    if limits := error_limits(quantity, scale):
        axes.errorbar(x + INTERVAL_AT * step, value, yerr=limits, **_INTERVAL)


def _point(axes: Axes, cell: PlottedCell | None, of: Drawn, scale: float, x: float, order: int) -> None:
    quantity = cell.number(of.path) if cell else None
    if quantity is None or quantity.value is None:
        return
    limits = error_limits(quantity, scale)
    axes.errorbar(x, quantity.value * scale, yerr=limits, zorder=5, **_marker(order), **_INTERVAL)


_INTERVAL: dict[str, Any] = {"ecolor": INK, "elinewidth": 0.9, "capsize": 2.0}


def _marker(order: int) -> dict[str, Any]:
    """Style of dark points with a light edge, which are visible on bars of every colour."""
    marker, face, edge = ("o", "white", INK) if order % 2 else ("D", INK, "white")
    colours = {"markerfacecolor": face, "markeredgecolor": edge, "markeredgewidth": 0.8}
    return {"marker": marker, "markersize": 5.0, **colours, "linestyle": "none"}


STACK_HEIGHT_IN: Final = 3.2
UPRIGHT_MAX: Final = 16
"""Maximum number of vertical bars; more bars are drawn horizontally, so that their names are legible."""
LETTERS_MAX: Final = 90
"""Maximum number of letters in the names of all vertical bars together."""
ROW_IN: Final = 0.17


def activity_bars(plotted: Plotted) -> Figure:
    """One stacked bar for each cell; the interval (95 %) belongs to the total."""
    cells = plotted.cells
    named = [plotted.name_of(cell) for cell in cells]
    lie = len(cells) > UPRIGHT_MAX or sum(map(len, named)) > LETTERS_MAX
    figure = canvas(max(STACK_HEIGHT_IN, 1.2 + ROW_IN * len(cells)) if lie else HEIGHT_IN)
    axes = figure.add_subplot()
    names = [*plotted.part_names, NOT_IDENTIFIABLE]
    totals = [cell.number(TOTAL) for cell in cells]
    factor, unit = scaled([of.value for of in totals if of.value is not None], "J")
    for at, (parts, total) in enumerate(zip(plotted.stacks, totals, strict=True)):
        _stack(axes, at, names, parts, factor, lie=lie)
        _total(axes, at, total, factor, lie=lie)
    words, limits, places = f"energy above idle [{unit}]", ends(totals, factor), (-0.6, len(cells) - 0.4)
    if lie:
        axes.set(yticks=range(len(cells)), yticklabels=named, ylim=places[::-1], xlim=limits, xlabel=words)
        axes.tick_params(axis="y", length=0)
        axes.axvline(0.0, color=INK, linewidth=0.6)
    else:
        name_places(axes, named)
        axes.set(xlim=places, ylim=limits, ylabel=words)
        axes.axhline(0.0, color=INK, linewidth=0.6)
    axes.grid(axis="x" if lie else "y", color="#DDDDDD", linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    handles = [Patch(label=name, **_part_style(names, name)) for name in names]
    return legend(figure, handles, simulated=plotted.simulated, warnings=plotted.warnings)


def _stack(axes: Axes, at: int, names: list[str], parts: Mapping[str, float], factor: float, *, lie: bool) -> None:
    """Draws one bar from its parts; `lie`: horizontally."""
    bar = axes.barh if lie else axes.bar
    for name, (start, end) in zip(parts, stacked(part * factor for part in parts.values()), strict=True):
        bar(at, end - start, 0.7, start, **_part_style(names, name))


def _total(axes: Axes, at: int, total: Quantity, factor: float, *, lie: bool) -> None:
    """Draws the interval of a bar's total, or a dash if there is none."""
    if total.value is None:
        place, way = ((0.0, at), ("left", "center")) if lie else ((at, 0.0), ("center", "bottom"))
        axes.annotate(NONE, place, ha=way[0], va=way[1], color=INK)
    elif limits := error_limits(total, factor):
        end = total.value * factor
        if lie:
            axes.errorbar(end, at, xerr=limits, ecolor=INK, elinewidth=0.9, capsize=1.5)
        else:
            axes.errorbar(at, end, yerr=limits, ecolor=INK, elinewidth=0.9, capsize=3.0)


def _part_style(names: list[str], name: str) -> dict[str, Any]:
    at = names.index(name)
    colour = "#E8E8E8" if name == NOT_IDENTIFIABLE else COLOURS[at % (len(COLOURS) - 1)]
    hatch = "" if name == NOT_IDENTIFIABLE else HATCHES[at % len(HATCHES)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": INK, "linewidth": 0.5}
