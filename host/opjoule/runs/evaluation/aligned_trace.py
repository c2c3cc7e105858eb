"""A trace whose energy can be asked for by phases, which are on another clock."""

from __future__ import annotations

from dataclasses import dataclass

from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.window import EnergyResult, Window, window_energy_j
from opjoule.runs.record.phases import Phase


@dataclass(frozen=True)
class AlignedTrace:
    """A trace that can be integrated over phases: its cells, its sensor, and the map from the phases' clock."""

    cells: Cells
    sensor: ErrorBounds
    board_to_meter: ClockMap

    def window(self, first: Phase, last: Phase) -> Window:
        """Window from the start of one phase to the end of another, on the meter clock."""
        return Window.on_meter(self.board_to_meter, first.start_board_ns, last.end_board_ns)

    def energy(self, first: Phase, last: Phase) -> EnergyResult:
        """Energy of that window."""
        return window_energy_j(self.cells, self.window(first, last), self.sensor)
