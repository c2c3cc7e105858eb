"""Pictures of one row: a value with its intervals, a bar with the runs' points, a stack of parts.

They stand in cells of tables beside the numbers that they show, so that they are hidden from screen readers, keep their
size on any screen and cut no label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from opjoule.report.figure import ticks
from opjoule.report.markup import Element, element
from opjoule.report.quantities import NONE

REACH: Final = 2.5
"""An axis goes no further beyond the values than this factor for the sake of an interval."""
REACH_TOGETHER: Final = 1.5
"""The same for the sake of the wider interval of all together."""
MARGIN: Final = 1.04
COLOURS: Final = 6
"""kind-0 to kind-5 of report.css."""
HATCHES: Final = 3
"""hatch-0 to hatch-2: what has the same colour differs in these."""
TICKS: Final = 4


@dataclass(frozen=True)
class StripScale:
    """From values to per cent of a strip's width."""

    low: float
    high: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The place, 0 to 100; a value beyond an end is at that end."""
        if self.logarithmic:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / ((self.high - self.low) or 1.0)
        return 100 * min(max(share, 0.0), 1.0)

    @classmethod
    def of_ratios(cls, found: Iterable[tuple[float, tuple[float, float], tuple[float, float]]]) -> StripScale:
        """Logarithmic, holds 1 and every ratio, and its intervals as far as they do not reach far beyond them.

        Args:
            found: (ratio above 0, the ends of its interval, those of a wider one) of each.
        """
        known = list(found)
        ratios = [1.0, *(ratio for ratio, *_ in known)]
        low, high = 0.9, 1.1
        for _, *intervals in known:
            for (least, most), reach in zip(intervals, (REACH, REACH_TOGETHER), strict=True):
                low = min(low, max(least, min(ratios) / reach))
                high = max(high, min(most, max(ratios) * reach))
        return cls(low / MARGIN, high * MARGIN, logarithmic=True)

    @classmethod
    def of_values(cls, found: Iterable[tuple[float, float]]) -> StripScale:
        """From 0 or below, holds every value, and its interval as far as it does not reach far beyond them.

        Args:
            found: (value, half of its interval) of each.
        """
        known = list(found)
        reach = REACH * max((abs(value) for value, _ in known), default=0.0) or 1.0
        high = min(max((value + u for value, u in known), default=1.0), reach)
        low = max(min((value - u for value, u in known if value < 0), default=0.0), -reach)
        return cls(low, max(high, 0.0) * MARGIN or 1.0)

    @property
    def ticks(self) -> list[float]:
        """Round values from end to end."""
        if not self.logarithmic:
            return ticks(self.low, self.high, TICKS)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(0.1 * n for n in range(10, 100))):
            found = [digit * 10.0**power for power in powers for digit in digits]
            inside = [round(each, 9) for each in found if self.low <= each <= self.high]
            if len(inside) >= TICKS - 1:
                break
        return inside[:: -(-len(inside) // (TICKS + 1))] if len(inside) > TICKS + 1 else inside


def axis_head(axis: StripScale, words: str, scale: float = 1.0) -> Element:
    """The heading of a column of strips: what is drawn, over the axis's ticks, times `scale`."""
    marks = [
        element("span", f"{tick * scale:.6g}", class_="tick", style=f"left:{axis(tick):.2f}%")
        for tick in axis.ticks
    ]
    return element("span", words, element("span", *marks, class_="axis", aria_hidden="true"))


def ratio_strip(
    axis: StripScale,
    ratio: float,
    limits: tuple[float, float],
    together: tuple[float, float] | None,
    *,
    told: bool,
    single: bool,
) -> Element:
    """A ratio: full where the two are found different, hollow where not; thick is its own interval, thin that of all
    together; an arrow where an interval goes on beyond the axis."""
    parts = [_at(axis(1.0), "reference")]
    if together is not None:
        parts.append(_span(axis, *together, "interval together"))
    parts.append(_span(axis, *limits, "interval"))
    parts += _arrows(axis, *(together or limits))
    parts.append(_at(axis(ratio), "mark" + ("" if told else " hollow") + (" single" if single else "")))
    return _strip(axis, parts)


def bar_strip(
    axis: StripScale, value: float | None, u: float | None, points: Sequence[float], series: int
) -> Element:
    """A bar from 0 with its interval and a point for each run; a dash where there is no value."""
    if value is None:
        return element("span", NONE, class_="strip")
    parts = [_span(axis, min(value, 0.0), max(value, 0.0), f"filled {look(series)}")]
    if u is not None:
        parts.append(_span(axis, value - u, value + u, "interval"))
        parts += _arrows(axis, value - u, value + u)
    parts += [_at(axis(each), "point") for each in points]
    return _strip(axis, parts)


def stack_strip(axis: StripScale, parts: Iterable[tuple[float, int | None]]) -> Element:
    """Parts one after the other from 0, those below 0 to the left of it.

    Args:
        parts: (value, number of its colour; None for what is not told apart) of each.
    """
    made, above, below = [], 0.0, 0.0
    for value, number in parts:
        start = above if value > 0 else below
        kind = "filled untold" if number is None else f"filled {look(number)}"
        made.append(_span(axis, min(start, start + value), max(start, start + value), kind))
        above, below = above + max(value, 0.0), below + min(value, 0.0)
    return _strip(axis, made)


def look(number: int) -> str:
    """The classes of the n-th colour and hatching."""
    return f"kind-{number % COLOURS} hatch-{number // COLOURS % HATCHES}"


def legend(names: Iterable[str], *more: Element) -> Element:
    """Colours and their names."""
    items = [
        element("li", element("span", class_=f"swatch {look(at)}", aria_hidden="true"), f" {name}")
        for at, name in enumerate(names)
    ]
    return element("ul", *items, *more, class_="legend")


def _strip(axis: StripScale, parts: Iterable[Element]) -> Element:
    lines = [_at(axis(tick), "grid") for tick in axis.ticks]
    return element("span", *lines, *parts, class_="strip", aria_hidden="true")


def _at(place: float, class_: str) -> Element:
    return element("span", class_=class_, style=f"left:{place:.2f}%")


def _span(axis: StripScale, low: float, high: float, class_: str) -> Element:
    left, right = axis(low), axis(high)
    return element("span", class_=class_, style=f"left:{left:.2f}%;width:{right - left:.2f}%")


def _arrows(axis: StripScale, low: float, high: float) -> list[Element]:
    """At the ends beyond which an interval goes on."""
    found = []
    if low < axis.low * (1 - 1e-9):
        found.append(element("span", "\N{LEFTWARDS ARROW}", class_="beyond left"))
    if high > axis.high * (1 + 1e-9):
        found.append(element("span", "\N{RIGHTWARDS ARROW}", class_="beyond right"))
    return found
