"""Two figures against each other, without what both get wrong alike.

A source that both rest on (one sensor, one calibration, two calibrations against one reference) moves both figures
together: of it only the difference of its two contributions is left, and nothing of a gain in their ratio. All else is
independent and adds in quadrature.
Source: JCGM 100:2008, 5.2.2 (correlated inputs) and F.1.2.3 (covariance of figures that share an input).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opjoule.units import COVERAGE_FACTOR, Measured


@dataclass(frozen=True)
class Side:
    """One figure of a comparison."""

    value: float
    standard_u: float
    """All of it."""
    unit: str
    shared: Mapping[str, float] = field(default_factory=dict)
    """Source -> contribution of one standard uncertainty, with sign, in `unit`: a part of `standard_u`."""

    @classmethod
    def of(cls, number: Mapping[str, Any], shared: Mapping[str, float] | None = None) -> Side:
        """From a number of result.json, and what its `shared` entry lists of it.

        Args:
            number: {"value", "u", "unit"}, u expanded.
        Raises: ValueError: the number is absent, or states no uncertainty; says its reason.
        """
        if number.get("value") is None or number.get("u") is None:
            raise ValueError(str(number.get("reason") or "no value with an uncertainty"))
        return cls(
            float(number["value"]), float(number["u"]) / COVERAGE_FACTOR, str(number["unit"]), shared or {}
        )

    @property
    def own_u(self) -> float:
        """Standard uncertainty without what may be shared."""
        return math.sqrt(max(self.standard_u**2 - sum(each**2 for each in self.shared.values()), 0.0))

    def scale(self, factor: float, unit: str | None = None) -> Side:
        """The figure times an exact factor, for example one over its operations."""
        shared = {name: factor * each for name, each in self.shared.items()}
        return Side(self.value * factor, self.standard_u * abs(factor), unit or self.unit, shared)


def difference(a: Side, b: Side) -> Measured:
    """a - b, k = 2.

    Raises: ValueError: they have different units.
    """
    if a.unit != b.unit:
        raise ValueError(f"cannot compare {a.unit} with {b.unit}")
    return Measured.from_standard(a.value - b.value, _difference_u(a, b), a.unit)


def ratio(a: Side, b: Side) -> Measured:
    """a / b, k = 2, to first order.

    Raises: ZeroDivisionError: b is zero.
    """
    quotient = a.value / b.value
    u = _difference_u(a.scale(1.0 / b.value, "1"), b.scale(a.value / b.value**2, "1"))
    return Measured.from_standard(quotient, u, "1")


def correlation(a: Side, b: Side) -> float:
    """Of the two figures, -1 to 1: how much of their uncertainty a comparison is spared."""
    both = sum(a.shared[name] * b.shared[name] for name in a.shared.keys() & b.shared.keys())
    return both / (a.standard_u * b.standard_u) if a.standard_u and b.standard_u else 0.0


def _difference_u(a: Side, b: Side) -> float:
    names = a.shared.keys() | b.shared.keys()
    left = [a.shared.get(name, 0.0) - b.shared.get(name, 0.0) for name in names]
    return math.hypot(a.own_u, b.own_u, *left)
