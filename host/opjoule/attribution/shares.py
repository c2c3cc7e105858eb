"""Result of the attribution of one run: shares of its energy above idle [J].

A share that is not identifiable has a reason, besides its value and interval. Errors that shares have in common, as a
sensor's gain, are `shared`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from opjoule.attribution.columns import FOREGROUND
from opjoule.base.units import Quantity, exact
from opjoule.energy.trace.power_trace import Float64Array, Int64Array


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

    operations: Mapping[str, Quantity]
    """Energy of their execution, by kind."""
    foreground: Quantity
    """All kinds together, which may be identifiable even if single kinds are not."""
    activities: Mapping[str, Quantity]
    whole: Quantity
    """Energy above idle of run and settle: the board's, plus that of a medium with its own supply and sensor."""
    windows: int
    tail_length_s: float | None
    course: EnergyCourse
    alone: Quantity | None = None
    """The medium's energy outside of syncs, write-back and tail together; None without a sensor in its supply."""
    blind: frozenset[str] = frozenset()
    """Kinds of operation that too few windows show for an interval."""
    waited: float = 0.0
    """Fraction of the run in which operations waited, mean of the threads, from 0 to 1."""

    @property
    def unseparated(self) -> Quantity:
        """Sum of the parts that are not identifiable; 0 if all are identifiable."""
        parts = {FOREGROUND: self.foreground} if not self.foreground.reason else dict(self.operations)
        parts |= self.activities
        lacking = [name for name, share in parts.items() if share.reason]
        if not lacking:
            return exact(0.0, "J")
        identified = [share for share in parts.values() if not share.reason]
        u_j = math.hypot(self.whole.standard_u, *(share.standard_u for share in identified))
        rest = Quantity.from_standard(float(self.whole) - math.fsum(map(float, identified)), u_j, "J")
        return replace(rest, reason=", ".join(lacking))
