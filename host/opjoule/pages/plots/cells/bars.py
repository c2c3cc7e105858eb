"""Bars of one or two quantities of every cell, grouped: the pairs as in study S1, and what each operation costs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from opjoule.pages.drawing.drawing import Bar, Bars, Dot, Drawing, interval
from opjoule.pages.plots.cells import Plot
from opjoule.results.comparison.cell import ComparedCell, Plotted, known
from opjoule.results.comparison.compared_run import kind_of
from opjoule.results.comparison.value_words import quantity_words
from opjoule.results.rounding import scaled
from opjoule.runs.evaluation.quantities.definition import Definition

Number = tuple[str, str, str]
"""Path of a number in result.json, its words, its unit."""


def bars(plotted: Plotted, of: Definition) -> Drawing:
    """A bar of each cell with its interval (95 %) and a point for each run."""
    mark = ", SIMULATED" if plotted.simulated else ""
    caption = f"{quantity_words(of)}: bars with interval, a point for each run{mark}"
    made = _bars(plotted, (of.key, quantity_words(of), of.unit))
    return _drawing(plotted, [replace(made, caption=caption, heads=("cell", "mean (95 %)"))])


def pair(plotted: Plotted, bar: Number, points: Sequence[Number], words: str) -> Drawing | None:
    """Bars of one quantity against the left axis, points of one or two others against the right one."""
    if not known(plotted.cells, bar[0]):
        return None
    values = [value for path, *_ in points for value in known(plotted.cells, path)]
    factor, unit = scaled(values, points[0][2])
    dots = {name: [*_dots(plotted, path, factor)] for path, name, _ in points}
    return _drawing(plotted, [replace(_bars(plotted, bar), dots=dots, right=(words, unit))])


def told(plotted: Plotted) -> Drawing | None:
    """A panel for each kind of operation with what one costs all told in each cell, some of which has it."""
    kinds = [(of.key, f"{kind_of(of)}, all told", of.unit) for of in plotted.told]
    if not any(known(plotted.cells, path) for path, *_ in kinds):
        return None
    return _drawing(plotted, [_bars(plotted, kind) for kind in kinds])


def _drawing(plotted: Plotted, panels: Sequence[Bars]) -> Drawing:
    return Drawing(panels, plotted.series, simulated=plotted.simulated, warnings=plotted.warnings)


def _bars(plotted: Plotted, of: Number) -> Bars:
    path, words, unit = of
    numbers = [cell.number(path) for cell in plotted.cells]
    factor, shown = scaled([float(number) for number in numbers if number.value is not None], numbers[0].unit or unit)
    made = []
    for cell, number in zip(plotted.cells, numbers, strict=True):
        runs = [float(of_run) * factor for of_run in cell.numbers(path) if of_run.value is not None]
        group, place = _place(plotted, cell)
        in_unit = number.scale(factor)
        made.append(
            Bar(
                plotted.name_of(cell),
                group,
                place,
                in_unit.value,
                interval(in_unit.value, in_unit.u),
                [(in_unit.value or 0.0, place)],
                text=cell.text(path),
                reason=number.reason,
                runs=runs,
            )
        )
    return Bars(words, shown, made, plotted.groups, len(plotted.series))


def _place(plotted: Plotted, cell: ComparedCell) -> tuple[int, int]:
    return plotted.groups.index(plotted.group_of(cell)), plotted.series.index(plotted.series_of(cell))


def _dots(plotted: Plotted, path: str, factor: float) -> Iterator[Dot]:
    for cell in plotted.cells:
        number = cell.number(path).scale(factor)
        if number.value is not None:
            yield *_place(plotted, cell), number.value, interval(number.value, number.u)


def _plot(name: str, *pairs: tuple[Number, Sequence[Number], str]) -> Plot:
    """The plot of a pair; the last one is that of a study's figures."""
    drawn = [partial(pair, bar=bar, points=points, words=words) for bar, points, words in pairs]
    return Plot(name, drawn[0], f"no run has a value for its {pairs[0][0][1]}", of_study=drawn[-1])


_BANDWIDTH: Final = ("bandwidth_bytes_per_s", "bandwidth", "B/s")
_ENERGY: Final = ("energy_j", "energy", "J")
_ENERGY_OF_RUN: Final = ("run_energy_j", "energy of the run", "J")
_POWER: Final = [("power_w", "power", "W")]
_PROCESSOR: Final = ("cpu_fraction", "processor use", "1")
_DISK: Final = [("disk_written_bytes", "disk written", "B"), ("disk_read_bytes", "disk read", "B")]
_DISK_SUM: Final = [("disk_bytes", "disk read and written", "B")]
PLOTS: Final = (
    _plot("bandwidth-latency", (_BANDWIDTH, [("latency_s.mean", "mean latency", "s")], "mean latency")),
    _plot("energy-power", (_ENERGY, _POWER, "power"), (_ENERGY_OF_RUN, _POWER, "power")),
    _plot("cpu-io", (_PROCESSOR, _DISK, "disk"), (_PROCESSOR, _DISK_SUM, "disk I/O")),
    Plot("energy-all-told", told, "no run has a value for its energy all told of each of several kinds of operation"),
)
