"""An open meter, a recording of it together with the board, and the recorded data on which a verdict is based."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa

from opjoule.clocks.exchanges import (
    BOARD_EXCHANGES,
    METER_EXCHANGES,
    Exchange,
    ExchangeFile,
    fit_exchanges,
    read_exchanges,
)
from opjoule.devices.board import Board
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import AlignmentError, MeterFault
from opjoule.measuring.known_sensors import Calibrations, KnownSensors
from opjoule.measuring.recording import ClockWatch
from opjoule.meters.capture import Capture, CaptureSummary
from opjoule.meters.interface import Meter, MeterIdentity
from opjoule.operations import schemas
from opjoule.operations.board_files import BoardEdges, load_changes, read_events, read_system, sync_edges
from opjoule.trace.journal import SyncEdges, TraceJournal, further_numbers, read_edges, read_trace
from opjoule.trace.power_trace import PowerTrace


@dataclass(frozen=True)
class DeskRecording:
    """Data of meter and board from one recording."""

    trace: PowerTrace
    """Trace as it was read, without a calibration."""
    bounds: ErrorBounds
    """Error bounds of the sensor, with its calibration if there is one."""
    captured: CaptureSummary = field(default_factory=CaptureSummary)
    edges: SyncEdges = field(
        default_factory=lambda: SyncEdges(np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int64))
    )
    meter_exchanges: Sequence[Exchange] = ()
    board_exchanges: Sequence[Exchange] = ()
    events: Mapping[str, pa.Table] = field(default_factory=dict)
    """Name of the probe's files -> its events, in order of time."""
    system: Mapping[str, pa.Table] = field(default_factory=dict)
    """Name of the probe's files -> its samples of the board."""
    other_sensors: Mapping[int, PowerTrace] = field(default_factory=dict)
    """Number of an additional sensor, from 1 -> its trace."""

    @cached_property
    def corrected(self) -> PowerTrace:
        """The trace with the sensor's calibration applied, if it has one."""
        return self.bounds.calibration.apply(self.trace) if self.bounds.calibration else self.trace

    @cached_property
    def cells(self) -> Cells:
        """Cells of the corrected trace."""
        return Cells.of(self.corrected)

    @property
    def edges_made(self) -> BoardEdges:
        """Sync edges that the board made, in order of time."""
        tables = list(self.events.values())
        events = pa.concat_tables(tables).sort_by("board_ns") if tables else schemas.EVENTS.empty_table()
        return sync_edges(events)

    def load_changes(self) -> list[BoardEdges]:
        """Changes of each load pattern that the board played, by file, in order of time."""
        changes = [load_changes(table) for table in self.events.values()]
        return sorted(
            (change for change in changes if change.board_ns.size), key=lambda change: int(change.board_ns[0])
        )


LATE_LIMIT_S: Final = 60.0
"""Longest delay of the meter's clock and samples: its buffer, a busy computer."""
BEHIND_NS: Final = 200_000_000
"""Time after which a voltage has certainly followed: by default every 128th conversion is one, every 68 ms."""
_POLL_S: Final = 0.02


@dataclass(frozen=True)
class OpenMeter:
    """An open and configured meter."""

    meter: Meter
    identity: MeterIdentity
    bounds: ErrorBounds
    """Error bounds of its first sensor, with its calibration if there is one."""


@contextmanager
def opened_meter(meter: Meter, name: str, calibrations: Calibrations | None) -> Iterator[OpenMeter]:
    """Opens and configures a meter until the end of the block. Raises: MeterFault, BadInput, CalibrationFault."""
    with closing(meter):
        identity = meter.open()
        meter.configure()
        bounds = (
            KnownSensors.of(meter, name, identity, calibrations).bounds[0] if name else meter.error_bounds()
        )
        yield OpenMeter(meter, identity, bounds)


def meter_words(meter: OpenMeter) -> dict[str, str]:
    """The meter's own statements, for the certificate."""
    identity, bounds = meter.identity, meter.bounds
    sensors = ", ".join(f"{sensor.model} at 0x{sensor.address:02x}" for sensor in identity.sensors)
    facts = {
        "board": identity.board,
        "firmware": identity.firmware_version,
        "serial_number": identity.serial_number,
        "sensors": sensors,
        "sensor_id": bounds.sensor_id,
        "calibration": bounds.calibration.identity if bounds.calibration else "",
    }
    return {key: value for key, value in facts.items() if value}


class Running:
    """Records an open meter from the beginning to the end of a `with` block; `recorded` returns the data."""

    def __init__(self, meter: Meter, bounds: ErrorBounds, folder: Path, board: Board | None = None) -> None:
        """Creates the files.

        Args:
            board: a prepared board, for round trips and the probe's files; None: no board.
        """
        self.folder, self._bounds, self._board = folder, bounds, board
        self._journal = TraceJournal(folder)
        raw = folder / "raw"
        self._exchanges = ExchangeFile(raw / METER_EXCHANGES)
        self.capture = Capture(meter, self._journal, self._exchanges)
        file = ExchangeFile(raw / BOARD_EXCHANGES) if board else None
        self._watch = ClockWatch(board.probe.clock_exchange, file) if board and file else None
        self._begun: list[str] = []

    def __enter__(self) -> Self:
        self.capture.start()
        if self._watch:
            self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._board:  # without a board only the meter's clock counts
                self.catch_up()
                if self._begun:
                    self._board.probe.begin_files("after")
                    self._fetch(self._board, self._begun)
        finally:
            if self._watch:
                self._watch.stop()
            self.capture.stop()
            self._journal.close()
            self._exchanges.close()

    def wait(self, seconds: float) -> None:
        """Waits for this many seconds of the meter's clock. Raises: MeterFault: the meter stopped, or is silent."""
        until_s = self.capture.trace_s + seconds
        while self.capture.trace_s < until_s:
            self._check()

    def catch_up(self) -> None:
        """Waits until the samples of this moment have arrived. Raises: MeterFault: they do not arrive."""
        limit_s, now_ns = time.monotonic() + LATE_LIMIT_S, time.monotonic_ns()
        while (enough_ns := self._meter_ns(now_ns)) is None:
            self._check(limit_s)
        while not (latest := self.capture.latest) or latest.meter_ns <= enough_ns + BEHIND_NS:
            self._check(limit_s)

    def _meter_ns(self, host_ns: int) -> int | None:
        """Time of the meter's clock at a time of the host's; None while there are too few exchanges."""
        try:
            exchanges = read_exchanges(self.folder / "raw" / METER_EXCHANGES)
            return int(fit_exchanges(exchanges, "host", "meter").to_target(host_ns))
        except AlignmentError:
            return None

    def catch_up_to(self, board_ns: int) -> None:
        """Waits until the board's clock, as seen by the host, has passed `board_ns`."""
        assert self._board
        while (left_ns := board_ns - self._board.probe.clock_exchange().far_received_ns) > 0:
            self._check()
            time.sleep(min(left_ns * 1e-9, 0.1))

    def begin_files(self, name: str) -> None:
        """Sends the probe's events and samples to files of this name from now on."""
        assert self._board
        self._board.probe.begin_files(name)
        self._begun.append(name)

    def end_probe(self) -> None:
        """Ends the board's probe and fetches its files; its sync line and load are at rest from then on."""
        assert self._board
        self._fetch(self._board, self._begun[:-1])
        if self._watch:
            self._watch.stop()
        self._board.end_probe(self.folder / "raw")
        self._begun.clear()

    def recorded(self) -> DeskRecording:
        """The recorded data, once the recording has ended. Raises: RecordFault: a file cannot be read."""
        raw, folder = self.folder / "raw", self.folder
        events, systems = sorted(raw.glob("*.events.jsonl")), sorted(raw.glob("*.system.csv"))
        return DeskRecording(
            trace=read_trace(folder),
            bounds=self._bounds,
            captured=self.capture.summary,
            edges=read_edges(folder),
            meter_exchanges=read_exchanges(raw / METER_EXCHANGES),
            board_exchanges=read_exchanges(raw / BOARD_EXCHANGES),
            events={path.name.removesuffix(".events.jsonl"): read_events(path) for path in events},
            system={
                path.name.removesuffix(".system.csv"): read_system(path)
                for path in systems
                if path.stat().st_size
            },
            other_sensors={number: read_trace(folder, number) for number in further_numbers(folder)},
        )

    def _fetch(self, board: Board, names: Sequence[str]) -> None:
        """Fetches complete files of the probe."""
        for name in names:
            board.runner.fetch_probe_files(name, self.folder / "raw")

    def _check(self, limit_s: float = math.inf) -> None:
        """Waits a moment. Raises: MeterFault: the meter stopped or fell silent, or it is later than `limit_s`."""
        if self.capture.wait(_POLL_S):
            why = self.capture.summary.ended or "it has no more samples"
            raise self.capture.error or MeterFault(f"the meter stopped: {why}")
        if time.monotonic() > limit_s:
            raise MeterFault(f"the meter sent nothing for {LATE_LIMIT_S:g} s: run host/measure.py doctor")
