"""Each run against the mean of its cell, in the order of measuring: whether a figure drifted meanwhile."""

from typing import Final

from opjoule.pages.drawing.drawing import Chart, Drawing, DrawnAxis, Point
from opjoule.pages.plots.drift import Drift, drift_of
from opjoule.pages.plots.plot import Plot
from opjoule.results.comparison.plotted import Plotted
from opjoule.results.rounding import percent
from opjoule.runs.evaluation.quantities.definition import Definition


def course(plotted: Plotted, of: Definition, drift: Drift) -> Drawing | None:
    """Each run of a quantity in order of time, with the straight line of the drift; None for fewer than two runs."""
    if len(drift.runs) < 2:
        return None
    points = [
        Point(
            run.time_s / 60,
            100 * run.share,
            plotted.series.index(plotted.series_of(plotted.cells[run.cell])),
            words=f"{plotted.name_of(plotted.cells[run.cell])}: {percent(run.share)}",
        )
        for run in drift.runs
    ]
    guides = []
    if drift.slope_per_s is not None:
        ends, middle = (0.0, drift.length_s / 60), sum(point.x for point in points) / len(points)
        guides.append((ends, [100 * float(drift.slope_per_s) * 60 * (end - middle) for end in ends]))
    x = DrawnAxis.about("since the first run began", "min", [(point.x, 0.0) for point in points])
    y = DrawnAxis.about("against the cell's mean", "%", [(point.y, 0.0) for point in points])
    label = f"{of.label or of.key} of each run against the mean of its cell, over the time of measuring."
    chart = Chart(x, y, points, label, guides=guides, guide="straight line through all runs")
    return Drawing([chart], plotted.series, simulated=plotted.simulated, warnings=plotted.warnings)


def _of_headline(plotted: Plotted) -> Drawing | None:
    of = plotted.runs[0].quantities.headline
    return course(plotted, of, drift_of(plotted, of.key))


PLOTS: Final = (Plot("order-of-measuring", _of_headline, "fewer than two runs have a value and a time"),)
