"""Each run against the mean of its cell, in the order of measuring: whether a figure drifted meanwhile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Final

from opjoule.base.coverage import student_t
from opjoule.base.units import Quantity
from opjoule.pages.drawing.drawing import Chart, Drawing, DrawnAxis, Point
from opjoule.pages.plots.cells import Plot
from opjoule.results.comparison.cell import Plotted
from opjoule.results.rounding import percent
from opjoule.runs.evaluation.quantities.definition import Definition


@dataclass(frozen=True)
class TimedRun:
    """One run."""

    cell: int
    """Number of its cell."""
    time_s: float
    """Time since the start of the first run."""
    share: float
    """The run's figure divided by the mean of its cell, less 1."""


@dataclass(frozen=True)
class Drift:
    """Straight line through all runs, each relative to the mean of its own cell."""

    runs: Sequence[TimedRun]
    slope_per_s: Quantity | None
    """Relative change of the figure [1/s], 95.45 %; None if too few cells have several runs."""

    @property
    def length_s(self) -> float:
        """Time from the first run's start to the last run's start."""
        return max((run.time_s for run in self.runs), default=0.0)

    @property
    def whole(self) -> Quantity | None:
        """Relative change from the first to the last run."""
        return self.slope_per_s and self.slope_per_s.scale(self.length_s, "1")

    def shift(self, cells: Sequence[int]) -> Quantity | None:
        """Relative change of the mean of some cells by the drift, from the times of their measurement."""
        if self.slope_per_s is None:
            return None
        times_s = [run.time_s for run in self.runs if run.cell in cells]
        later_s = fmean(times_s) - fmean(run.time_s for run in self.runs)
        return self.slope_per_s.scale(later_s, "1")

    def time_s(self, cells: Sequence[int]) -> float:
        """Mean time of the runs of some cells."""
        return fmean(run.time_s for run in self.runs if run.cell in cells)


def drift_of(plotted: Plotted, path: str) -> Drift:
    """Drift of a number of result.json during the measurement; runs without the number or a time are left out."""
    points: list[tuple[int, float, float]] = []
    for number, cell in enumerate(plotted.cells):
        mean = cell.number(path).value
        for run, quantity in zip(cell.runs, cell.numbers(path), strict=True):
            if mean and quantity.value is not None and (at_s := _seconds(run.started_utc)) is not None:
                points.append((number, at_s, quantity.value / mean - 1))
    points.sort(key=lambda point: point[1])
    runs = [TimedRun(cell, at_s - points[0][1], share) for cell, at_s, share in points]
    return Drift(runs, _slope(runs))


def _seconds(started_utc: str) -> float | None:
    try:
        return datetime.fromisoformat(started_utc).timestamp()
    except ValueError:
        return None


def _slope(runs: Sequence[TimedRun]) -> Quantity | None:
    """Least squares with a separate intercept for each cell: times and shares are relative to the means of their cell.

    Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapters 4 and 10.
    """
    cells = {run.cell for run in runs}
    apart = []
    for group in ([run for run in runs if run.cell == cell] for cell in cells):
        mean_s, mean_share = fmean(run.time_s for run in group), fmean(run.share for run in group)
        apart += [(run.time_s - mean_s, run.share - mean_share) for run in group]
    freedom = len(runs) - len(cells) - 1
    squares_s2 = sum(time_s**2 for time_s, _ in apart)
    if freedom < 1 or squares_s2 == 0.0:
        return None
    slope = sum(time_s * share for time_s, share in apart) / squares_s2
    left = sum((share - slope * time_s) ** 2 for time_s, share in apart)
    return Quantity(slope, student_t(freedom) * math.sqrt(left / freedom / squares_s2), "1/s")


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
