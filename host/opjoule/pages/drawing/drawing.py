"""A drawing as a value: what is drawn, in numbers. A plot (pages/plots/) makes it once, for pages and for print.

`shown.py` draws it in a page, `printed.py` for print; neither knows a record. All numbers are in their axis's unit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from opjoule.pages.drawing.scales import Limits, Scale, limits_about, limits_from_zero

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
