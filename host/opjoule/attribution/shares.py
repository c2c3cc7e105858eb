"""Result of the attribution of one run: shares of its energy above idle."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from opjoule.attribution.columns import FOREGROUND
from opjoule.energy.trace.power_trace import Float64Array, Int64Array


@dataclass(frozen=True)
class Share:
    """Energy of one part above idle."""

    energy_j: float
    standard_u_j: float
    """Standard uncertainty from all sources."""
    unidentified: str = ""
    """Reason why the energy is not identifiable; empty if it is."""
    in_common_j: Mapping[str, float] = field(default_factory=dict)
    """Contributions of errors that shares have in common, as a sensor's gain: source -> contribution of one standard
    uncertainty [J], with sign."""
    has_interval: bool = True
    """Whether the uncertainty is known, however wide; False if too few windows show it."""

    @classmethod
    def sum_of(cls, shares: Iterable[Share]) -> Share:
        """Sum of shares: common errors add up with their signs, the others in quadrature.

        Source: JCGM 100:2008, 5.2.2.
        """
        listed = list(shares)
        sources = sorted({source for share in listed for source in share.in_common_j})
        in_common_j = {source: math.fsum(share.in_common_j.get(source, 0.0) for share in listed) for source in sources}
        own_j2 = math.fsum(share._own_j2 for share in listed)
        u_j = math.hypot(math.sqrt(own_j2), *in_common_j.values())
        return cls(math.fsum(share.energy_j for share in listed), u_j, in_common_j=in_common_j)

    def scaled(self, factor: float) -> Share:
        """The share times an exact factor."""
        in_common_j = {source: factor * u_j for source, u_j in self.in_common_j.items()}
        energy_j, u_j = factor * self.energy_j, abs(factor) * self.standard_u_j
        return replace(self, energy_j=energy_j, standard_u_j=u_j, in_common_j=in_common_j)

    def __neg__(self) -> Share:
        """The share with the opposite sign, for a difference by sum_of()."""
        return self.scaled(-1.0)

    @property
    def _own_j2(self) -> float:
        """Variance from errors of this share alone [J2]."""
        return max(self.standard_u_j**2 - math.fsum(u_j**2 for u_j in self.in_common_j.values()), 0.0)


@dataclass(frozen=True)
class EnergyCourse:
    """Energy of each part over time."""

    edge_board_ns: Int64Array
    """Edges of stretches, shape (m + 1,)."""
    energy_j: Mapping[str, Float64Array]
    """Fitted energy above idle, by part, shape (m,) each."""
    measured_j: Float64Array
    """Measured energy above idle, shape (m,)."""


@dataclass(frozen=True)
class Attribution:
    """The energy above idle by part. All parts add up to the whole; those not identifiable count as one."""

    operations: Mapping[str, Share]
    """Energy of their execution, by kind."""
    foreground: Share
    """All kinds together, which may be identifiable even if single kinds are not."""
    activities: Mapping[str, Share]
    whole: Share
    """Energy above idle of run and settle: the board's, plus that of a medium with its own supply and sensor."""
    windows: int
    tail_length_s: float | None
    course: EnergyCourse
    alone: Share | None = None
    """The medium's energy outside of syncs, write-back and tail together; None without a sensor in its supply."""
    waited: float = 0.0
    """Fraction of the run in which operations waited, mean of the threads, from 0 to 1."""

    @property
    def unseparated(self) -> Share:
        """Sum of the parts that are not identifiable; 0 if all are identifiable."""
        parts = {FOREGROUND: self.foreground} if not self.foreground.unidentified else dict(self.operations)
        parts |= self.activities
        missing = [name for name, share in parts.items() if share.unidentified]
        if not missing:
            return Share(0.0, 0.0)
        identified = [share for share in parts.values() if not share.unidentified]
        u_j = math.hypot(self.whole.standard_u_j, *(share.standard_u_j for share in identified))
        identified_j = math.fsum(share.energy_j for share in identified)
        return Share(self.whole.energy_j - identified_j, u_j, ", ".join(missing))
