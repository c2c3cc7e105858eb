"""Result of the attribution of one run: shares of its energy above idle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from opjoule.attribution.columns import FOREGROUND
from opjoule.trace.power_trace import Float64Array, Int64Array


@dataclass(frozen=True)
class Share:
    """Energy of one part above idle."""

    energy_j: float
    standard_u_j: float
    """Standard uncertainty from all sources."""
    unidentified: str = ""
    """Reason why the energy is not identifiable; empty if it is."""


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
