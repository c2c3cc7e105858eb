"""Input of the attribution of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from opjoule.attribution.activities import Intervals
from opjoule.attribution.counters import Counters
from opjoule.attribution.sensed_medium import MediumTrace
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import IdlePower, MarginalEnergy
from opjoule.energy.cells import Cells
from opjoule.energy.operations.operation_table import OperationTable


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
