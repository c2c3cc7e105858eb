"""Scales from values to places, their round ticks, and the limits of axes with intervals."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

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
