"""Writes the record's files from raw/, no matter how the run ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final, TypeVar

import pyarrow as pa
from msgspec.structs import replace as replaced

from opjoule.base.errors import OpJouleError
from opjoule.base.notices import Notice, NoticeKind
from opjoule.clocks.signature import DELAY_U_NS, SignatureFit
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.operations.board_files import load_changes, read_system, sync_edges, without_operations
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.played_signature import fit_played
from opjoule.energy.operations.tables import EVENTS, SYSTEM, write_operations
from opjoule.energy.trace.journal import further_numbers, read_edges, read_trace, to_parquet
from opjoule.energy.trace.parquet_file import write_parquet
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.chips import BY_LIBRARY
from opjoule.runs.evaluation.alignment import (
    INTERRUPT_EDGE_U_NS,
    METER_EDGE_U_NS,
    AlignedTrace,
    Alignment,
    ClockEvidence,
    align,
    odd_clocks,
)
from opjoule.runs.evaluation.evidence import BoardEvents, CorrectedTrace, Evidence, LoggedOperations, read_logs
from opjoule.runs.evaluation.faults import check_supply, withhold
from opjoule.runs.evaluation.quantities.phases import marked_phases, marks_of
from opjoule.runs.evaluation.result_file import result_json
from opjoule.runs.evaluation.summary import AlignedRun, build_result, sensor_energies
from opjoule.runs.evaluation.wording import wording_of
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.phases import SIGNATURE, Phase, whole_repeats
from opjoule.runs.record.result import ENERGY, PER_OPERATION
from opjoule.runs.record.run_record import RunRecord

T = TypeVar("T")
_CLOCKS_DISAGREE: Final = Notice(
    NoticeKind.CLOCKS,
    "clock evidence disagrees beyond its stated uncertainty: no energy can be assigned to a phase",
    withholds=(ENERGY, PER_OPERATION),
)


def collect(
    record: RunRecord,
    evidence: Evidence,
    drawn: Callable[[RunRecord, PowerTrace, OperationTable | None], T] | None = None,
) -> T | None:
    """Writes every possible file of the record, result.json if there is a complete repeat, and the final status.

    The status is "complete" if nothing was missing, "failed" if a fault withholds figures, else "partial". Large files
    are written concurrently with the analysis. Returns: the result of `drawn` for the corrected trace and the
    operations; None without a trace.
    """
    attempt, drawing = _Attempt(record), None
    # The attribution takes longest: what is not needed for it runs in one thread, to leave it a processor.
    with ThreadPoolExecutor(2) as beside, ThreadPoolExecutor(1) as later:
        events = attempt(lambda: BoardEvents.of(record)) or BoardEvents({}, damaged=True)
        logs = beside.submit(read_logs, record, events.table)
        raw = attempt(lambda: _trace(record))
        trace_files = beside.submit(_trace_files, record, raw)
        attempt(lambda: _tables(record, events))
        attempt(lambda: _mark_phases(record, events))
        alignment = attempt(lambda: _align(record, evidence, events, raw)) if record.run.phases else None
        attempt(trace_files.result)  # written from the sensor's own values, which the correction overwrites
        supply = CorrectedTrace.of(raw, evidence.sensor, overwrite=True) if raw else None
        raw, logged = None, logs.result()
        operations_file = later.submit(_operations, record, logged)
        if supply is not None:
            operations = None if logged.withheld else logged.table
            drawing = later.submit(drawn, record, supply.trace, operations) if drawn else None
            record.add_notices(*supply.refusal)
            attempt(lambda: check_supply(record, supply.trace, supply.sensor, record.run.phases, alignment))
        if alignment is not None and not alignment.passed:
            record.add_notices(_CLOCKS_DISAGREE)
        if not evidence.damaged:
            _check_clocks(record, evidence)
        record.add_notices(*logged.faults)
        if alignment is not None and supply is not None:
            attempt(lambda: _result(record, evidence, alignment, logged, events, supply))
        attempt(operations_file.result)
    if evidence.ended_early or evidence.damaged or attempt.failed or logged.faults:
        record.finish("partial")
    else:
        record.finish("failed" if record.withheld else "complete")
    return drawing.result() if drawing else None


class _Attempt:
    """Calls a step; an expected failure becomes a fault of the record, and the result is None."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self.failed = False

    def __call__(self, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except OpJouleError as error:
            self.failed = True
            self._record.add_notices(Notice(NoticeKind.FAULT, str(error)))
            return None


def interim_result(record: RunRecord) -> Mapping[str, Any]:
    """Numbers of the complete repeats on disk so far. Raises: OpJouleError: none yet, or unmatched clocks."""
    evidence, events = Evidence.of(record, ended_early=True), BoardEvents.of(record)
    raw = _trace(record)
    alignment, logged = _align(record, evidence, events, raw), read_logs(record, events.table)
    supply = CorrectedTrace.of(raw, evidence.sensor)
    entries, _ = _entries(record, evidence, alignment, logged, events, supply)
    return withhold(entries, record.withheld, wording_of(record.run).quantities)


def _trace_files(record: RunRecord, raw: PowerTrace | None) -> None:
    for pattern in ("power*.arrows", "gaps*.arrows", "edges*.arrows", "bus*.arrows"):
        record.raw_files(pattern)
    record.written(*to_parquet(record.directory, raw))


def _trace(record: RunRecord, sensor: int = 0) -> PowerTrace:
    """The trace of one sensor. Raises: RecordFault: the raw file was changed."""
    for name in ("power", "gaps", "bus"):
        record.intact(f"raw/{name}-{sensor}.arrows" if sensor else f"raw/{name}.arrows")
    return read_trace(record.directory, sensor)


def _operations(record: RunRecord, logged: LoggedOperations) -> None:
    """Writes operations.parquet from logs that contain exactly what the loader did."""
    if not logged.withheld:
        path = record.path("operations.parquet")
        write_operations(path, logged.table)
        record.written(path)


def _tables(record: RunRecord, events: BoardEvents) -> None:
    write_parquet(record.path("events.parquet"), EVENTS, [without_operations(events.table)])
    parts = [read_system(path) for path in record.raw_files("*.system.csv") if path.stat().st_size]
    table = pa.concat_tables(parts).sort_by("board_ns") if parts else SYSTEM.empty_table()
    write_parquet(record.path("system.parquet"), SYSTEM, [table.cast(SYSTEM)])


def _mark_phases(record: RunRecord, events: BoardEvents) -> None:
    """Adds the phases that the work marked to run.json; a mark without its counterpart is a fault."""
    marked, wrong = marked_phases(marks_of(record, events.table), record.run.phases)
    record.add_notices(*wrong)
    if marked:
        record.update(marked_phases=marked)


def _align(record: RunRecord, evidence: Evidence, events: BoardEvents, trace: PowerTrace | None) -> Alignment:
    phases = record.run.phases
    over = (phases[0].start_board_ns, phases[-1].end_board_ns)
    by_interrupt = record.run.found.meter.board in {kind.name.lower() for kind in BY_LIBRARY}
    record.intact("raw/edges.arrows")
    clocks = ClockEvidence(
        sync_edges(events.table),
        read_edges(record.directory),
        evidence.board_exchanges,
        evidence.meter_exchanges,
        _signature(record, evidence.sensor, events, trace),
        INTERRUPT_EDGE_U_NS if by_interrupt else METER_EDGE_U_NS,
        events_damaged=events.damaged,
    )
    alignment = align(clocks, over)
    record.update(clock_maps=alignment.maps, clock_map_used=alignment.used)
    record.add_notices(*(alignment.edges.faults() if alignment.edges else ()))
    return alignment


def _check_clocks(record: RunRecord, evidence: Evidence) -> None:
    """Withholds the energies if a clock ran at an implausible rate, unless the sync line makes it irrelevant."""
    record.add_notices(*odd_clocks(record.run, evidence.meter_exchanges, evidence.board_exchanges))
    record.update(clocks_checked=True)


def _signature(
    record: RunRecord, sensor: ErrorBounds, events: BoardEvents, trace: PowerTrace | None
) -> Callable[[], SignatureFit] | None:
    """A function that fits the load signature and records the fit's quality; None if the board played none."""
    files = [table for name, table in events.by_file.items() if name.startswith(f"{SIGNATURE}-")]
    played = [edges for edges in map(load_changes, files) if edges.board_ns.size]
    if not played or trace is None:
        return None

    def fit() -> SignatureFit:
        good = trace.good
        conversion_ns = round(sensor.seen_fraction * trace.period_ns)
        # A simulated load follows its board in steps; run.json has their length.
        load_u_ns = max(DELAY_U_NS, record.run.found.simulation.load_step_s * 1e9 / math.sqrt(3.0))
        fitted = fit_played(trace.meter_ns[good], trace.power_w[good], played, conversion_ns, load_u_ns)
        record.update(signature={name: getattr(fitted, name) for name in ("peak", "rival", "step_w", "lag_ns")})
        return fitted

    return fit


def _result(
    record: RunRecord,
    evidence: Evidence,
    alignment: Alignment,
    logged: LoggedOperations,
    events: BoardEvents,
    supply: CorrectedTrace,
) -> None:
    entries, faults = _entries(record, evidence, alignment, logged, events, supply)
    record.add_notices(*faults)
    quantities = wording_of(record.run).quantities
    withheld = withhold(entries, record.withheld, quantities)
    contents = result_json(withheld, simulated=record.simulated, quantities=quantities)
    write_json(record.path("result.json"), contents)


def _entries(
    record: RunRecord,
    evidence: Evidence,
    alignment: Alignment,
    logged: LoggedOperations,
    events: BoardEvents,
    supply: CorrectedTrace,
) -> tuple[dict[str, Any], list[Notice]]:
    """All numbers of the complete repeats, nothing withheld, and the faults of their trace."""
    trace = supply.trace
    phases: Sequence[Phase] = record.run.phases
    if evidence.ended_early:
        last_meter_ns = int(trace.meter_ns[-1]) if trace.meter_ns.size else 0
        phases = whole_repeats(phases, alignment.board_to_meter.inverse().to_target(last_meter_ns))
    recorded, board_to_meter = further_numbers(record.directory), alignment.board_to_meter
    aligned: dict[int, AlignedTrace] = {}
    refusals: list[Notice] = []
    for number, bounds in record.run.further_sensors.items():
        if number not in recorded:
            continue
        corrected = CorrectedTrace.of(_trace(record, number), bounds)
        u_ns = math.hypot(board_to_meter.u_offset_ns, corrected.sensor.stamp_u_ns)
        stamped = replace(board_to_meter, u_offset_ns=u_ns)
        aligned[number] = AlignedTrace(Cells.of(corrected.trace), corrected.sensor, stamped)
        refusals += [replaced(refused, line=f"sensor {number}: {refused.line}") for refused in corrected.refusal]
    sensor = record.run.found.medium_sensor
    board = AlignedTrace(Cells.of(trace), supply.sensor, board_to_meter)
    medium = aligned.get(sensor.number) if sensor else None
    entries, faults = build_result(
        AlignedRun(record, phases, board, alignment, logged.table, evidence.cores, events.table, medium)
    )
    if aligned:
        energies = {str(number): sensor_energies(phases, traced) for number, traced in aligned.items()}
        entries["by_sensor"] = energies
    return entries, faults + refusals
