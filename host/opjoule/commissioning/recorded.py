"""One recording of the meter, with the board's side of it: what the verdict of a step is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from opjoule.clocks.exchanges import Exchange
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.meters.capture import CaptureSummary
from opjoule.operations import schemas
from opjoule.operations.board_files import BoardEdges, load_changes, read_events, read_system, sync_edges
from opjoule.trace.journal import SyncEdges, further_numbers, read_edges, read_trace
from opjoule.trace.power_trace import PowerTrace


@dataclass(frozen=True)
class DeskRecording:
    """What meter and board have left of one recording."""

    trace: PowerTrace
    """As it was read, no calibration applied."""
    bounds: ErrorBounds
    """Bounds of the sensor, with its calibration where there is one."""
    captured: CaptureSummary = field(default_factory=CaptureSummary)
    edges: SyncEdges = field(
        default_factory=lambda: SyncEdges(np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int64))
    )
    board_exchanges: Sequence[Exchange] = ()
    events: Mapping[str, pa.Table] = field(default_factory=dict)
    """Name of the probe's files -> its events, in order of time."""
    system: Mapping[str, pa.Table] = field(default_factory=dict)
    """Name of the probe's files -> its samples of the board."""
    other_sensors: Mapping[int, PowerTrace] = field(default_factory=dict)
    """Number, from 1, of a further sensor -> its trace."""

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
            (change for change in changes if change.board_ns.size),
            key=lambda change: int(change.board_ns[0]),
        )

    @classmethod
    def read(
        cls,
        folder: Path,
        bounds: ErrorBounds,
        captured: CaptureSummary,
        board_exchanges: Sequence[Exchange] = (),
    ) -> DeskRecording:
        """What a finished recording has left in its folder. Raises: RecordFault: a file of it is damaged."""
        raw = folder / "raw"
        systems = {
            path.name.removesuffix(".system.csv"): read_system(path)
            for path in sorted(raw.glob("*.system.csv"))
            if path.stat().st_size
        }
        events = {
            path.name.removesuffix(".events.jsonl"): read_events(path)
            for path in sorted(raw.glob("*.events.jsonl"))
        }
        return cls(
            trace=read_trace(folder),
            bounds=bounds,
            captured=captured,
            edges=read_edges(folder),
            board_exchanges=board_exchanges,
            events=events,
            system=systems,
            other_sensors={number: read_trace(folder, number) for number in further_numbers(folder)},
        )
