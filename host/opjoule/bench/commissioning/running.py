"""A recording of a meter together with the board, and the recorded data on which a verdict is based."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from opjoule.boards.board import Board
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, Exchange, read_exchanges
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.operations.board_files import BoardEdges, load_changes, read_events, read_system, sync_edges
from opjoule.energy.operations.tables import EVENTS
from opjoule.energy.trace.journal import SyncEdges, further_numbers, read_edges, read_trace
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.capture import CaptureSummary
from opjoule.runs.measuring.open_meter import OpenMeter, Recording


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
        events = pa.concat_tables(tables).sort_by("board_ns") if tables else EVENTS.empty_table()
        return sync_edges(events)

    def load_changes(self) -> list[BoardEdges]:
        """Changes of each load pattern that the board played, by file, in order of time."""
        changes = [load_changes(table) for table in self.events.values()]
        return sorted(
            (change for change in changes if change.board_ns.size), key=lambda change: int(change.board_ns[0])
        )


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


class Running(Recording):
    """Records a meter together with a prepared board; `recorded` returns the data."""

    def __init__(self, opened: OpenMeter, folder: Path, board: Board | None = None) -> None:
        """Creates the files. `board`: for round trips and the probe's files; None: no board."""
        super().__init__(folder, opened.meter, opened.name, board.probe.clock_exchange if board else None)
        self._bounds, self._board = opened.bounds, board
        self._begun: list[str] = []

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
            super().__exit__(kind, error, trace)

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
                path.name.removesuffix(".system.csv"): read_system(path) for path in systems if path.stat().st_size
            },
            other_sensors={number: read_trace(folder, number) for number in further_numbers(folder)},
        )

    def _fetch(self, board: Board, names: Sequence[str]) -> None:
        """Fetches complete files of the probe."""
        for name in names:
            board.runner.fetch_probe_files(name, self.folder / "raw")
