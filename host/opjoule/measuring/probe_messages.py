"""What the probe has to say of a run: its faults at once, its warnings at the end, both into the record."""

from __future__ import annotations

from opjoule.devices.programs.probe import BoardProbe
from opjoule.record.run_record import RunRecord


class ProbeMessages:
    """Passes on what one probe says."""

    def __init__(self, probe: BoardProbe, record: RunRecord) -> None:
        self._probe, self._record = probe, record
        self.faults: list[str] = []
        """All that it has told so far."""

    def take(self) -> None:
        """Takes new faults into the record."""
        for line in self._probe.faults():
            self.faults.append(f"on the board: {line}")
            self._record.add_fault(self.faults[-1])

    def conclude(self) -> None:
        """Takes its warnings into the record, once all work is done."""
        for line in self._probe.warnings():
            self._record.add_warning(line)
