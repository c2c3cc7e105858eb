"""Numbers with a unit and an uncertainty.

A number in a result is one of three things: `Measured` (value and expanded uncertainty), `Unstated` (a value whose
uncertainty is not stated, with the reason) or `Missing` (no value, with the reason); their fields are those of a number
in result.json. Propagation is first order, for independent inputs unless said otherwise.

Source: JCGM 100:2008 (GUM), 5.1.2 and 6.2.1; coverage factor k = 2 throughout.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

COVERAGE_FACTOR = 2.0
"""k: expanded uncertainty u = k * standard uncertainty."""


def counted(count: int, noun: str) -> str:
    """ "1 run", "2 runs": a count with its noun, whose plural ends in s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Measured:
    """A value with its expanded uncertainty u (k = 2), both in `unit`; u = 0 for an exact count."""

    value: float
    u: float
    unit: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.u) and self.u >= 0):
            raise ValueError(f"measured {self.value} +- {self.u} {self.unit} is not a number: use Missing")

    @classmethod
    def from_standard(cls, value: float, standard_u: float, unit: str) -> Measured:
        """From a standard uncertainty (k = 1)."""
        return cls(value, COVERAGE_FACTOR * standard_u, unit)

    @property
    def standard_u(self) -> float:
        """Standard uncertainty (k = 1)."""
        return self.u / COVERAGE_FACTOR

    @property
    def relative_u(self) -> float:
        """Expanded uncertainty over the value; infinite for a value of zero with an uncertainty."""
        if self.value == 0:
            return 0.0 if self.u == 0 else math.inf
        return self.u / abs(self.value)

    def scale(self, factor: float, unit: str | None = None) -> Measured:
        """The value times an exact factor."""
        return Measured(self.value * factor, self.u * abs(factor), unit or self.unit)

    def covers(self, truth: float) -> bool:
        """True if `truth` lies inside value +- u."""
        return abs(self.value - truth) <= self.u


@dataclass(frozen=True, slots=True)
class Unstated:
    """A value whose uncertainty is not stated, and why."""

    value: float
    u: None = field(default=None, init=False)
    unit: str
    reason: str

    def scale(self, factor: float, unit: str | None = None) -> Unstated:
        """The value times an exact factor."""
        return Unstated(self.value * factor, unit or self.unit, self.reason)


@dataclass(frozen=True, slots=True)
class Missing:
    """No value, and why."""

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


def add(terms: Iterable[Measured], unit: str | None = None) -> Measured:
    """Sum of independent numbers of one unit; their uncertainties add in quadrature."""
    listed = list(terms)
    if not listed:
        raise ValueError("a sum needs at least one term")
    units = {term.unit for term in listed}
    if unit is None and len(units) > 1:
        raise ValueError(f"cannot add {', '.join(sorted(units))}")
    value = math.fsum(term.value for term in listed)
    return Measured(value, math.hypot(*(term.u for term in listed)), unit or listed[0].unit)


def subtract(a: Measured, b: Measured) -> Measured:
    """a - b for independent numbers of one unit."""
    return add([a, b.scale(-1.0)])


def from_json(entry: Mapping[str, Any]) -> Quantity:
    """The quantity whose fields stand in result.json."""
    if entry.get("value") is None:
        return Missing(str(entry.get("reason", "no reason recorded")), str(entry.get("unit", "")))
    if entry.get("u") is None:
        return Unstated(float(entry["value"]), str(entry["unit"]), str(entry.get("reason", "")))
    return Measured(float(entry["value"]), float(entry["u"]), str(entry["unit"]))
