"""The uncertainty budget of an energy: one standard uncertainty for each named source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from opjoule.base.coverage import coverage_factor, excess_kurtosis
from opjoule.base.units import Quantity

PARTS = (
    *("gain", "offset", "heating", "wire", "quantisation", "voltage", "timebase", "alignment", "loss"),
    *("baseline", "repeats"),
)


@dataclass(frozen=True)
class Budget:
    """Standard uncertainties (k = 1) [J] by part, and the reason for each part that is absent.

    The parts are independent of each other and add in quadrature (JCGM 100:2008, 5.1.2).
    """

    parts: Mapping[str, float]
    absent: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    shared: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Contributions of the sources that other figures of the same sensor or reference share, such as its gain and
    offset: source -> contribution of one standard uncertainty [J], with sign."""
    excess: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Excess kurtosis by part: below 0 where rectangular bounds dominate; the other parts count as normal."""

    def __post_init__(self) -> None:
        unknown = set(self.parts) | set(self.absent)
        if unknown != set(PARTS):
            raise ValueError(f"budget must name {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")

    @property
    def standard_u(self) -> float:
        """Combined standard uncertainty [J]."""
        return math.hypot(*self.parts.values())

    @property
    def k(self) -> float:
        """Coverage factor for 95.45 %, from the kurtosis of the sum of the parts."""
        return coverage_factor(self._excess)

    @property
    def _excess(self) -> float:
        return excess_kurtosis((part, self.excess.get(name, 0.0)) for name, part in self.parts.items())

    def with_part(self, name: str, standard_u: float) -> Budget:
        """The budget with one part set."""
        absent = {part: reason for part, reason in self.absent.items() if part != name}
        return replace(self, parts={**self.parts, name: standard_u}, absent=absent)

    def scaled(self, factor: float) -> Budget:
        """The budget of the energy times an exact factor."""
        parts = {name: abs(factor) * part for name, part in self.parts.items()}
        shared = {name: factor * part for name, part in self.shared.items()}
        return replace(self, parts=parts, shared=shared)

    def energy(self, value_j: float) -> Quantity:
        """The energy [J] with the budget's expanded uncertainty and shared errors."""
        return Quantity.from_standard(value_j, self.standard_u, "J", self._excess, self.shared)

    def stated(self) -> dict[str, Any]:
        """The budget as in result.json: each part's contribution to u [J] and its share of the variance."""
        variance, k = self.standard_u**2, self.k
        entries: dict[str, Any] = {}
        for name in PARTS:
            if name in self.parts:
                part = self.parts[name]
                share = part**2 / variance if variance > 0 else 0.0
                reason = f"itself an expanded uncertainty (k = {k:.3g})"
                entries[name] = {"value": k * part, "u": None, "unit": "J", "share": share, "reason": reason}
            else:
                entries[name] = {"value": None, "u": None, "unit": "J", "reason": self.absent[name]}
        return entries
