"""Where the joules above idle went in every cell, by kind of operation and by activity, as stacked bars."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from opjoule.comparison.plotted import NOT_TOLD, TOTAL, Plotted, PlottedCell
from opjoule.drawing.scales import stacked
from opjoule.opened.quantities import NONE
from opjoule.opened.rounding import scaled
from opjoule.plots.style import COLOURS, HATCHES, INK, canvas, ends, error_limits, legend, name_places

HEIGHT_IN: Final = 3.2
UPRIGHT_MAX: Final = 16
"""More bars than this lie, one below the other: their names would not be read below them."""
LETTERS_MAX: Final = 90
"""So do bars whose names have more letters than this in all."""
ROW_IN: Final = 0.17


def activity_bars(plotted: Plotted) -> Figure:
    """One bar a cell; the interval (95 %) is that of the whole."""
    cells = plotted.cells
    named = [plotted.name_of(cell) for cell in cells]
    lie = len(cells) > UPRIGHT_MAX or sum(map(len, named)) > LETTERS_MAX
    figure = canvas(max(HEIGHT_IN, 1.2 + ROW_IN * len(cells)) if lie else HEIGHT_IN)
    axes = figure.add_subplot()
    names = [*dict.fromkeys(name for cell in cells for name in cell.parts if name != NOT_TOLD), NOT_TOLD]
    totals = [cell.number(TOTAL) for cell in cells]
    factor, unit = scaled([of.value for of in totals if of.value is not None], "J")
    for at, cell in enumerate(cells):
        _stack(axes, at, cell, names, factor, lie=lie)
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
    legend(
        figure,
        [Patch(label=name, **_look(names, name)) for name in names],
        simulated=plotted.simulated,
        warnings=plotted.warnings,
    )
    return figure


def _stack(axes: Axes, at: int, cell: PlottedCell, names: list[str], factor: float, *, lie: bool) -> None:
    """One bar, from its parts."""
    bar = axes.barh if lie else axes.bar
    present = [name for name in names if name in cell.parts]
    for name, (start, end) in zip(
        present, stacked(cell.parts[name] * factor for name in present), strict=True
    ):
        bar(at, end - start, 0.7, start, **_look(names, name))
    total = cell.number(TOTAL)
    if total.value is None:
        place, way = ((0.0, at), ("left", "center")) if lie else ((at, 0.0), ("center", "bottom"))
        axes.annotate(NONE, place, ha=way[0], va=way[1], color=INK)
    elif total.u is not None:
        end = total.value * factor
        limits = error_limits(end, total.u * factor)
        if lie:
            axes.errorbar(end, at, xerr=limits, ecolor=INK, elinewidth=0.9, capsize=1.5)
        else:
            axes.errorbar(at, end, yerr=limits, ecolor=INK, elinewidth=0.9, capsize=3.0)


def _look(names: list[str], name: str) -> dict[str, Any]:
    at = names.index(name)
    colour = "#E8E8E8" if name == NOT_TOLD else COLOURS[at % (len(COLOURS) - 1)]
    hatch = "" if name == NOT_TOLD else HATCHES[at % len(HATCHES)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": INK, "linewidth": 0.5}
