"""Takes the points of a calibration: a sensor, and what it is held against, at one steady load after the other.

Each meter is recorded for the whole session into a record of its own, so that what a calibration rests on is kept. A
point is a stretch of host_ns; each meter's part of it is found by its clock map, so that two meters see the same time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opjoule.calibration.fitting import CalibrationFault
from opjoule.calibration.means import ReadPoint
from opjoule.calibration.warming import STEADY_S
from opjoule.clocks.exchanges import fit_exchanges
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import MeterFault
from opjoule.evaluation.clock_rates import odd_meter_clock
from opjoule.evaluation.trace_result import conclude_trace
from opjoule.measuring.known_sensors import Calibrations, KnownSensors
from opjoule.measuring.recording import Recording
from opjoule.meters.interface import Meter, MeterIdentity
from opjoule.meters.registry import open_meter
from opjoule.record.directory import held
from opjoule.record.run_record import RunRecord
from opjoule.trace.journal import read_trace

LATE_LIMIT_S: Final = 30.0
"""How long samples of a point may be on their way: a meter's buffer, a busy computer, the journal's flush."""
BEHIND_NS: Final = 200_000_000
"""A sensor converts its voltage each 128th time by default, each 68 ms."""
POLL_S: Final = 0.1


@dataclass(frozen=True)
class Stretch:
    """The time of one point [host_ns]."""

    start_host_ns: int
    end_host_ns: int

    @property
    def steady(self) -> bool:
        """Long enough for a shunt to come to rest in it."""
        return self.end_host_ns - self.start_host_ns >= STEADY_S * 0.99e9


@dataclass(frozen=True)
class RecordedMeter:
    """A meter that is being recorded."""

    name: str
    identity: MeterIdentity
    bounds: ErrorBounds
    """Bounds of its first sensor: with its calibration, if it is the reference."""
    directory: Path
    recording: Recording
    warnings: Sequence[str]
    """Warnings of its calibration."""

    def read(self, stretch: Stretch, period_ns: int = 0) -> ReadPoint:
        """What it read in a stretch that has passed, corrected if it is calibrated.

        Raises: CalibrationFault: the load was not steady, or its samples did not come. MeterFault: it is gone.
        """
        exchanges = list(self.recording.capture.summary.exchanges)
        if odd := odd_meter_clock(exchanges, self.bounds):
            raise CalibrationFault(f"{self.name}: {odd}")
        clock_map = fit_exchanges(exchanges, "host", "meter")
        start_ns, end_ns = map(clock_map.to_target, (stretch.start_host_ns, stretch.end_host_ns))
        self._await(end_ns)
        trace = read_trace(self.directory)
        if self.bounds.calibration:
            trace = self.bounds.calibration.apply(trace)
        u_ns = clock_map.u_ns((stretch.start_host_ns + stretch.end_host_ns) // 2)
        return ReadPoint.of(
            Cells.of(trace),
            (start_ns, end_ns),
            self.bounds,
            u_ns=u_ns,
            period_ns=period_ns,
            steady=stretch.steady,
        )

    def _await(self, end_meter_ns: int) -> None:
        """Waits until what was converted up to this time is on disk, and a voltage behind it."""
        enough_ns = end_meter_ns + BEHIND_NS
        limit_s = time.monotonic() + LATE_LIMIT_S
        while True:
            latest = self.recording.capture.latest
            if latest and latest.meter_ns > enough_ns:
                trace = read_trace(self.directory)
                if len(trace) and int(trace.meter_ns[-1]) > enough_ns:
                    return
            if self.recording.capture.summary.ended:
                raise MeterFault(f"{self.name}: {self.recording.capture.summary.ended}")
            if time.monotonic() > limit_s:
                raise MeterFault(
                    f"{self.name} sent nothing for {LATE_LIMIT_S:g} s: run host/measure.py doctor"
                )
            time.sleep(POLL_S)


@contextmanager
def recording_alone(
    meter: Meter, name: str, directory: Path, asked: Mapping[str, Any], calibrations: Calibrations | None
) -> Iterator[tuple[RunRecord, KnownSensors, MeterIdentity]]:
    """A record of a meter alone, to be recorded in the block, at whose end the meter is closed.

    Raises: MeterFault, BadInput: what opening it, and KnownSensors.of(), raise.
    """
    with closing(meter):
        identity = meter.open()
        meter.configure()
        sensors = KnownSensors.of(meter, name, identity, calibrations)
        record = RunRecord.create(directory, asked, simulated=identity.simulated)
        record.update(found={"meter": identity, "warnings": sensors.warnings})
        record.update(**sensors.entries())
        with held(record.directory):
            yield record, sensors, identity


@contextmanager
def recorded(name: str, directory: Path, calibrations: Calibrations | None = None) -> Iterator[RecordedMeter]:
    """Opens a meter and records it until the end of the block.

    Args:
        directory: of its record, made here.
        calibrations: for a reference, which is corrected by its own; None: as delivered.
    Raises: MeterFault, BadInput: as open_meter(), and what KnownSensors.of() raises.
    """
    meter = open_meter(name)
    opened = recording_alone(meter, name, directory, {"meter": name}, calibrations)
    with opened as (record, sensors, identity):
        recording = Recording(record, meter)
        try:
            with recording:
                yield RecordedMeter(name, identity, sensors.bounds[0], directory, recording, sensors.warnings)
        finally:
            captured = recording.capture.summary
            for line in captured.fault_lines():
                record.add_fault(line)
            record.update(capture=captured.to_json())
            record.finish("complete" if captured.samples and conclude_trace(record) else "failed")
