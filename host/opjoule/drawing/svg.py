"""SVG pieces that every drawing is made of: lines, texts, step paths, axes with ticks, and the frame about them.

Classes (`grid`, `mark`, `kind-0`) take their colours from assets/drawing.css: a drawing follows the page's theme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from opjoule.drawing.markup import Child, Element, element
from opjoule.drawing.packing import Floats
from opjoule.drawing.scales import Scale

WIDTH: Final = 400
"""Width of a drawing in its own units. Its letters, set in drawing.css, are legible on any screen."""
EDGE: Final = 22
"""A number of an axis that is nearer to the right edge than this would be cut if it stood centred under its tick."""
KINDS: Final = 10
"""kind-0 to kind-9 of drawing.css: colours of series, kinds of operation and activities."""

Place = Callable[[float], float]


def drawing(
    *parts: Child, height: float, label: str, width: float = WIDTH, class_: str = "drawing"
) -> Element:
    """The frame of a drawing in a page; `label` says to a screen reader what it shows."""
    box = f"0 0 {width:g} {height:g}"
    return element("svg", *parts, viewBox=box, role="img", aria_label=label, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Element:
    """A straight line."""
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return element("line", **{name: f"{value:.1f}" for name, value in ends.items()}, class_=class_)


def text(x: float, y: float, words: str, anchor: str = "start", **more: str) -> Element:
    """Words that begin, end or have their middle at a place."""
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)


def x_axis(
    scale: Place, ticks: Iterable[tuple[float, str]], top: float, bottom: float, words: str, **more: str
) -> list[Element]:
    """Upright grid lines with their numbers below, and what the axis shows below these."""
    parts = []
    for value, number in ticks:
        parts.append(line(scale(value), top, scale(value), bottom, "grid"))
        # A centred number at the right edge would be cut.
        at, anchor = (WIDTH - 1, "end") if scale(value) > WIDTH - EDGE else (scale(value), "middle")
        parts.append(text(at, bottom + 12, number, anchor, **more))
    return [*parts, text(WIDTH - 14, bottom + 27, words, "end", **more)]


def y_axis(
    scale: Place, ticks: Iterable[tuple[float, str]], left: float, right: float, words: str, top: float
) -> list[Element]:
    """Level grid lines with their numbers at the left, and what the axis shows above them, where it has room."""
    parts = []
    for value, number in ticks:
        parts.append(line(left, scale(value), right, scale(value), "grid"))
        parts.append(text(left - 4, scale(value) + 3, number, "end"))
    return [*parts, text(2, top - 8, words)]


def numbered(scale: Scale, most: int) -> list[tuple[float, str]]:
    """Ticks of a scale with their numbers."""
    return [(tick, f"{tick:.6g}") for tick in scale.ticks(most)]


def steps(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> str:
    """Path of steps: each of n values holds between two of n + 1 edges; broken where a value is not known (NaN)."""
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
    """Path of upright rectangles between two values a cell, with edges at n + 1 places; NaN leaves a cell empty."""
    known = np.flatnonzero(np.isfinite(np.asarray(low, np.float64))).tolist()
    return "".join(f"M{x[i]:.1f} {low[i]:.1f}V{high[i]:.1f}H{x[i + 1]:.1f}V{low[i]:.1f}Z" for i in known)
