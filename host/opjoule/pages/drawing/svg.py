"""Drawings of pages as SVG: charts, and the pieces of every drawing (lines, texts, step paths, axes, the frame).

Classes (`grid`, `mark`, `kind-0`) get their colours from assets/drawing.css, so that drawings follow the page's theme.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from opjoule.pages.drawing.drawing import Chart, Point
from opjoule.pages.drawing.markup import Child, Element, element
from opjoule.pages.drawing.scales import Scale, tick_words
from opjoule.results.packing import Floats

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
