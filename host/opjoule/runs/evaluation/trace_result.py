"""Result of a power trace without a board: mean power, mean voltage and energy over its whole length."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from opjoule.base.errors import AlignmentError, OpJouleError
from opjoule.base.notices import Grade, Notice, NoticeKind, withheld_by
from opjoule.base.units import Cause, Quantity, exact, missing
from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, fit_exchanges, read_exchanges
from opjoule.energy.budget import mean_voltage_u_v
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.journal import read_trace, to_parquet
from opjoule.energy.unseen_current import near_range_notices
from opjoule.energy.window import EnergyResult, Window, seen, window_energy_j
from opjoule.runs.evaluation.alignment import odd_clocks
from opjoule.runs.evaluation.evidence import CorrectedTrace
from opjoule.runs.evaluation.faults import backwards, withhold
from opjoule.runs.evaluation.result_file import stated
from opjoule.runs.evaluation.wording import TRACE
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.result import RESULT_SCHEMA
from opjoule.runs.record.run_record import RunRecord

NO_BOUNDS = "the meter's error bounds are unknown: name its model with --sensor"
STATED_VOLTAGE = "the supply's voltage was stated by the user, not measured"


def conclude_trace(record: RunRecord) -> bool:
    """Writes parquet files and result.json of a trace without a board; on failure adds a fault and returns False."""
    try:
        for pattern in ("power*.arrows", "gaps*.arrows", "edges*.arrows", "bus*.arrows"):
            record.raw_files(pattern)
        to_parquet(record.directory)
        exchanges = (read_exchanges(record.intact(f"raw/{name}")) for name in (METER_EXCHANGES, BOARD_EXCHANGES))
        odd = [notice for notice in odd_clocks(record.run, *exchanges) if notice.withholds][:1]
        record.add_notices(*odd)
        record.update(clocks_checked=True)
        noted = [notice for notice in record.run.notices if notice.kind.grade is Grade.NOTE]
        numbers = trace_result(record)
        if odd:  # one of the clocks that give the seconds is wrong
            numbers = withhold(numbers, withheld_by(odd), TRACE.quantities)
            numbers["duration_s"] = missing(odd[0].text, "s", Cause.WITHHELD)
        if said := [*noted, *numbers.get("notices", [])]:
            numbers["notices"] = said
        contents = {"schema": RESULT_SCHEMA, "simulated": record.simulated, **numbers}
    except OpJouleError as error:
        record.add_notices(Notice(NoticeKind.FAULT, str(error)))
        return False
    write_json(record.path("result.json"), stated(contents))
    return True


def trace_result(record: RunRecord) -> dict[str, Any]:
    """The entries of result.json, each a quantity; with a reason if the record gives no uncertainty.

    Raises: DataFault: fewer than two samples, or too many of them were lost. RecordFault: a file is damaged.
    """
    trace = read_trace(record.directory)
    if len(trace) < 2:
        why, shown = "the trace holds fewer than two samples", TRACE.quantities.shown("traced")
        without = {definition.key: missing(why, definition.unit) for definition in shown}
        return {**without, "lost_samples": exact(trace.lost_samples, "1")}
    sensor = record.run.sensor
    if sensor is not None:
        corrected = CorrectedTrace.of(trace, sensor)
        trace, sensor = corrected.trace, corrected.sensor
        record.add_notices(*corrected.refusal)
    cells = Cells.of(trace)
    host = None if sensor is None else meter_to_host(record)
    window = Window.of_meter(cells.start_ns, cells.end_ns, host)
    if window.duration_s <= 0.0:
        raise AlignmentError("by its round trips with this computer the meter's clock ran backwards: was it restarted?")
    bounds = sensor or unknown_sensor(float(cells.current_a.max()))
    energy = window_energy_j(cells, window, bounds)
    record.add_notices(*(replace(fault, withholds=()) for fault in backwards("trace", energy, bounds)))
    entries: dict[str, Any] = {
        **_numbers(energy, cells, sensor),
        "lost_samples": exact(energy.lost_samples, "1"),
        "seen_share": seen([energy]),
    }
    if reason := no_uncertainty(record, sensor):
        return {key: value.without_interval(reason) for key, value in entries.items()}
    if near := near_range_notices(cells, sensor, [(cells.start_ns, cells.end_ns)]) if sensor else []:
        entries["notices"] = near
    shared = {"shared": {"budget": energy.budget.shared}} if energy.budget.shared else {}
    return {**entries, "timebase": energy.timebase.stated(), "budget": energy.budget.stated(), **shared}


def unknown_sensor(current_max_a: float) -> ErrorBounds:
    """Error bounds for an unknown meter; no uncertainty is stated then."""
    return ErrorBounds(
        gain_errors_max={},
        current_offset_max_a=0.0,
        current_step_a=0.0,
        voltage_step_v=0.0,
        current_max_a=current_max_a,
        seen_fraction=1.0,
        clock_error_max=0.0,
    )


def _numbers(result: EnergyResult, cells: Cells, sensor: ErrorBounds | None) -> dict[str, Quantity]:
    duration_s = result.window.duration_s
    voltage_v = result.integrals.voltage_time_vs / duration_s
    voltage_u_v = mean_voltage_u_v(cells, cells.start_ns, cells.end_ns, sensor) if sensor else 0.0
    return {
        "energy_j": result.energy,
        "power_w": result.power,
        "voltage_v": Quantity.from_standard(voltage_v, voltage_u_v, "V"),
        "duration_s": Quantity.from_standard(duration_s, duration_s * result.timebase.relative_u, "s"),
    }


def no_uncertainty(record: RunRecord, sensor: ErrorBounds | None) -> str:
    """Reason why no uncertainty of a record's energies can be stated; empty if it can."""
    if record.run.found.imported.voltage_stated:
        return STATED_VOLTAGE
    return NO_BOUNDS if sensor is None else ""


def meter_to_host(record: RunRecord) -> ClockMap | None:
    """Map from the meter's clock to this computer's, whose seconds are better; None without enough round trips."""
    exchanges = read_exchanges(record.intact(f"raw/{METER_EXCHANGES}"))
    try:
        return fit_exchanges(exchanges, "host", "meter").inverse()
    except AlignmentError:
        return None
