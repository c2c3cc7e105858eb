"""Numbers with a unit and an uncertainty.

A number in a result is one of three things: `Measured` (value and expanded uncertainty), `Unstated` (a value whose
uncertainty is not stated, with the reason) or `Missing` (no value, with the reason). They have the fields of a number
in result.json.

The interval value +- u contains the true value with a probability of 95.45 %. k is 2 if the error is normal, and less
if it comes mostly from bounds (`coverage_factor`). Source: JCGM 100:2008 (GUM), 5.1.2, 6.2.1, G.1 and G.2.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

COVERAGE_FACTOR: Final = 2.0
"""k of a normal error for 95.45 %: expanded uncertainty u = k * standard uncertainty."""
AT_LEAST: Final = "at least this"
"""Last words of the reason of a value that is a lower bound."""
NOT_STATED: Final = "uncertainty not stated"
RECTANGULAR: Final = -1.2
"""Excess kurtosis of an error for which only a bound is known; a normal error has 0."""
_EXCESS: Final = tuple(-number / 10 for number in range(12, -1, -1))
_FACTORS: Final = (
    *(1.653, 1.717, 1.772, 1.817, 1.855, 1.887, 1.913, 1.934, 1.952, 1.968, 1.980, 1.991),
    COVERAGE_FACTOR,
)
"""k for 95.45 % of a symmetric beta distribution (Pearson's type II) with each excess kurtosis of _EXCESS."""


def coverage_factor(excess_kurtosis: float) -> float:
    """k for 95.45 % of a sum of independent errors: 1.65 for one rectangle, 2 for a normal error.

    Args:
        excess_kurtosis: excess kurtosis of the sum, from `excess_kurtosis()`.
    Returns: k to three decimals. Its interval contains 95.2 to 95.9 % of any sum of rectangles and a normal error.
    Source: JCGM 100:2008, G.1.3 and G.2; by moments after R. Willink, Metrologia 42 (2005), 329-343.
    """
    k = round(_interpolated(excess_kurtosis, _EXCESS, _FACTORS), 3)
    return k if k < COVERAGE_FACTOR else COVERAGE_FACTOR  # this same object, which msgspec omits


def _interpolated(at: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    """Linear interpolation, constant outside of the table. Lists of records do without numpy, which loads slowly."""
    after = bisect_right(xs, at)
    if after in (0, len(xs)):
        return ys[0] if after == 0 else ys[-1]
    slope = (ys[after] - ys[after - 1]) / (xs[after] - xs[after - 1])
    return slope * (at - xs[after - 1]) + ys[after - 1]


def excess_kurtosis(parts: Iterable[tuple[float, float]]) -> float:
    """Excess kurtosis of a sum of independent errors, from (standard uncertainty, excess kurtosis) of each."""
    listed = list(parts)
    variance = math.fsum(u**2 for u, _ in listed)
    return math.fsum(excess * (u**2 / variance) ** 2 for u, excess in listed) if variance > 0 else 0.0


def counted(count: int, noun: str) -> str:
    """A count with its noun, whose plural ends in s: "1 run", "2 runs"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


class Measured(Struct, frozen=True, omit_defaults=True):
    """A value with its expanded uncertainty u (95.45 %), both in `unit`; u = 0 for an exact count."""

    value: float
    u: float
    unit: str
    k: float = COVERAGE_FACTOR
    """Expanded over standard uncertainty; stated in result.json if it is not 2."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.u) and self.u >= 0):
            raise ValueError(f"measured {self.value} +- {self.u} {self.unit} is not a number: use Missing")

    @classmethod
    def from_standard(cls, value: float, standard_u: float, unit: str, excess: float = 0.0) -> Measured:
        """The value with a standard uncertainty (k = 1) and the excess kurtosis of its error."""
        k = coverage_factor(excess)
        return cls(value, k * standard_u, unit, k)

    @property
    def standard_u(self) -> float:
        """Standard uncertainty (k = 1)."""
        return self.u / self.k

    @property
    def excess(self) -> float:
        """Excess kurtosis of its error."""
        return excess_of(self.k)

    @property
    def relative_u(self) -> float:
        """Expanded uncertainty over the value; infinite for a value of zero with an uncertainty."""
        if self.value == 0:
            return 0.0 if self.u == 0 else math.inf
        return self.u / abs(self.value)

    def scale(self, factor: float, unit: str | None = None) -> Measured:
        """The value times an exact factor."""
        return Measured(self.value * factor, self.u * abs(factor), unit or self.unit, self.k)

    def covers(self, truth: float) -> bool:
        """True if `truth` lies inside value +- u."""
        return abs(self.value - truth) <= self.u


def excess_of(k: float) -> float:
    """Excess kurtosis of the error whose coverage factor is k."""
    return _interpolated(k, _FACTORS, _EXCESS)


@dataclass(frozen=True, slots=True)
class Unstated:
    """A value whose uncertainty is not stated, with the reason."""

    value: float
    u: None = field(default=None, init=False)
    unit: str
    reason: str

    @property
    def is_least(self) -> bool:
        """Whether it is a lower bound: samples were at the end of the meter's range."""
        return self.reason.endswith(AT_LEAST)

    def scale(self, factor: float, unit: str | None = None) -> Unstated:
        """The value times an exact factor."""
        return Unstated(self.value * factor, unit or self.unit, self.reason)


@dataclass(frozen=True, slots=True)
class Missing:
    """No value, with the reason."""

    value: None = field(default=None, init=False)
    u: None = field(default=None, init=False)
    reason: str
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError("a missing value needs a reason")


Quantity = Measured | Unstated | Missing
"""Any number of a result."""


def exact(value: float, unit: str) -> Measured:
    """A counted or defined number, without uncertainty."""
    return Measured(value, 0.0, unit)


def from_json(entry: Mapping[str, Any]) -> Quantity:
    """The quantity with these fields from result.json."""
    if entry.get("value") is None:
        return Missing(str(entry.get("reason", "no reason recorded")), str(entry.get("unit", "")))
    if entry.get("u") is None:
        return Unstated(float(entry["value"]), str(entry["unit"]), str(entry.get("reason", "")))
    return Measured(float(entry["value"]), float(entry["u"]), str(entry["unit"]), k_of(entry))


def k_words(numbers: Iterable[Quantity]) -> str:
    """The coverage factors of the stated uncertainties as text: "k = 2", "k = 1.93 to 2", or that none is stated."""
    known = sorted({f"{number.k:.3g}" for number in numbers if isinstance(number, Measured)})
    return f"k = {' to '.join(dict.fromkeys((known[0], known[-1])))}" if known else NOT_STATED


def k_of(entry: Mapping[str, Any]) -> float:
    """Expanded over standard uncertainty of a number in result.json; 2 if not stated."""
    return float(entry.get("k", COVERAGE_FACTOR))
