"""Points with their intervals on two axes, as a drawing (SVG) in the page's colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from opjoule.report.figure import ticks
from opjoule.report.markup import Element, element
from opjoule.report.strips import COLOURS

WIDTH, HEIGHT = 400, 230
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 10, 36
SIZE: Final = 3.6
SHAPES: Final = (
    ((-1, 0), (-0.7, -0.7), (0, -1), (0.7, -0.7), (1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7)),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    ((0, -1.4), (1.2, 0), (0, 1.4), (-1.2, 0)),
    ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
)
"""Corners about the middle, in sizes: round, square, triangle, diamond, triangle upside down."""


@dataclass(frozen=True)
class Point:
    """One point; half of its intervals is 0 where none is stated."""

    x: float
    y: float
    series: int
    """Number of its colour."""
    group: int = 0
    """Number of its shape."""
    words: str = ""
    """For the mouse."""
    x_u: float = 0.0
    y_u: float = 0.0


@dataclass(frozen=True)
class Scale:
    """From values to places in the drawing."""

    low: float
    high: float
    at_low: float
    at_high: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        """The place; beyond an end it is that end's."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low))
        share = min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0)
        return self.at_low + share * (self.at_high - self.at_low)

    @property
    def ticks(self) -> list[float]:
        """Round values from end to end."""
        if not self.logarithmic:
            return ticks(self.low, self.high, 5)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        inside = [each for each in found if self.low <= each <= self.high]
        return inside if len(inside) <= 8 else [each for each in inside if math.log10(each).is_integer()]


def scatter(
    points: Sequence[Point],
    x_words: str,
    y_words: str,
    label: str,
    *,
    logarithmic: bool = False,
    guides: Callable[[Scale, Scale], Iterable[str]] = lambda x, y: (),
) -> Element:
    """The drawing.

    Args:
        label: what it shows, for screen readers; its numbers must stand in a table.
        logarithmic: both axes, where all values are above 0.
        guides: paths of dashed lines behind the points.
    """
    logarithmic = logarithmic and all(each.x > 0 and each.y > 0 for each in points)
    x = _scale([(each.x, each.x_u) for each in points], LEFT, WIDTH - RIGHT, logarithmic)
    y = _scale([(each.y, each.y_u) for each in points], HEIGHT - BOTTOM, TOP, logarithmic)
    return element(
        "svg",
        *_axes(x, y, x_words, y_words),
        *(element("path", d=each, class_="mark", fill="none") for each in guides(x, y)),
        *(part for each in points for part in _drawn(each, x, y)),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=label,
        class_="histogram",
    )


def _scale(found: Sequence[tuple[float, float]], at_low: float, at_high: float, logarithmic: bool) -> Scale:
    """Holds all values with some room, and intervals as far as they do not reach far beyond them."""
    least, most = min(value for value, _ in found), max(value for value, _ in found)
    if logarithmic:
        low = min(max(value - u, least / 2) for value, u in found) / 1.15
        high = max(min(value + u, most * 2) for value, u in found) * 1.15
        return Scale(low, high, at_low, at_high, True)
    span = (most - least) or abs(most) or 1.0
    low = min(max(value - u, least - span) for value, u in found)
    high = max(min(value + u, most + span) for value, u in found)
    return Scale(
        low - 0.06 * (high - low or span), high + 0.06 * (high - low or span), at_low, at_high, False
    )


def _axes(x: Scale, y: Scale, x_words: str, y_words: str) -> list[Element]:
    parts = []
    for tick in x.ticks:
        parts.append(_line(x(tick), TOP, x(tick), HEIGHT - BOTTOM, "grid"))
        parts.append(_text(x(tick), HEIGHT - BOTTOM + 12, f"{tick:.6g}", "middle"))
    for tick in y.ticks:
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "grid"))
        parts.append(_text(LEFT - 4, y(tick) + 3, f"{tick:.6g}", "end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_words, "middle"))
    middle = f"translate(13 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)"
    return [*parts, _text(0, 0, y_words, "middle", transform=middle)]


def _drawn(point: Point, x: Scale, y: Scale) -> list[Element]:
    left, right = x(point.x - point.x_u), x(point.x + point.x_u)
    below, above = y(point.y - point.y_u), y(point.y + point.y_u)
    at = (round(x(point.x), 1), round(y(point.y), 1))
    shape = _shape(point.group, *at, f"dot kind-{point.series % COLOURS}")
    shape.append(element("title", point.words))
    whiskers = [_line(left, at[1], right, at[1], "whisker")] if point.x_u else []
    return [*whiskers, *([_line(at[0], below, at[0], above, "whisker")] if point.y_u else []), shape]


def shape_mark(group: int) -> Element:
    """The shape of a group, for a legend."""
    shape = _shape(group, 6, 6, "dot")
    return element("svg", shape, viewBox="0 0 12 12", class_="shape", aria_hidden="true")


def _shape(group: int, x: float, y: float, class_: str) -> Element:
    corners = [(x + SIZE * right, y + SIZE * down) for right, down in SHAPES[group % len(SHAPES)]]
    return element("polygon", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in corners), class_=class_)


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Element:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return element("line", **{name: f"{value:.1f}" for name, value in ends.items()}, class_=class_)


def _text(x: float, y: float, words: str, anchor: str, **more: str) -> Element:
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)
