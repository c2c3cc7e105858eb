"""From what a run left in raw/ to the record's files, whatever state the run ended in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from opjoule.clocks.exchange_file import BOARD_EXCHANGES, METER_EXCHANGES, read_exchanges
from opjoule.clocks.exchanges import Exchange
from opjoule.clocks.played_signature import PlayedPattern, fit_played
from opjoule.clocks.signature import DELAY_U_NS, SignatureFit
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import OpJouleError, RecordFault
from opjoule.measurement.alignment import (
    INTERRUPT_EDGE_U_NS,
    METER_EDGE_U_NS,
    Alignment,
    ClockEvidence,
    align,
)
from opjoule.measurement.execution import SIGNATURE
from opjoule.measurement.logged import LoggedOperations, read_logs
from opjoule.measurement.result import Placed
from opjoule.measurement.summary import build_result, sensor_energies
from opjoule.measurement.supply_check import check_supply
from opjoule.measurement.trace_faults import TraceFault
from opjoule.meters.sensors import BY_LIBRARY
from opjoule.operations import schemas
from opjoule.operations.board_files import (
    load_changes,
    read_events,
    read_system,
    sync_edges,
    without_operations,
)
from opjoule.operations.tables import write_operations
from opjoule.record.corrected_trace import CorrectedTrace
from opjoule.record.definition import ENERGY, PER_OPERATION
from opjoule.record.phases import Phase, whole_repeats
from opjoule.record.result import write_result
from opjoule.record.run_record import RunRecord
from opjoule.record.withheld import withhold
from opjoule.studies.results import wording_of
from opjoule.trace.journal import SyncEdges, further_numbers, read_edges, read_trace, to_parquet
from opjoule.trace.parquet_file import write_parquet
from opjoule.trace.power_trace import PowerTrace


@dataclass(frozen=True)
class Evidence:
    """What the analysis starts from, besides the trace and the board's files."""

    phases: Sequence[Phase]
    board_exchanges: Sequence[Exchange]
    meter_exchanges: Sequence[Exchange]
    sensor: ErrorBounds
    cores: int
    ended_early: bool
    further_sensors: Mapping[int, ErrorBounds]
    """number, from 1 -> error bounds of a sensor besides that of the board's supply"""

    @classmethod
    def of(cls, record: RunRecord, *, ended_early: bool) -> Evidence:
        """What a run has left in its record, however it ended."""
        run = record.run
        if run.sensor is None or run.found.cores is None:
            raise RecordFault(f"{record.directory} is no measurement: it has no sensor, or no board")
        return cls(
            phases=run.phases,
            board_exchanges=_exchanges(record, BOARD_EXCHANGES),
            meter_exchanges=_exchanges(record, METER_EXCHANGES),
            sensor=run.sensor,
            cores=run.found.cores,
            ended_early=ended_early,
            further_sensors=run.further_sensors,
        )


@dataclass(frozen=True)
class BoardEvents:
    """What happened on the board, read once."""

    by_file: Mapping[str, pa.Table]
    """Name of the raw file -> its events, in order of time."""

    @classmethod
    def of(cls, record: RunRecord) -> BoardEvents:
        """Of every file of events.

        Raises: RecordFault: one of them is damaged.
        """
        return cls({path.name: read_events(path).table for path in record.raw_files("*.events.jsonl")})

    @property
    def table(self) -> pa.Table:
        """All events in order of time."""
        parts = list(self.by_file.values())
        return pa.concat_tables(parts).sort_by("board_ns") if parts else schemas.EVENTS.empty_table()


def _exchanges(record: RunRecord, name: str) -> list[Exchange]:
    """Round trips of a raw file; none, and a fault, where it is damaged."""
    try:
        return read_exchanges(record.intact(f"raw/{name}"))
    except RecordFault as fault:
        record.add_fault(str(fault))
        return []


def collect(record: RunRecord, evidence: Evidence) -> CorrectedTrace | None:
    """Writes every file of the record that can be written, result.json if a repeat is whole, and the final status.

    The status is "complete" if nothing was missing, "failed" if a fault withholds figures, else "partial".
    What takes long to write is written beside the analysis.

    Returns: the trace that the figures rest on, for the report; None if it cannot be read.
    """
    attempt = _Attempt(record)
    with ThreadPoolExecutor(1) as beside:
        events = attempt(lambda: BoardEvents.of(record)) or BoardEvents({})
        raw = attempt(lambda: _trace(record))
        trace_files = beside.submit(_trace_files, record, raw)
        logged = read_logs(record, events.table)
        operations_file = beside.submit(_operations, record, logged)
        attempt(lambda: _tables(record, events))
        alignment = attempt(lambda: _align(record, evidence, events, raw)) if evidence.phases else None
        attempt(trace_files.result)
        supply = CorrectedTrace.of(raw, evidence.sensor) if raw else None
        raw = None
        if supply is not None:
            _check_supply(record, evidence, supply, alignment, attempt)
        if alignment is not None and not alignment.passed:
            record.add_fault(
                "clock evidence disagrees beyond its stated uncertainty: energies cannot be placed",
                withholds=(ENERGY, PER_OPERATION),
            )
        for line in logged.faults:
            record.add_fault(line, withholds=(PER_OPERATION,) if line == logged.withheld else ())
        if alignment is not None and supply is not None:
            attempt(lambda: _result(record, evidence, alignment, logged, events, supply))
        attempt(operations_file.result)
    if evidence.ended_early or attempt.failed or logged.faults:
        record.finish("partial")
    else:
        record.finish("failed" if record.withheld else "complete")
    return supply


T = TypeVar("T")


class _Attempt:
    """Calls a step; an expected failure becomes a fault of the record and None."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self.failed = False

    def __call__(self, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except OpJouleError as error:
            self.failed = True
            if str(error) not in self._record.faults:  # one damaged file stops several steps
                self._record.add_fault(str(error))
            return None


def interim_result(record: RunRecord) -> Mapping[str, Any]:
    """The numbers of the whole repeats that a measurement under way has on disk.

    Raises: OpJouleError: there is none yet, or the clocks cannot be matched yet.
    """
    evidence, events = Evidence.of(record, ended_early=True), BoardEvents.of(record)
    raw = _trace(record)
    alignment, logged = _align(record, evidence, events, raw), read_logs(record, events.table)
    entries, _ = _entries(
        record, evidence, alignment, logged, events, CorrectedTrace.of(raw, evidence.sensor)
    )
    return withhold(entries, record.withheld, wording_of(record.run).quantities)


def _trace_files(record: RunRecord, raw: PowerTrace | None) -> None:
    for pattern in ("power*.arrows", "gaps*.arrows", "edges*.arrows", "bus*.arrows"):
        record.raw_files(pattern)
    to_parquet(record.directory, raw)


def _trace(record: RunRecord, sensor: int = 0) -> PowerTrace:
    """The trace of one sensor. Raises: RecordFault: it was changed since it was recorded."""
    for name in ("power", "gaps", "bus"):
        record.intact(f"raw/{name}-{sensor}.arrows" if sensor else f"raw/{name}.arrows")
    return read_trace(record.directory, sensor)


def _edges(record: RunRecord) -> SyncEdges:
    record.intact("raw/edges.arrows")
    return read_edges(record.directory)


def _operations(record: RunRecord, logged: LoggedOperations) -> None:
    """operations.parquet, of logs that hold what the loader did and nothing else."""
    if not logged.withheld:
        write_operations(record.path("operations.parquet"), logged.table)


def _tables(record: RunRecord, events: BoardEvents) -> None:
    """events.parquet and system.parquet."""
    write_parquet(record.path("events.parquet"), schemas.EVENTS, [without_operations(events.table)])
    parts = [read_system(path).table for path in record.raw_files("*.system.csv") if path.stat().st_size]
    table = pa.concat_tables(parts).sort_by("board_ns") if parts else schemas.SYSTEM.empty_table()
    write_parquet(record.path("system.parquet"), schemas.SYSTEM, [table.cast(schemas.SYSTEM)])


def _check_supply(
    record: RunRecord,
    evidence: Evidence,
    supply: CorrectedTrace,
    alignment: Alignment | None,
    attempt: _Attempt,
) -> None:
    if supply.refusal:
        record.add_fault(supply.refusal)
    attempt(lambda: check_supply(record, supply.trace, supply.sensor, evidence.phases, alignment))


def _align(record: RunRecord, evidence: Evidence, events: BoardEvents, trace: PowerTrace | None) -> Alignment:
    over = (evidence.phases[0].start_board_ns, evidence.phases[-1].end_board_ns)
    clocks = ClockEvidence(
        sync_edges(events.table),
        _edges(record),
        evidence.board_exchanges,
        evidence.meter_exchanges,
        _signature(record, evidence.sensor, events, trace),
        _meter_edge_u_ns(record),
    )
    alignment = align(clocks, over)
    record.update(clock_maps=alignment.maps, clock_map_used=alignment.used)
    for fault in alignment.faults:
        record.add_fault(fault)
    return alignment


def _meter_edge_u_ns(record: RunRecord) -> float:
    """Standard uncertainty of the meter's stamps of sync edges [ns], by what its firmware runs on."""
    board = record.run.found.meter.board
    return INTERRUPT_EDGE_U_NS if board in {kind.name.lower() for kind in BY_LIBRARY} else METER_EDGE_U_NS


def _signature(
    record: RunRecord, sensor: ErrorBounds, events: BoardEvents, trace: PowerTrace | None
) -> Callable[[], SignatureFit] | None:
    """What fits the load signature, if the board has played one; its quality goes into the record."""
    changes = [
        load_changes(table) for name, table in events.by_file.items() if name.startswith(f"{SIGNATURE}-")
    ]
    played = [
        PlayedPattern(one.board_ns, one.level.astype(np.int64), one.u_ns)
        for one in changes
        if one.board_ns.size
    ]
    if not played or trace is None:
        return None

    def fit() -> SignatureFit:
        good = trace.good
        conversion_ns = round(sensor.seen_fraction * trace.period_ns)
        found = fit_played(
            trace.meter_ns[good], trace.power_w[good], played, conversion_ns, _load_u_ns(record)
        )
        quality = {"peak": found.peak, "rival": found.rival, "step_w": found.step_w, "lag_ns": found.lag_ns}
        record.update(signature=quality)
        return found

    return fit


def _load_u_ns(record: RunRecord) -> float:
    """Standard uncertainty of the time from the board's stamp of a load change to the load itself [ns].

    A simulated load follows its board in steps, of which run.json states the length.
    """
    return max(DELAY_U_NS, record.run.found.simulation.load_step_s * 1e9 / math.sqrt(3.0))


def _result(
    record: RunRecord,
    evidence: Evidence,
    alignment: Alignment,
    logged: LoggedOperations,
    events: BoardEvents,
    supply: CorrectedTrace,
) -> None:
    entries, faults = _entries(record, evidence, alignment, logged, events, supply)
    for fault in faults:
        record.add_fault(fault.line, withholds=fault.withholds)
    quantities = wording_of(record.run).quantities
    withheld = withhold(entries, record.withheld, quantities)
    write_result(record.directory, withheld, simulated=record.simulated, quantities=quantities)


def _entries(
    record: RunRecord,
    evidence: Evidence,
    alignment: Alignment,
    logged: LoggedOperations,
    events: BoardEvents,
    supply: CorrectedTrace,
) -> tuple[dict[str, Any], list[TraceFault]]:
    """All numbers of the whole repeats, nothing withheld, and the faults of the trace under them."""
    trace = supply.trace
    phases = evidence.phases
    if evidence.ended_early:
        last_meter_ns = int(trace.meter_ns[-1]) if trace.meter_ns.size else 0
        phases = whole_repeats(phases, alignment.board_to_meter.inverse().to_target(last_meter_ns))
    recorded = further_numbers(record.directory)
    further = {
        number: CorrectedTrace.of(_trace(record, number), bounds)
        for number, bounds in evidence.further_sensors.items()
        if number in recorded
    }
    placed = {
        number: Placed(Cells.of(each.trace), each.sensor, alignment.board_to_meter)
        for number, each in further.items()
    }
    of_storage = record.run.found.storage_sensor
    entries, faults = build_result(
        record,
        phases,
        trace,
        supply.sensor,
        alignment,
        logged.table,
        evidence.cores,
        events.table,
        placed.get(of_storage.number) if of_storage else None,
    )
    if placed:
        entries["by_sensor"] = {str(number): sensor_energies(phases, each) for number, each in placed.items()}
    refusals = [
        TraceFault(f"sensor {number}: {each.refusal}") for number, each in further.items() if each.refusal
    ]
    return entries, faults + refusals
