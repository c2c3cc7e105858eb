"""Where the joules above idle of every cell went, by kind of operation and by activity: a stacked bar for each."""

from typing import Final

from opjoule.pages.drawing.drawing import Bar, Bars, Drawing, interval
from opjoule.pages.plots.cells import Plot
from opjoule.results.comparison.cell import TOTAL, Plotted
from opjoule.results.long_table import NOT_IDENTIFIABLE
from opjoule.results.rounding import quantity_text, scaled


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


_LACKING: Final = "no run has a value for its energy above idle"
PLOTS: Final = (Plot("energy-by-activity", stacks, _LACKING, "Where the joules above idle went", stacks),)
