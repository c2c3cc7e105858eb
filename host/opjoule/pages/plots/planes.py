"""Energy against delay and energy against throughput: every cell is a point with two intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from opjoule.base.units import Quantity
from opjoule.pages.drawing.scales import limits_about
from opjoule.pages.plots.style import COLOURS, FILLS, INK, MARKERS, canvas, ends, error_limits, legend
from opjoule.results.comparison.plotted import ENERGY, THROUGHPUT, Plotted
from opjoule.results.rounding import OPERATIONS, scaled

HEIGHT_IN = 3.6
NAMED = 3
"""Maximum number of cells without a value that are named below a plane."""
LOG_FROM = 10.0
"""Ratio of the greatest to the least value from which an axis is logarithmic, if all values are above 0."""


def energy_and_delay(plotted: Plotted) -> Figure:
    """Joules above idle per operation against seconds per operation, with lines of equal energy-delay product.

    Source of the plane: Gonzalez, Horowitz, Energy dissipation in general purpose microprocessors, IEEE JSSC 31 (1996).
    """
    return _plane(plotted, delay=True, words="time per operation")


def energy_and_throughput(plotted: Plotted) -> Figure:
    """Joules above idle per operation against operations per second."""
    return _plane(plotted, delay=False, words="throughput")


def _plane(plotted: Plotted, *, delay: bool, words: str) -> Figure:
    figure = canvas(HEIGHT_IN)
    axes = figure.add_subplot()
    points = []
    for cell in plotted.cells:
        energy, other = cell.number(ENERGY), cell.delay if delay else cell.number(THROUGHPUT)
        if energy.value is not None and other.value:
            points.append((cell, other, energy))
    x_scale, x_unit = scaled([of.value or 0.0 for _, of, _ in points], "s" if delay else OPERATIONS)
    y_scale, y_unit = scaled([of.value or 0.0 for *_, of in points], "J")
    for cell, x, y in points:
        axes.errorbar(
            (x.value or 0.0) * x_scale,
            (y.value or 0.0) * y_scale,
            xerr=error_limits(x, x_scale),
            yerr=error_limits(y, y_scale),
            marker=MARKERS[plotted.groups.index(plotted.group_of(cell)) % len(MARKERS)],
            **_filled(plotted.series.index(plotted.series_of(cell))),
            ecolor=INK,
            elinewidth=0.8,
            capsize=2.0,
        )
    _scale(axes, [of for _, of, _ in points], x_scale, "x")
    _scale(axes, [of for *_, of in points], y_scale, "y")
    lacking = [cell for cell in plotted.cells if cell not in [known for known, *_ in points]]
    names = "; ".join(plotted.name_of(cell) for cell in lacking[:NAMED])
    more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
    axes.set_xlabel(f"{words} [{x_unit}]" + (f"\nwithout a value: {names}{more}" if lacking else ""))
    axes.set_ylabel(f"energy above idle per operation [{y_unit}]")
    axes.grid(color="#DDDDDD", linewidth=0.5)
    handles = _handles(plotted)
    if delay and axes.get_xscale() == axes.get_yscale() == "log":
        handles.append(_equal_products(axes))
    return legend(figure, handles, simulated=plotted.simulated, warnings=plotted.warnings)


def _scale(axes: Axes, values: Sequence[Quantity], scale: float, which: str) -> None:
    """Scales an axis: logarithmic if all values are above 0 and far apart, else from 0. Cuts intervals as for bars."""
    known = [(of.value * scale, (of.u or 0.0) * scale) for of in values if of.value is not None]
    alone = [value for value, _ in known] or [1.0]
    set_limits = getattr(axes, f"set_{which}lim")
    if min(alone) > 0 and max(alone) / min(alone) >= LOG_FROM:
        getattr(axes, f"set_{which}scale")("log")
        axis = getattr(axes, f"{which}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
        set_limits(*limits_about(known, logarithmic=True))
        return
    set_limits(*ends(values, scale))


def _equal_products(axes: Axes) -> Line2D:
    """Draws lines of equal energy-delay product, a factor of ten apart. Returns: the entry of the legend."""
    x, y = axes.get_xlim(), axes.get_ylim()
    along = np.geomspace(*x, 100)
    style: dict[str, Any] = {"color": "#777777", "linewidth": 0.7, "linestyle": (0, (4, 3))}
    for power in range(math.floor(math.log10(x[0] * y[0])), math.ceil(math.log10(x[1] * y[1])) + 1):
        axes.plot(along, 10.0**power / along, zorder=0, **style)
    axes.set(xlim=x, ylim=y)
    return Line2D([], [], label="equal energy times time, by tens", **style)


def _filled(series: int) -> dict[str, Any]:
    """Colour and fill style of a series' points."""
    style = {"color": COLOURS[series % len(COLOURS)], "fillstyle": FILLS[series % len(FILLS)]}
    edge = {"markerfacecoloralt": "white", "markeredgecolor": INK, "markeredgewidth": 0.7}
    return {**style, **edge, "markersize": 6.5, "linestyle": "none"}


def _handles(plotted: Plotted) -> list[Line2D]:
    """Legend entries: the groups by the shape of their points."""
    series = [Line2D([], [], marker="o", label=name, **_filled(at)) for at, name in enumerate(plotted.series)]
    shape: dict[str, Any] = {"color": "white", "markeredgecolor": INK, "linestyle": "none"}
    markers = [(name, MARKERS[at % len(MARKERS)]) for at, name in enumerate(plotted.groups)]
    groups = [Line2D([], [], marker=marker, label=name, **shape) for name, marker in markers]
    return series + (groups if len(plotted.groups) > 1 else [])
