"""The probe of a simulated board: meter and round trips see a board with a fixed delay behind its computer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from opjoule.clocks.exchanges import Exchange
from opjoule.devices.programs.probe import Probe
from opjoule.errors import LinkFault
from opjoule.simulation.feed import DELAY_NS, Feed


class DelayedProbe(Probe):
    """Answers with the simulated board's clock, and with the dirty pages at that clock's time."""

    def __init__(
        self,
        *started: Any,
        feed: Feed,
        ended: Callable[[], None],
        faults: Callable[[], list[str]] = lambda: [],
        warnings: Callable[[], list[str]] = lambda: [],
    ) -> None:
        """`faults`, `warnings`: give those of the simulation since their last call."""
        self._feed, self._call_ended = feed, ended
        self._simulation_faults, self._simulation_warnings = faults, warnings
        super().__init__(*started)
        feed.probe_began()

    def clock_exchange(self) -> Exchange:
        """The board's clock as the meter sees it: the rig's delay ago.

        A probe that does not answer has ended. From then on the simulated board is idle and its meter continues to
        sample, as a real one would.
        """
        try:
            real = super().clock_exchange()
        except LinkFault:
            self._call_ended()
            raise
        return Exchange(
            real.sent_ns, real.far_received_ns - DELAY_NS, real.far_sent_ns - DELAY_NS, real.received_ns
        )

    def pending_write_bytes(self) -> int:
        """Dirty pages of the simulated board, as of its clock."""
        return self._feed.pending_bytes(time.monotonic_ns() - DELAY_NS)

    def faults(self) -> list[str]:
        """Faults of the probe and of the simulation."""
        return super().faults() + self._simulation_faults()

    def warnings(self) -> list[str]:
        """Warnings of the probe and of the simulation."""
        return super().warnings() + self._simulation_warnings()

    def close(self) -> None:
        """Ends the probe; from then on the simulated board is idle."""
        super().close()
        self._call_ended()
