"""One run to attribute, and the shares of its energy above idle [J] that result.

A share that is not identifiable has a reason, besides its value and interval. Errors that shares have in common, as a
sensor's gain, are `shared`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from opjoule.attribution.activities import Intervals
from opjoule.attribution.columns import FOREGROUND
from opjoule.attribution.counters import Counters
from opjoule.attribution.sensed_medium import MediumTrace
from opjoule.base.units import Quantity, exact
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import IdlePower, MarginalEnergy
from opjoule.energy.cells import Cells
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.trace.power_trace import Float64Array, Int64Array


@dataclass(frozen=True)
class Work:
    """Data of one run and its settle."""

    cells: Cells
    board_to_meter: ClockMap
    start_board_ns: int
    """Start of the run."""
    work_end_board_ns: int
    """End of the run."""
    end_board_ns: int
    """End of settle; end of the run if none follows."""
    idle: IdlePower
    marginal: Callable[[], MarginalEnergy]
    """Function that gives the energy of run and settle above idle; called late, so it can be computed meanwhile."""
    operations: OperationTable
    """Operations of the run, sorted by start."""
    activities: Mapping[str, Intervals] = field(default_factory=dict)
    one_background_thread: bool = False
    counters: Counters | None = None
    seen_fraction: float = 1.0
    """Part of each sample period in which the meter converts the current."""
    medium: MediumTrace | None = None
    """None without a sensor in the medium's own supply."""


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
