"""The probe of a simulated board: for meter and round trips it runs a fixed delay behind its computer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opjoule.clocks.exchanges import Exchange
from opjoule.devices.programs.probe import BoardProbe
from opjoule.devices.programs.probe_lines import Mark
from opjoule.errors import LinkFault
from opjoule.simulation.feed import DELAY_NS, Feed


class ForwardingProbe:
    """Stands before a running probe and passes everything on to it; a subclass answers some of it itself."""

    def __init__(self, probe: BoardProbe) -> None:
        self._probe = probe

    def clock_exchange(self) -> Exchange:
        """As the probe."""
        return self._probe.clock_exchange()

    def pending_write_bytes(self) -> int:
        """As the probe."""
        return self._probe.pending_write_bytes()

    def begin_files(self, name: str) -> None:
        """As the probe."""
        self._probe.begin_files(name)

    def play_signature(self, bits: str, bit_ms: int) -> tuple[int, int]:
        """As the probe."""
        return self._probe.play_signature(bits, bit_ms)

    def steering(self) -> dict[str, Any]:
        """As the probe."""
        return self._probe.steering()

    def keep_marks(self, path: Path) -> None:
        """As the probe."""
        self._probe.keep_marks(path)

    def marks(self) -> list[Mark]:
        """As the probe."""
        return self._probe.marks()

    def faults(self) -> list[str]:
        """As the probe."""
        return self._probe.faults()

    def warnings(self) -> list[str]:
        """As the probe."""
        return self._probe.warnings()

    def close(self) -> None:
        """As the probe."""
        self._probe.close()


class DelayedProbe(ForwardingProbe):
    """Answers with the simulated board's clock, and with its dirty pages as of that clock."""

    def __init__(
        self,
        probe: BoardProbe,
        feed: Feed,
        *,
        ended: Callable[[], None],
        faults: Callable[[], list[str]] = lambda: [],
        warnings: Callable[[], list[str]] = lambda: [],
    ) -> None:
        """Stands before a running probe.

        Args:
            ended: called once the probe has ended.
            faults: what has gone wrong in the simulation since it was last called.
            warnings: where the simulation was not as it should be.
        """
        super().__init__(probe)
        self._feed, self._call_ended = feed, ended
        self._simulation_faults, self._simulation_warnings = faults, warnings
        feed.probe_began()

    def clock_exchange(self) -> Exchange:
        """The board's clock as the meter is to see it: the rig's delay ago.

        A probe that does not answer has ended. The simulated board is idle from then on, and its meter goes on
        sampling, as a real one would.
        """
        try:
            real = self._probe.clock_exchange()
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
        return self._probe.faults() + self._simulation_faults()

    def warnings(self) -> list[str]:
        """Warnings of the probe and of the simulation."""
        return self._probe.warnings() + self._simulation_warnings()

    def close(self) -> None:
        """Ends it; from then on the simulated board is idle."""
        self._probe.close()
        self._call_ended()
