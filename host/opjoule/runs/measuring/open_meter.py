"""An open, configured meter with its sensors' names, error bounds and calibrations, and what it records."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from opjoule.base.errors import AlignmentError, BadInput, MeterFault, OpJouleError, of_system
from opjoule.base.notices import Notice, NoticeKind
from opjoule.boards.medium import Medium
from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.exchanges import (
    BOARD_EXCHANGES,
    METER_EXCHANGES,
    Exchange,
    ExchangeFile,
    fit_exchanges,
    read_exchanges,
)
from opjoule.energy.calibration.calibration_file import FoundCalibration, find_calibration
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.journal import TraceJournal, read_trace
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.capture import Capture
from opjoule.meters.interface import Meter, MeterIdentity
from opjoule.meters.registry import WithMediumMeter, sensor_ids
from opjoule.runs.record.run import MediumSensor
from opjoule.runs.record.seals import SealWatch

PERIOD_S: Final = 0.2
"""Interval between exchanges of time stamps with the board."""
LATE_LIMIT_S: Final = 60.0
"""Longest delay of the meter's clock and samples: its buffer, a busy computer."""
BEHIND_NS: Final = 200_000_000
"""Time after which a voltage has certainly followed: by default every 128th conversion is one, every 68 ms."""
_POLL_S: Final = 0.02


class ClockWatch:
    """A thread that records every exchange; a board that does not answer causes a gap, not an end."""

    def __init__(self, exchange: Callable[[], Exchange], file: ExchangeFile) -> None:
        """The file is closed when the thread ends."""
        self._exchange = exchange
        self._file = file
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock-watch", daemon=True)
        self._error: OSError | None = None

    def start(self) -> None:
        """Starts immediately."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after a pending exchange, with a complete file. Raises: OSError: the file is incomplete."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._error:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with suppress(OpJouleError):
                    self._file.append(self._exchange())
                self._stop.wait(PERIOD_S)
            self._file.close()
        except OSError as error:
            self._error = error


class Recording:
    """Records an open meter from the start of a `with` block to its end; after that its raw files do not change.

    A write error (a full disk, a missing folder) is raised at the end of the block, unless another error ended it, and
    is told as a fault in any case.
    """

    def __init__(
        self,
        folder: Path,
        meter: Meter,
        name: str,
        board_exchange: Callable[[], Exchange] | None = None,
        tell_fault: Callable[[Notice], object] | None = None,
    ) -> None:
        """Creates the files.

        Args:
            name: the meter's name in messages.
            board_exchange: one round trip between host and board; None without a board.
            tell_fault: is given a fault for each file that could not be written.
        """
        self.folder = folder
        self._name, self._tell_fault = name, tell_fault
        raw = folder / "raw"
        self._journal = TraceJournal(folder)
        self._seals = SealWatch(folder)
        self._exchanges = ExchangeFile(raw / METER_EXCHANGES)
        self.capture = Capture(meter, self._journal, self._exchanges)
        self._watch = None
        if board_exchange:
            self._watch = ClockWatch(board_exchange, ExchangeFile(raw / BOARD_EXCHANGES))

    def __enter__(self) -> Self:
        self._seals.start()
        try:
            self.capture.start()
        except BaseException as error:
            self._end(error)
            raise
        if self._watch:
            self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        ends: list[Callable[[], object]] = [self._watch.stop] if self._watch else []
        ends += [self.capture.stop, self._journal.close, self._exchanges.close, self._seals.stop]
        failures = [error] if isinstance(error, OSError) else []
        for end in ends:
            try:
                end()
            except OSError as failure:
                failures.append(failure)
        for line in dict.fromkeys(map(of_system, failures)):
            if self._tell_fault:
                self._tell_fault(Notice(NoticeKind.FAULT, line))
        if failures and error is None:
            raise failures[0]

    def wait(self, seconds: float) -> None:
        """Waits for this many seconds of the meter's clock. Raises: MeterFault: the meter stopped, or is silent."""
        until_s = self.capture.trace_s + seconds
        while self.capture.trace_s < until_s:
            self._check()

    def catch_up(self) -> None:
        """Waits until the samples of this moment have arrived. Raises: MeterFault: they do not arrive."""
        limit_s, now_ns = time.monotonic() + LATE_LIMIT_S, time.monotonic_ns()
        while True:
            with suppress(AlignmentError):  # too few exchanges so far
                meter_ns = int(self.host_to_meter().to_target(now_ns))
                break
            self._check(limit_s)
        self._wait_past(meter_ns + BEHIND_NS, limit_s)

    def host_to_meter(self) -> ClockMap:
        """Map from the host's clock to the meter's so far. Raises: AlignmentError: there are too few exchanges."""
        return fit_exchanges(read_exchanges(self.folder / "raw" / METER_EXCHANGES), "host", "meter")

    def trace_past(self, meter_ns: int) -> PowerTrace:
        """The trace so far, once it has the samples up to a time of the meter's clock and a voltage after it.

        Raises: MeterFault: they do not arrive.
        """
        limit_s = time.monotonic() + LATE_LIMIT_S
        enough_ns = meter_ns + BEHIND_NS
        self._wait_past(enough_ns, limit_s)
        while not len(trace := read_trace(self.folder)) or int(trace.meter_ns[-1]) <= enough_ns:
            self._check(limit_s)  # the newest samples reach the file within a second
        return trace

    def _wait_past(self, meter_ns: int, limit_s: float) -> None:
        """Waits for a sample later than this time of the meter's clock. Raises: MeterFault: none comes."""
        while not (latest := self.capture.latest) or latest.meter_ns <= meter_ns:
            self._check(limit_s)

    def _check(self, limit_s: float = math.inf) -> None:
        """Waits a moment. Raises: MeterFault: the meter stopped or fell silent, or it is later than `limit_s`."""
        if self.capture.wait(_POLL_S):
            why = self.capture.summary.ended or "it has no more samples"
            raise self.capture.error or MeterFault(f"{self._name} stopped: {why}")
        if time.monotonic() > limit_s:
            raise MeterFault(f"{self._name} sent nothing for {LATE_LIMIT_S:g} s: run host/measure.py doctor")


@dataclass(frozen=True)
class Calibrations:
    """Folder of the calibrations, and the temperature of the room in which they are used."""

    folder: Path
    temperature_c: float | None = None
    """None: unknown."""

    def of(self, bounds: ErrorBounds, *, simulated: bool) -> FoundCalibration | None:
        """A sensor's calibration; None if there is none. Raises: as find_calibration()."""
        return find_calibration(self.folder, bounds, simulated=simulated, temperature_c=self.temperature_c)


@dataclass(frozen=True)
class KnownSensors:
    """Known properties of the sensors of one opened meter."""

    bounds: Mapping[int, ErrorBounds]
    """Number (0: the board's supply) -> error bounds, with name and calibration if there are any."""
    found: Mapping[int, FoundCalibration]
    medium_number: int | None = None
    """Number of the sensor that is a separate meter in the medium's supply; None if there is none."""

    @classmethod
    def of(cls, meter: Meter, name: str, identity: MeterIdentity, calibrations: Calibrations | None) -> Self:
        """Names the sensors and looks for their calibrations.

        Args:
            name: address under which the meter was opened; empty: the sensors keep the names that they have.
            calibrations: None: none is searched for.
        Raises: BadInput: an unreadable calibration. CalibrationFault: calibration of another sensor or setting.
        """
        delivered = {0: meter.error_bounds(), **meter.further_error_bounds()}
        names = sensor_ids(name, identity) if name else ()
        bounds = {
            number: replace(sensor, sensor_id=names[number] if number < len(names) else sensor.sensor_id)
            for number, sensor in delivered.items()
        }
        applied = {}
        if calibrations:
            for number, sensor in bounds.items():
                calibration = calibrations.of(sensor, simulated=identity.simulated)
                if calibration:
                    applied[number] = calibration
                    bounds[number] = calibration.of(sensor, calibrations.temperature_c)
        return cls(bounds, applied, meter.number if isinstance(meter, WithMediumMeter) else None)

    def wired(self, sense_ohm: float | None) -> Self:
        """The sensors with this wire resistance between the first one and the board, both ways; None: unknown."""
        return replace(self, bounds={**self.bounds, 0: self.bounds[0].wired(sense_ohm)})

    def of_medium(self, medium: Medium) -> MediumSensor | None:
        """The sensor in the medium's own supply, if any; a meter of the medium takes precedence over rig.toml's sensor.

        Raises: BadInput: the meter does not record it.
        """
        if self.medium_number is not None:
            return MediumSensor(self.medium_number, medium.supply)
        if not medium.sensor:
            return None
        if medium.sensor not in self.bounds:
            numbers = "+".join(map(str, range(medium.sensor + 1)))
            raise BadInput(
                f"the meter does not record sensor {medium.sensor}, which rig.toml gives for the medium {medium.path}: "
                f"name it in [meter] port, for example serial:/dev/ttyACM0,sensors={numbers}"
            )
        return MediumSensor(medium.sensor, medium.supply)

    @property
    def notices(self) -> list[Notice]:
        """Notices of old calibrations and of those made at another temperature."""
        return [notice for calibration in self.found.values() for notice in calibration.notices]

    def entries(self) -> dict[str, Any]:
        """`sensor` of run.json, and `further_sensors` and `found.calibrations` if there are any."""
        other_sensors = {number: sensor for number, sensor in self.bounds.items() if number}
        titles = {self.bounds[number].sensor_id: used.file.title for number, used in self.found.items()}
        return {
            "sensor": self.bounds[0],
            **({"further_sensors": other_sensors} if other_sensors else {}),
            **({"found": {"calibrations": titles}} if titles else {}),
        }


@dataclass(frozen=True)
class OpenMeter:
    """An open, configured meter."""

    name: str
    """Address under which it was opened."""
    meter: Meter
    identity: MeterIdentity
    sensors: KnownSensors

    @property
    def bounds(self) -> ErrorBounds:
        """Error bounds of the first sensor, with its calibration if there is one."""
        return self.sensors.bounds[0]

    def recording(
        self,
        folder: Path,
        board_exchange: Callable[[], Exchange] | None = None,
        tell_fault: Callable[[Notice], object] | None = None,
    ) -> Recording:
        """A recording of the meter into a folder; a `with` block begins it. Arguments as for Recording."""
        return Recording(folder, self.meter, self.name, board_exchange, tell_fault)


@contextmanager
def opened_meter(meter: Meter, name: str, calibrations: Calibrations | None = None) -> Iterator[OpenMeter]:
    """Opens and configures a meter; it is closed at the end of the block.

    Raises: MeterFault: the meter does not answer. BadInput, CalibrationFault: from KnownSensors.of().
    """
    with closing(meter):
        identity = meter.open()
        meter.configure()
        yield OpenMeter(name, meter, identity, KnownSensors.of(meter, name, identity, calibrations))
