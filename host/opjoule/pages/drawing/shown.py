"""Drawings in a page: charts as SVG, bars and ratios as rows of a table, each with a strip next to its numbers.

Strips are therefore hidden from screen readers; they keep their size on any screen and cut no label.
"""

from collections.abc import Iterable
from typing import Final

from opjoule.pages.drawing.drawing import Bar, Bars, Chart, Drawing, Mark
from opjoule.pages.drawing.markup import Child, Element, element, row, table
from opjoule.pages.drawing.scales import REACH, Limits, Scale, limits_from_zero, stacked, tick_words
from opjoule.pages.drawing.svg import KINDS, chart, shape_mark
from opjoule.results.rounding import NONE

MARGIN: Final = 1.04
REACH_TOGETHER: Final = 1.5
"""Greatest extension of an axis of ratios, as a factor, to show their simultaneous interval."""
HATCHES: Final = 3
"""hatch-0 to hatch-2: hatchings that distinguish series with the same colour."""
TICKS: Final = 4
UNTOLD: Final = "untold"
"""Class of what cannot be told apart."""


def ratio_axis(entries: Iterable[tuple[float, Limits, Limits]]) -> Scale:
    """Logarithmic scale, in per cent of a strip's width, for 1 and every ratio, and for their intervals unless these
    reach far beyond the ratios.

    Each entry is (ratio above 0, ends of its interval, ends of the simultaneous interval).
    """
    known = list(entries)
    ratios = [1.0, *(ratio for ratio, *_ in known)]
    low, high = 0.9, 1.1
    for _, *intervals in known:
        for (least, most), reach in zip(intervals, (REACH, REACH_TOGETHER), strict=True):
            low = min(low, max(least, min(ratios) / reach))
            high = max(high, min(most, max(ratios) * reach))
    return Scale(low / MARGIN, high * MARGIN, logarithmic=True)


def shown(drawing: Drawing) -> list[Element]:
    """The elements of a drawing: legend, panels, how to read them. Fields are drawn for print alone."""
    charts = [panel for panel in drawing.panels if isinstance(panel, Chart)]
    made = [*map(chart, charts), *(bars_table(panel) for panel in drawing.panels if isinstance(panel, Bars))]
    guides = [f"Dashed: {panel.guide}." for panel in charts if panel.guides]
    words = " ".join(filter(None, (drawing.note, *guides, drawing.lacking)))
    shapes = [element("li", shape_mark(at), f" {name}") for at, name in enumerate(drawing.groups)]
    if charts or len(drawing.series) + bool(drawing.rest) > 1:
        made.insert(0, legend(drawing.series, *shapes, rest=drawing.rest))
    return [*made, *([element("p", words, class_="reason")] if words else [])]


def bars_table(of: Bars) -> Element:
    """One row per bar or ratio with its intervals, and its texts."""
    axis = of.axis or _axis_from_zero(of.bars)
    name, *texts = of.heads
    head: list[Child] = [name, _axis_head(axis, of.unit), *texts]
    stacks = any(len(bar.parts) > 1 for bar in of.bars)
    return table(head, [_row(axis, bar) for bar in of.bars], of.caption, class_="strips parts" if stacks else "strips")


def _axis_from_zero(bars: Iterable[Bar]) -> Scale:
    known = [(bar.value, bar.limits or (0.0, bar.value)) for bar in bars if bar.value is not None]
    ends = [(place, 0.0) for bar in bars for at in stacked(length for length, _ in bar.parts) for place in at]
    low, high = limits_from_zero([*((value, most - value) for value, (_, most) in known), *ends])
    return Scale(low, high * MARGIN or 1.0)


def _row(axis: Scale, of: Bar) -> Element:
    number = element("span", of.text, class_="figure", title=of.reason or None if of.value is None else None)
    more: list[Child] = [*of.more]
    if of.mark:
        follows = element("strong" if of.mark is Mark.DIFFERENT else "span", of.more[-1])
        more[-1] = element("span", follows, class_="reason") if of.mark is Mark.OPEN else follows
    return row(of.name, NONE if of.value is None and of.mark else strip(axis, of), number, *more)


def strip(axis: Scale, of: Bar) -> Element:
    """The parts of a bar from 0, negative ones to the left, with its interval and the points of its runs.

    Or a ratio: filled if the two sides differ, hollow if not. The thick line is its own interval, the thin line the
    simultaneous one. An arrow shows that an interval continues beyond the axis.
    """
    if of.value is None:
        return element("span", class_="strip")
    places = stacked(length for length, _ in of.parts)
    parts = [_at(axis(1.0), "reference")] if of.mark else []
    parts += [
        _span(axis, min(at), max(at), f"filled {fill_class(number)}")
        for at, (_, number) in zip(places, of.parts, strict=True)
    ]
    for limits, class_ in ((of.together, "interval together"), (of.limits, "interval")):
        parts += [_span(axis, *limits, class_)] if limits else []
    if widest := of.together or of.limits:
        parts += _arrows(axis, *widest)
    parts += [_at(axis(of.value), of.mark)] if of.mark else [_at(axis(value), "point") for value in of.runs]
    lines = [_at(axis(tick), "grid") for tick in axis.ticks(TICKS)]
    return element("span", *lines, *parts, class_="strip", aria_hidden="true")


def fill_class(number: int | None) -> str:
    """CSS classes of the n-th colour and hatching; None: of what cannot be told apart."""
    return UNTOLD if number is None else f"kind-{number % KINDS} hatch-{number // KINDS % HATCHES}"


def legend(names: Iterable[str], *more: Element, rest: str = "") -> Element:
    """Legend of colours and their names; `rest`: name of what cannot be told apart."""
    entries = [*enumerate(names), *([(None, rest)] if rest else [])]
    items = [
        element("li", element("span", class_=f"swatch {fill_class(at)}", aria_hidden="true"), f" {name}")
        for at, name in entries
    ]
    return element("ul", *items, *more, class_="legend")


def _axis_head(axis: Scale, words: str) -> Element:
    """The heading of a column of strips: `words` above the axis's ticks."""
    marks = [
        element("span", tick_words(tick), class_="tick", style=f"left:{axis(tick):.2f}%") for tick in axis.ticks(TICKS)
    ]
    return element("span", words, element("span", *marks, class_="axis", aria_hidden="true"))


def _at(place: float, class_: str) -> Element:
    return element("span", class_=class_, style=f"left:{place:.2f}%")


def _span(axis: Scale, low: float, high: float, class_: str) -> Element:
    left, right = axis(low), axis(high)
    return element("span", class_=class_, style=f"left:{left:.2f}%;width:{right - left:.2f}%")


def _arrows(axis: Scale, low: float, high: float) -> list[Element]:
    """Arrows at each end of the axis beyond which an interval continues."""
    arrows = []
    if low < axis.low * (1 - 1e-9):
        arrows.append(element("span", "\N{LEFTWARDS ARROW}", class_="beyond left"))
    if high > axis.high * (1 + 1e-9):
        arrows.append(element("span", "\N{RIGHTWARDS ARROW}", class_="beyond right"))
    return arrows
