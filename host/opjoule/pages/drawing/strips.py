"""Small drawings in a row of a table: a value with its intervals, a bar with the runs' points, a stack of parts.

They are in table cells next to the numbers that they show. They are therefore hidden from screen readers; they keep
their size on any screen and cut no label.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from opjoule.pages.drawing.markup import Element, element
from opjoule.pages.drawing.scales import REACH, Limits, Scale, limits_from_zero, stacked
from opjoule.pages.drawing.svg import KINDS

MARGIN: Final = 1.04
REACH_TOGETHER: Final = 1.5
"""Greatest extension of an axis of ratios, as a factor, to show their simultaneous interval."""
HATCHES: Final = 3
"""hatch-0 to hatch-2: hatchings that distinguish series with the same colour."""
TICKS: Final = 4


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


def bar_axis(values: Iterable[tuple[float, float]]) -> Scale:
    """Scale from 0 or below, in per cent of a strip's width, for values with the half-width of their intervals."""
    low, high = limits_from_zero(values)
    return Scale(low, high * MARGIN or 1.0)


def axis_head(axis: Scale, words: str, scale: float = 1.0) -> Element:
    """The heading of a column of strips: `words` above the axis's ticks, whose numbers are multiplied by `scale`."""
    ticks = [(f"{tick * scale:.6g}", f"left:{axis(tick):.2f}%") for tick in axis.ticks(TICKS)]
    marks = [element("span", number, class_="tick", style=place) for number, place in ticks]
    return element("span", words, element("span", *marks, class_="axis", aria_hidden="true"))


def ratio_strip(
    axis: Scale,
    ratio: float,
    limits: tuple[float, float],
    together: tuple[float, float] | None,
    *,
    differs: bool,
    single: bool,
) -> Element:
    """A ratio with its intervals: filled if the two sides differ, hollow if not. The thick line is its own interval,
    the thin line the simultaneous one. An arrow shows that an interval continues beyond the axis.
    """
    parts = [_at(axis(1.0), "reference")]
    if together is not None:
        parts.append(_span(axis, *together, "interval together"))
    parts.append(_span(axis, *limits, "interval"))
    parts += _arrows(axis, *(together or limits))
    parts.append(_at(axis(ratio), "mark" + ("" if differs else " hollow") + (" single" if single else "")))
    return _strip(axis, parts)


def bar_strip(axis: Scale, value: float | None, u: float | None, points: Sequence[float], series: int) -> Element:
    """A bar from 0 with its interval above and a point for each run below it; empty if there is no value."""
    if value is None:
        return element("span", class_="strip")
    parts = [_span(axis, min(value, 0.0), max(value, 0.0), f"filled {fill_class(series)}")]
    if u is not None:
        parts.append(_span(axis, value - u, value + u, "interval"))
        parts += _arrows(axis, value - u, value + u)
    parts += [_at(axis(point), "point") for point in points]
    return _strip(axis, parts)


def stack_strip(axis: Scale, parts: Iterable[tuple[float, int | None]]) -> Element:
    """Stack of parts from 0, negative ones to the left. A part is (value, its colour, or None if unseparated)."""
    known = list(parts)
    kinds = ["filled untold" if number is None else f"filled {fill_class(number)}" for _, number in known]
    places = stacked(value for value, _ in known)
    return _strip(axis, [_span(axis, min(at), max(at), kind) for at, kind in zip(places, kinds, strict=True)])


def fill_class(number: int) -> str:
    """CSS classes of the n-th colour and hatching."""
    return f"kind-{number % KINDS} hatch-{number // KINDS % HATCHES}"


def swatch(class_: str) -> Element:
    """A coloured patch for a legend."""
    return element("span", class_=f"swatch {class_}", aria_hidden="true")


def legend(names: Iterable[str], *more: Element) -> Element:
    """Legend of colours and their names."""
    items = [element("li", swatch(fill_class(at)), f" {name}") for at, name in enumerate(names)]
    return element("ul", *items, *more, class_="legend")


def _strip(axis: Scale, parts: Iterable[Element]) -> Element:
    lines = [_at(axis(tick), "grid") for tick in axis.ticks(TICKS)]
    return element("span", *lines, *parts, class_="strip", aria_hidden="true")


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
