"""Energy of every cell: a point in a plane with delay or throughput, and a stack by kind and activity."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from opjoule.base.units import Quantity
from opjoule.pages.drawing.drawing import Bar, Bars, Chart, Drawing, DrawnAxis, Point, interval
from opjoule.pages.plots.cells import Plot
from opjoule.results.comparison.cell import ENERGY, THROUGHPUT, TOTAL, ComparedCell, Plotted
from opjoule.results.long_table import NOT_IDENTIFIABLE
from opjoule.results.rounding import OPERATIONS, quantity_text, scaled

NAMED: Final = 3
"""Maximum number of cells without a value that are named."""


def energy_and_delay(plotted: Plotted) -> Drawing | None:
    """Joules above idle per operation against seconds per operation, with lines of equal energy-delay product.

    Source of the plane: Gonzalez, Horowitz, Energy dissipation in general purpose microprocessors, IEEE JSSC 31 (1996).
    """
    points = [(cell, cell.delay, cell.number(ENERGY)) for cell in plotted.cells]
    return _plane(plotted, points, "time per operation", "s", "Further down and to the left is better.")


def energy_and_throughput(plotted: Plotted) -> Drawing | None:
    """Joules above idle per operation against operations per second."""
    points = [(cell, cell.number(THROUGHPUT), cell.number(ENERGY)) for cell in plotted.cells]
    return _plane(plotted, points, "throughput", OPERATIONS, "Further down and to the right is better.")


def _plane(
    plotted: Plotted, cells: Sequence[tuple[ComparedCell, Quantity, Quantity]], words: str, unit: str, better: str
) -> Drawing | None:
    known = [(cell, x, y) for cell, x, y in cells if x.value is not None and y.value is not None]
    if not known:
        return None
    x_scale, x_unit = scaled([float(of) for _, of, _ in known], unit)
    y_scale, y_unit = scaled([float(of) for *_, of in known], "J")
    points = [
        Point(
            float(x) * x_scale,
            float(y) * y_scale,
            plotted.series.index(plotted.series_of(cell)),
            plotted.groups.index(plotted.group_of(cell)),
            f"{plotted.name_of(cell)}: {quantity_text(y)}, {quantity_text(x)}{' an operation' if unit == 's' else ''}",
            (x.u or 0.0) * x_scale,
            (y.u or 0.0) * y_scale,
        )
        for cell, x, y in known
    ]
    x_axis = DrawnAxis.wide(words, x_unit, [(point.x, point.x_u) for point in points])
    y_axis = DrawnAxis.wide("energy above idle per operation", y_unit, [(point.y, point.y_u) for point in points])
    products = unit == "s" and x_axis.logarithmic and y_axis.logarithmic
    lacking = [plotted.name_of(cell) for cell in plotted.cells if cell not in [cell for cell, *_ in known]]
    more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
    label = f"Energy above idle per operation against {words}, one point per cell; the tables have the numbers."
    guides = [*_equal_products(x_axis, y_axis)] if products else ()
    return Drawing(
        [Chart(x_axis, y_axis, points, label, guides=guides, guide="equal energy times time, by tens")],
        plotted.series,
        plotted.groups if len(plotted.groups) > 1 else (),
        note=f"{better} Intervals: 95 %.",
        lacking=f"without a value: {'; '.join(lacking[:NAMED])}{more}" if lacking else "",
        simulated=plotted.simulated,
        warnings=plotted.warnings,
    )


def _equal_products(x: DrawnAxis, y: DrawnAxis) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Lines of equal energy-delay product, a factor of ten apart; straight on logarithmic axes."""
    for power in range(math.ceil(math.log10(x.low * y.low)), math.floor(math.log10(x.high * y.high)) + 1):
        product = 10.0**power
        left, right = max(x.low, product / y.high), min(x.high, product / y.low)
        yield (left, right), (product / left, product / right)


def stacks(plotted: Plotted) -> Drawing | None:
    """One stacked bar for each cell; the interval (95 %) belongs to the total."""
    if not any(plotted.stacks):
        return None
    colours = {**{name: number for number, name in enumerate(plotted.part_names)}, NOT_IDENTIFIABLE: None}
    totals = [cell.number(TOTAL) for cell in plotted.cells]
    factor, unit = scaled([float(total) for total in totals if total.value is not None], "J")
    bars = []
    for at, (cell, total, parts) in enumerate(zip(plotted.cells, totals, plotted.stacks, strict=True)):
        of = total.scale(factor)
        lengths = [(part * factor, colours[name]) for name, part in parts.items()]
        limits, text = interval(of.value, of.u), quantity_text(total)
        bars.append(Bar(plotted.name_of(cell), at, 0, of.value, limits, lengths, text=text))
    mark = ", SIMULATED" if plotted.simulated else ""
    caption = f"Energy above idle by kind and activity{mark}"
    groups, heads = [bar.name for bar in bars], ("cell", "above idle")
    panel = Bars("energy above idle", unit, bars, groups, caption=caption, heads=heads)
    about = plotted.simulated, plotted.warnings
    return Drawing([panel], plotted.part_names, rest=NOT_IDENTIFIABLE, simulated=about[0], warnings=about[1])


_NO_COST: Final = "no run has values for its energy above idle per operation and its throughput"
_NO_TOTAL: Final = "no run has a value for its energy above idle"
PLOTS: Final = (
    Plot("energy-delay", energy_and_delay, _NO_COST, "Energy against time"),
    Plot("energy-throughput", energy_and_throughput, _NO_COST),
    Plot("energy-by-activity", stacks, _NO_TOTAL, "Where the joules above idle went", stacks),
)
