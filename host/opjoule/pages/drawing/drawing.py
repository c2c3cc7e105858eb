"""A drawing as a value: what is drawn, in numbers, with the scales, ticks and limits of its axes.

A plot (pages/plots/) makes it once, for pages and for print: `shown.py` draws it in a page, `printed.py` for print;
neither knows a record. All numbers are in their axis's unit.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

REACH: Final = 2.5
"""Greatest extension, as a factor, of an axis from zero or of ratios beyond its values to show an interval."""
REACH_ABOUT: Final = 2.0
"""Greatest extension of an axis around points: a factor if it is logarithmic, else in spans of the values."""
DIGITS: Final = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))
_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Limits = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """Linear or logarithmic scale from values to places; a value beyond an end is placed at that end."""

    low: float
    high: float
    at_low: float = 0.0
    at_high: float = 100.0
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Place of a value between `at_low` and `at_high`."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low))
        share = min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0)
        return self.at_low + share * (self.at_high - self.at_low)

    def ticks(self, most: int) -> list[float]:
        """About `most` round values from end to end."""
        return (log_ticks if self.logarithmic else ticks)(self.low, self.high, most)


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` + 1 round numbers (steps of 1, 2 or 5 times a power of ten) between two values."""
    span = (high - low) or 1.0
    steps = [digit * 10.0**power for power in range(-6, 10) for digit in (1, 2, 5)]
    step = next((step for step in steps if span / step <= most), span)
    return [round(number * step, 9) for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """About `most` round numbers between two values above 0: powers of ten, and more digits if these are too few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside: list[float] = []
    for digits in DIGITS:
        numbers = [digit * 10.0**power for power in powers for digit in digits]
        inside = [float(f"{number:.9g}") for number in numbers if low <= number <= high]
        if len(inside) >= most - 1:
            break
    else:
        return ticks(low, high, most)
    return inside[:: -(-len(inside) // (most + 1))] if len(inside) > most + 1 else inside


def tick_words(tick: float) -> str:
    """A tick's number, with a power of ten where it would have many zeros: "0.001", "300", "10⁻⁶"."""
    if tick == 0 or 1e-4 < abs(tick) < 1e6:
        return f"{tick:.6g}"
    digits, _, power = f"{tick:.5e}".partition("e")
    factor = f"{float(digits):g}"
    return f"{'' if factor == '1' else f'{factor} · '}10{str(int(power)).translate(_RAISED)}"


def stacked(values: Iterable[float]) -> list[Limits]:
    """Start and end of each part of a stacked bar; positive parts go upwards from 0, negative ones downwards."""
    placed, above, below = [], 0.0, 0.0
    for value in values:
        start = above if value > 0 else below
        placed.append((start, start + value))
        above, below = above + max(value, 0.0), below + min(value, 0.0)
    return placed


def limits_from_zero(values: Iterable[tuple[float, float]]) -> Limits:
    """Limits, from 0 or below, for (value, half-width of its interval); intervals far beyond the values are cut."""
    known = list(values)
    reach = REACH * max((abs(value) for value, _ in known), default=0.0) or 1.0
    high = min(max((value + u for value, u in known), default=1.0), reach)
    low = max(min((value - u for value, u in known if value < 0), default=0.0), -reach)
    return low, max(high, 0.0)


def limits_about(values: Iterable[tuple[float, float]], *, logarithmic: bool) -> Limits:
    """Limits for all values with a margin, and for their intervals unless these reach far beyond the values.

    Each entry is (value, half-width of its interval). There is at least one; all are above 0 if logarithmic.
    """
    known = list(values)
    least, most = min(value for value, _ in known), max(value for value, _ in known)
    if logarithmic:
        low = min(max(value - u, least / REACH_ABOUT) for value, u in known)
        return low / 1.15, max(min(value + u, most * REACH_ABOUT) for value, u in known) * 1.15
    span = (most - least) or abs(most) or 1.0
    low = min(max(value - u, least - span) for value, u in known)
    high = max(min(value + u, most + span) for value, u in known)
    room = 0.06 * (high - low or span)
    return low - room, high + room


ROOM = 0.06
"""Room beyond the values of an axis from zero, as part of its length."""


@dataclass(frozen=True)
class DrawnAxis:
    """An axis with its ends."""

    words: str
    unit: str
    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def about(cls, words: str, unit: str, values: Sequence[Limits], *, logarithmic: bool = False) -> Self:
        """An axis for (value, half-width of its interval), of which there is at least one."""
        return cls(words, unit, *limits_about(values, logarithmic=logarithmic), logarithmic)

    @classmethod
    def wide(cls, words: str, unit: str, values: Sequence[Limits]) -> Self:
        """A logarithmic axis if all values are above 0, else one from zero."""
        if min(value for value, _ in values) > 0:
            return cls.about(words, unit, values, logarithmic=True)
        return cls(words, unit, *roomy(values))

    def scale(self, at_low: float, at_high: float) -> Scale:
        """The axis between two places."""
        return Scale(self.low, self.high, at_low, at_high, self.logarithmic)


def interval(value: float | None, u: float | None) -> Limits | None:
    """Ends of the interval of a value; None if none is stated."""
    return None if value is None or u is None else (value - u, value + u)


def roomy(values: Iterable[Limits]) -> Limits:
    """Ends of an axis that begins at 0 or below, with some room. An interval far beyond all values is cut."""
    low, high = limits_from_zero(values)
    room = ROOM * (high - low)
    return low - (room if low < 0 else 0.0), high + room


@dataclass(frozen=True)
class Point:
    """A point in a chart; the half-width of an interval is 0 if none is stated."""

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


@dataclass(frozen=True)
class Chart:
    """Points with their intervals on two axes."""

    x: DrawnAxis
    y: DrawnAxis
    points: Sequence[Point]
    label: str = ""
    """Description for screen readers."""
    title: str = ""
    joined: bool = False
    """Whether a line joins the points of a series."""
    guides: Sequence[tuple[Sequence[float], Sequence[float]]] = ()
    """x and y of the corners of dashed lines behind the points."""
    guide: str = ""
    """What the dashed lines are."""


class Mark(StrEnum):
    """Mark of a ratio, by its CSS classes: the two sides differ, no difference was found, nothing can be concluded."""

    DIFFERENT = "mark"
    ALIKE = "mark hollow"
    OPEN = "mark hollow single"


@dataclass(frozen=True)
class Ratio:
    """A ratio with its intervals."""

    name: str
    value: float | None
    limits: Limits
    """Ends of its own interval; of any length without a value."""
    together: Limits | None
    """Ends of the simultaneous interval."""
    mark: Mark
    chance: float | None
    """p-value of the difference from 1; None if it is not judged."""
    follows: str
    """What follows from it."""


@dataclass(frozen=True)
class Ratios:
    """Ratios on a logarithmic axis, one below another with their numbers."""

    words: str
    rows: Sequence[Ratio]
    axis: Scale
    """In per cent of a row."""
    chance: str
    """Name of the p-values."""
    caption: str
    """Of the table in a page."""


@dataclass(frozen=True)
class Bar:
    """A bar from 0, in one part or several, at a place in a group."""

    name: str
    group: int
    place: int
    value: float | None
    limits: Limits | None = None
    """Ends of its interval; None if none is stated."""
    parts: Sequence[tuple[float, int | None]] = ()
    """Length and number of the colour of each; None: what cannot be told apart."""
    faint: bool = False
    text: str = ""
    """Its value in words, or what stands in its place."""
    reason: str = ""
    """Why there is no value."""
    runs: Sequence[float] = ()
    """The value of each run; a page has a point for each."""


Dot = tuple[int, int, float, Limits | None]
"""Point beside a bar: its group and place, value, ends of its interval."""


@dataclass(frozen=True)
class Bars:
    """Bars in groups: rows of a table in a page, an axis with the groups' names in print."""

    words: str
    unit: str
    bars: Sequence[Bar]
    groups: Sequence[str]
    places: int = 1
    """Number of bars in a group."""
    caption: str = ""
    """Caption of the table in a page."""
    heads: tuple[str, str] = ("", "")
    """Heads of the names of bars and of their texts there."""
    title: str = ""
    """Title in print; the texts above its bars then stand for the axis."""
    has_texts: bool = False
    """Whether the texts of bars are above them in print; a table in a page has them in any case."""
    dots: Mapping[str, Sequence[Dot]] = field(default_factory=dict)
    """Points beside the bars, by their name."""
    right: tuple[str, str] | None = None
    """Words and unit of an axis of their own for the dots."""

    @property
    def stacked(self) -> bool:
        """Whether bars are made of parts with colours of their own."""
        return any(len(bar.parts) > 1 or number is None for bar in self.bars for _, number in bar.parts)


@dataclass(frozen=True)
class Grid:
    """Texts in coloured fields, each with its row, its column and the number of its colour."""

    rows: Sequence[str]
    columns: Sequence[str]
    fields: Sequence[tuple[int, int, int, str]]


Panel = Chart | Ratios | Bars | Grid


@dataclass(frozen=True)
class Drawing:
    """Panels with a common legend."""

    panels: Sequence[Panel]
    series: Sequence[str] = ()
    """Name of each colour."""
    groups: Sequence[str] = ()
    """Name of each shape of points."""
    rest: str = ""
    """Name of what cannot be told apart: grey parts of bars, sides that do not differ."""
    faint: Sequence[str] = ()
    """Names of full and faint bars."""
    note: str = ""
    """How to read it, for a page."""
    lacking: str = ""
    """What it has no value for."""
    across: int = 1
    """Most panels beside each other."""
    simulated: bool = False
    warnings: str = ""
    """Warnings of the runs, in one line."""
