"""Points with their intervals on two axes, as an SVG drawing in the page's colours."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from opjoule.pages.drawing.markup import Element, element
from opjoule.pages.drawing.scales import Scale, limits_about
from opjoule.pages.drawing.svg import KINDS, WIDTH, drawing, line, numbered, x_axis, y_axis

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


@dataclass(frozen=True)
class Point:
    """One point; the half-width of an interval is 0 if none is stated."""

    x: float
    y: float
    series: int
    """Number of its colour."""
    group: int = 0
    """Number of its shape."""
    words: str = ""
    """Text shown under the mouse pointer."""
    x_u: float = 0.0
    y_u: float = 0.0


def scatter(
    points: Sequence[Point],
    x_words: str,
    y_words: str,
    label: str,
    *,
    logarithmic: bool = False,
    guides: Callable[[Scale, Scale], Iterable[str]] = lambda x, y: (),
) -> Element:
    """The drawing. `label` describes it for screen readers; its numbers must be in a table.

    `logarithmic`: both axes, if all values are above 0; `guides`: paths of dashed lines behind the points.
    """
    logarithmic = logarithmic and all(point.x > 0 and point.y > 0 for point in points)
    x = _scale([(point.x, point.x_u) for point in points], LEFT, WIDTH - RIGHT, logarithmic)
    y = _scale([(point.y, point.y_u) for point in points], HEIGHT - BOTTOM, TOP, logarithmic)
    return drawing(
        *x_axis(x, numbered(x, MOST_TICKS), TOP, HEIGHT - BOTTOM, x_words),
        *y_axis(y, numbered(y, MOST_TICKS), LEFT, WIDTH - RIGHT, y_words, TOP),
        *(element("path", d=guide, class_="mark", fill="none") for guide in guides(x, y)),
        *(part for point in points for part in _drawn(point, x, y)),
        height=HEIGHT,
        label=label,
    )


def _scale(values: Iterable[tuple[float, float]], at_low: float, at_high: float, logarithmic: bool) -> Scale:
    return Scale(*limits_about(values, logarithmic=logarithmic), at_low, at_high, logarithmic)


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
