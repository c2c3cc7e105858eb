"""Drawings in a page: charts as SVG, bars and ratios as rows of a table, each with a strip next to its numbers.

Strips are therefore hidden from screen readers; they keep their size on any screen and cut no label. Classes (`grid`,
`mark`, `kind-0`) get their colours from assets/drawing.css, so that drawings follow the page's theme.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from opjoule.pages.drawing.drawing import (
    REACH,
    Bar,
    Bars,
    Chart,
    Drawing,
    Limits,
    Mark,
    Point,
    Ratio,
    Ratios,
    Scale,
    limits_from_zero,
    stacked,
    tick_words,
)
from opjoule.pages.drawing.page import Child, Element, element, row, table
from opjoule.results.rounding import NONE, chance_number, percent, with_limits
from opjoule.results.tracks import Floats

WIDTH: Final = 400
"""Width of a drawing in its own units; the size of its letters (drawing.css) is legible on any screen."""
EDGE: Final = 22
"""Distance from the right edge below which a number centred under its tick would be cut."""
KINDS: Final = 10
"""Number of colours of series, kinds of operation and activities: kind-0 to kind-9 in drawing.css."""
HEIGHT: Final = 240
LEFT, RIGHT, TOP, BOTTOM = 40, 14, 24, 36
MOST_TICKS: Final = 5
SIZE: Final = 3.6
SHAPES: Final = (
    ((-1, 0), (-0.7, -0.7), (0, -1), (0.7, -0.7), (1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7)),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    ((0, -1.4), (1.2, 0), (0, 1.4), (-1.2, 0)),
    ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
)
"""Corners relative to the middle, in units of the size: round, square, triangle, diamond, triangle upside down."""

Place = Callable[[float], float]


def drawing(*parts: Child, height: float, label: str) -> Element:
    """The frame of a drawing in a page; `label` describes it for screen readers."""
    box = f"0 0 {WIDTH} {height:g}"
    return element("svg", *parts, viewBox=box, role="img", aria_label=label, class_="drawing")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Element:
    """A straight line."""
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return element("line", **{name: f"{value:.1f}" for name, value in ends.items()}, class_=class_)


def text(x: float, y: float, words: str, anchor: str = "start", **more: str) -> Element:
    """Text whose start, end or middle (`anchor`) is at a place."""
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)


def x_axis(scale: Place, ticks: Iterable[tuple[float, str]], top: float, bottom: float, words: str) -> list[Element]:
    """Vertical grid lines with their numbers below, and the axis label (`words`) below the numbers."""
    parts = []
    for value, number in ticks:
        parts.append(line(scale(value), top, scale(value), bottom, "grid"))
        # A centred number at the right edge would be cut.
        at, anchor = (WIDTH - 1, "end") if scale(value) > WIDTH - EDGE else (scale(value), "middle")
        parts.append(text(at, bottom + 12, number, anchor))
    return [*parts, text(WIDTH - 14, bottom + 27, words, "end")]


def y_axis(
    scale: Place, ticks: Iterable[tuple[float, str]], left: float, right: float, words: str, top: float
) -> list[Element]:
    """Horizontal grid lines with their numbers at the left, and the axis label (`words`) above them."""
    parts = []
    for value, number in ticks:
        parts.append(line(left, scale(value), right, scale(value), "grid"))
        parts.append(text(left - 4, scale(value) + 3, number, "end"))
    return [*parts, text(2, top - 8, words)]


def numbered(scale: Scale, most: int) -> list[tuple[float, str]]:
    """Ticks of a scale with their numbers."""
    return [(tick, tick_words(tick)) for tick in scale.ticks(most)]


def steps(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> str:
    """Path of steps: each of n values applies between two of n + 1 edges; broken where a value is unknown (NaN)."""
    parts, drawing_on = [], False
    for i, place in enumerate(y):
        if not np.isfinite(place):
            drawing_on = False
            continue
        start = f"V{place:.1f}" if drawing_on else f"M{x[i]:.1f} {place:.1f}"
        parts.append(f"{start}H{x[i + 1]:.1f}")
        drawing_on = True
    return "".join(parts)


def area(x: Sequence[float] | Floats, low: Sequence[float] | Floats, high: Sequence[float] | Floats) -> str:
    """Path of rectangles between the two values of each of n cells, with n + 1 edges; NaN leaves a cell empty."""
    known = np.flatnonzero(np.isfinite(np.asarray(low, np.float64))).tolist()
    return "".join(f"M{x[i]:.1f} {low[i]:.1f}V{high[i]:.1f}H{x[i + 1]:.1f}V{low[i]:.1f}Z" for i in known)


def chart(of: Chart) -> Element:
    """A chart; its label describes it for screen readers, and its numbers must be in a table."""
    x, y = of.x.scale(LEFT, WIDTH - RIGHT), of.y.scale(HEIGHT - BOTTOM, TOP)
    x_words, y_words = (f"{axis.words}, {axis.unit}" if axis.unit else axis.words for axis in (of.x, of.y))
    corners = ([f"{x(at):.1f} {y(value):.1f}" for at, value in zip(*guide, strict=True)] for guide in of.guides)
    return drawing(
        *x_axis(x, numbered(x, MOST_TICKS), TOP, HEIGHT - BOTTOM, x_words),
        *y_axis(y, numbered(y, MOST_TICKS), LEFT, WIDTH - RIGHT, y_words, TOP),
        *(element("path", d=f"M{'L'.join(guide)}", class_="mark", fill="none") for guide in corners),
        *(part for point in of.points for part in _drawn(point, x, y)),
        height=HEIGHT,
        label=of.label,
    )


def _drawn(point: Point, x: Scale, y: Scale) -> list[Element]:
    left, right = x(point.x - point.x_u), x(point.x + point.x_u)
    below, above = y(point.y - point.y_u), y(point.y + point.y_u)
    at = (round(x(point.x), 1), round(y(point.y), 1))
    shape = _shape(point.group, *at, f"dot kind-{point.series % KINDS}")
    shape.append(element("title", point.words))
    whiskers = [line(left, at[1], right, at[1], "whisker")] if point.x_u else []
    return [*whiskers, *([line(at[0], below, at[0], above, "whisker")] if point.y_u else []), shape]


def shape_mark(group: int) -> Element:
    """The shape of a group, for a legend."""
    shape = _shape(group, 6, 6, "dot")
    return element("svg", shape, viewBox="0 0 12 12", class_="shape", aria_hidden="true")


def _shape(group: int, x: float, y: float, class_: str) -> Element:
    corners = [(x + SIZE * right, y + SIZE * down) for right, down in SHAPES[group % len(SHAPES)]]
    return element("polygon", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in corners), class_=class_)


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
    made = [*map(chart, charts)]
    made += [bars_table(panel, drawing) for panel in drawing.panels if isinstance(panel, Bars)]
    made += [ratios_table(panel) for panel in drawing.panels if isinstance(panel, Ratios)]
    guides = [f"Dashed: {panel.guide}." for panel in charts if panel.guides]
    words = " ".join(filter(None, (drawing.note, *guides, drawing.lacking)))
    shapes = [element("li", shape_mark(at), f" {name}") for at, name in enumerate(drawing.groups)]
    if charts or len(drawing.series) + bool(drawing.rest) > 1:
        made.insert(0, legend(drawing.series, *shapes, rest=drawing.rest))
    return [*made, *([element("p", words, class_="reason")] if words else [])]


def bars_table(of: Bars, drawing: Drawing) -> Element:
    """One row per bar with its interval and its text; stacked ones with the share of each part, others with the number
    of their runs."""
    axis = _axis_from_zero(of.bars)
    names: dict[int | None, str] = dict(enumerate(drawing.series))
    if drawing.rest:
        names[None] = drawing.rest
    body = []
    for bar in of.bars:
        number = element("span", bar.text, class_="figure", title=bar.reason or None if bar.value is None else None)
        body.append(row(bar.name, strip(axis, bar), number, _shares(bar, names) if of.stacked else str(len(bar.runs))))
    head: list[Child] = [of.heads[0], _axis_head(axis, of.unit), of.heads[1], "parts" if of.stacked else "runs"]
    return table(head, body, of.caption, class_="strips parts" if of.stacked else "strips")


def _shares(of: Bar, names: Mapping[int | None, str]) -> str:
    """The share of each part in the bar's value."""
    lengths = {number: length for length, number in of.parts} if of.value else {}
    shares = {at: percent(lengths[at] / of.value) for at in lengths if of.value}
    return ", ".join(f"{name} {shares.get(at, NONE)}" for at, name in names.items())


def ratios_table(of: Ratios) -> Element:
    """One row per ratio with its intervals, its p-value and what follows from it."""
    head: list[Child] = ["comparison", _axis_head(of.axis, "ratio"), "ratio (95.45 %)", of.chance, "follows"]
    return table(head, [_ratio_row(of.axis, ratio) for ratio in of.rows], of.caption, class_="strips")


def _ratio_row(axis: Scale, of: Ratio) -> Element:
    number = NONE if of.value is None else with_limits(of.value, of.limits)
    chance = chance_number(of.chance).replace(" ", "\N{NO-BREAK SPACE}")
    follows = element("strong" if of.mark is Mark.DIFFERENT else "span", of.follows)
    follows = element("span", follows, class_="reason") if of.mark is Mark.OPEN else follows
    shape = NONE if of.value is None else ratio_strip(axis, of, of.value)
    return row(of.name, shape, element("span", number, class_="figure"), chance, follows)


def _axis_from_zero(bars: Iterable[Bar]) -> Scale:
    known = [(bar.value, bar.limits or (0.0, bar.value)) for bar in bars if bar.value is not None]
    ends = [(place, 0.0) for bar in bars for at in stacked(length for length, _ in bar.parts) for place in at]
    low, high = limits_from_zero([*((value, most - value) for value, (_, most) in known), *ends])
    return Scale(low, high * MARGIN or 1.0)


def strip(axis: Scale, of: Bar) -> Element:
    """The parts of a bar from 0, negative ones to the left, with its interval and the points of its runs.

    An arrow shows that the interval continues beyond the axis.
    """
    if of.value is None:
        return element("span", class_="strip")
    places = stacked(length for length, _ in of.parts)
    parts = [
        _span(axis, min(at), max(at), f"filled {fill_class(number)}")
        for at, (_, number) in zip(places, of.parts, strict=True)
    ]
    if of.limits:
        parts += [_span(axis, *of.limits, "interval"), *_arrows(axis, *of.limits)]
    return _strip(axis, [*parts, *(_at(axis(value), "point") for value in of.runs)])


def ratio_strip(axis: Scale, of: Ratio, value: float) -> Element:
    """The mark of a ratio, filled if the two sides differ, hollow if not, with its own interval (thick) and the
    simultaneous one (thin)."""
    together = [_span(axis, *of.together, "interval together")] if of.together else []
    intervals = [*together, _span(axis, *of.limits, "interval"), *_arrows(axis, *(of.together or of.limits))]
    return _strip(axis, [_at(axis(1.0), "reference"), *intervals, _at(axis(value), of.mark)])


def _strip(axis: Scale, parts: Iterable[Element]) -> Element:
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
