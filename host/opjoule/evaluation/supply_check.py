"""Whether the supply held the board up: the least voltage of the trace against the board's limit."""

from __future__ import annotations

from collections.abc import Sequence

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.least_voltage import LeastVoltage, least_voltage
from opjoule.evaluation.alignment import Alignment
from opjoule.record.json_file import plain
from opjoule.record.phases import Phase
from opjoule.record.run_record import RunRecord
from opjoule.trace.power_trace import PowerTrace
from opjoule.units import Measured

NOT_MEASURED = "the supply could not be checked: the meter does not measure voltage"
NOTHING_READ = "the supply could not be checked: the trace holds no voltage"
NO_LIMIT = "the least voltage that this board needs is not known"


def check_supply(
    record: RunRecord,
    trace: PowerTrace,
    sensor: ErrorBounds,
    phases: Sequence[Phase],
    alignment: Alignment | None,
) -> None:
    """Puts the least voltage into run.json, and adds a fault where it lies under the board's limit."""
    facts = record.run.found
    where = facts.meter.voltage_at
    least = least_voltage(trace, sensor) if where else None
    if least is None:
        record.update(least_voltage={"unchecked": NOTHING_READ if where else NOT_MEASURED})
        return
    limit_v = facts.supply.least_voltage_v
    at_s = max(least.meter_ns - int(trace.meter_ns[0]), 0) * 1e-9
    measured = Measured.from_standard(least.voltage_v, least.standard_u_v, "V")
    entry = {**plain(measured), "where": where, "at_meter_ns": least.meter_ns, "at_s": at_s}
    phase = _phase(least, phases, alignment)
    unchecked = {"unchecked": NO_LIMIT} if limit_v is None else {}
    record.update(least_voltage={**entry, "phase": phase, "limit_v": limit_v, **unchecked})
    if limit_v is not None and least.is_under(limit_v):
        record.add_fault(
            f"supply: the least voltage {where} was {least.voltage_v:.2f} V, {at_s:.1f} s into the trace"
            f"{f' ({phase})' if phase else ''}, below the board's limit of {limit_v:g} V: {facts.supply.remedy}"
        )


def _phase(least: LeastVoltage, phases: Sequence[Phase], alignment: Alignment | None) -> str:
    """The phase it happened in, in words; empty between phases, and where the clocks are not matched."""
    if alignment is None:
        return ""
    board_ns = alignment.board_to_meter.inverse().to_target(least.meter_ns)
    return next(
        (
            f"{phase.name}, repeat {phase.repeat}"
            for phase in phases
            if phase.start_board_ns <= board_ns <= phase.end_board_ns
        ),
        "",
    )
