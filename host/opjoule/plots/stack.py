"""Where the joules above idle went in every cell, by kind of operation and by activity, as stacked bars."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from opjoule.campaign.plotted import NOT_TOLD, TOTAL, Plotted
from opjoule.plots.style import COLOURS, HATCHES, INK, canvas, ends, legend, name_places
from opjoule.report.quantities import NONE
from opjoule.report.rounding import scaled

HEIGHT_IN: Final = 3.2


def activity_bars(plotted: Plotted) -> Figure:
    """One bar a cell; the interval (k = 2) is that of the whole."""
    figure = canvas(HEIGHT_IN)
    axes = figure.add_subplot()
    stacks = [cell.parts for cell in plotted.cells]
    totals = [cell.number(TOTAL) for cell in plotted.cells]
    names = [*dict.fromkeys(name for each in stacks for name in each if name != NOT_TOLD), NOT_TOLD]
    factor, unit = scaled([of.value for of in totals if of.value is not None], "J")
    for at, (stack, total) in enumerate(zip(stacks, totals, strict=True)):
        above = below = 0.0
        for name in [name for name in names if name in stack]:
            value = stack[name] * factor
            axes.bar(at, value, 0.7, bottom=above if value > 0 else below, **_look(names, name))
            above, below = above + max(value, 0.0), below + min(value, 0.0)
        if total.value is None:
            axes.annotate(NONE, (at, 0.0), ha="center", va="bottom", color=INK)
        elif total.u is not None:
            axes.errorbar(
                at, total.value * factor, yerr=total.u * factor, ecolor=INK, elinewidth=0.9, capsize=3.0
            )
    name_places(axes, [plotted.name_of(cell) for cell in plotted.cells])
    axes.set_ylabel(f"energy above idle [{unit}]")
    axes.set_ylim(*ends(totals, factor))
    axes.set_xlim(-0.6, len(stacks) - 0.4)
    axes.axhline(0.0, color=INK, linewidth=0.6)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    legend(figure, [Patch(label=name, **_look(names, name)) for name in names], simulated=plotted.simulated)
    return figure


def _look(names: list[str], name: str) -> dict[str, Any]:
    at = names.index(name)
    colour = "#E8E8E8" if name == NOT_TOLD else COLOURS[at % (len(COLOURS) - 1)]
    hatch = "" if name == NOT_TOLD else HATCHES[at % len(HATCHES)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": INK, "linewidth": 0.5}
