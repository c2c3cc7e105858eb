"""Faults of a run and its trace, the notice of a short run, and the figures that a fault withholds.

A fault withholds groups of figures: the result states the fault in place of the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Cause, Quantity, missing
from opjoule.energy.error_bounds import SWAPPED, ErrorBounds
from opjoule.energy.least_voltage import LeastVoltage, least_voltage
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import EnergyResult
from opjoule.runs.evaluation.alignment import Alignment
from opjoule.runs.evaluation.quantities.definition import Quantities, RepeatEnergy
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.phases import Phase
from opjoule.runs.record.result import ABOVE_IDLE, ENERGY
from opjoule.runs.record.run_record import RunRecord

LOST_MAX: Final = 0.01
"""Largest share of a window's time with lost samples that causes no warning."""


def backwards(where: str, energy: EnergyResult, sensor: ErrorBounds) -> list[Notice]:
    """The fault of a window whose mean current is negative; `where`: the window, in words."""
    current_a = energy.integrals.charge_c / energy.window.duration_s
    if not sensor.is_backwards(current_a):
        return []
    line = f"{where}: the mean current is {current_a:.3f} A: it flows backwards"
    return [Notice(NoticeKind.REVERSED, line, SWAPPED, (ENERGY,))]


def trace_faults(repeat: int, energy: RepeatEnergy, sensor: ErrorBounds) -> list[Notice]:
    """The faults of one repeat's windows."""
    windows = {"run": energy.run, "run and settle": energy.whole}
    lost: list[Notice] = []
    clipped: list[Notice] = []
    for name, window in windows.items():
        share = window.lost_s / window.window.duration_s
        if share > LOST_MAX:
            line = (
                f"repeat {repeat}, {name}: {100 * share:.1f} % of the time has no sample ({window.lost_samples} "
                f"lost, limit {100 * LOST_MAX:g} %)"
            )
            lost.append(Notice(NoticeKind.LOST, line, "check the meter's cable and the host's load"))
        if window.clipped_samples:
            line = (
                f"repeat {repeat}, {name}: {window.clipped_samples} samples ({window.clipped_s:.3g} s) at the end "
                "of the meter's range: energies are lower bounds"
            )
            clipped.append(Notice(NoticeKind.CLIPPED, line))
    faults = [*lost[:1], *clipped[:1]]
    faults += backwards(f"repeat {repeat}, run", energy.run, sensor)
    if energy.idle and (count := energy.idle.clipped_samples):
        line = f"repeat {repeat}, idle: {count} samples at the end of the meter's range: idle is unknown"
        faults.append(Notice(NoticeKind.CLIPPED, line, withholds=(ABOVE_IDLE,)))
    return faults


NOT_MEASURED = "the supply could not be checked: no place is stated at which the meter measures its voltage"
NOTHING_READ = "the supply could not be checked: the trace holds no voltage"
NO_LIMIT = "the least voltage that this board needs is not known"


def check_supply(
    record: RunRecord,
    trace: PowerTrace,
    sensor: ErrorBounds,
    phases: Sequence[Phase],
    alignment: Alignment | None,
) -> None:
    """Puts the least voltage into run.json, and adds a fault if it is below the board's limit."""
    facts = record.run.found
    where = facts.meter.voltage_at
    least = least_voltage(trace, sensor) if where else None
    if least is None:
        record.update(least_voltage={"unchecked": NOTHING_READ if where else NOT_MEASURED})
        return
    limit_v = facts.supply.least_voltage_v
    at_s = max(least.meter_ns - int(trace.meter_ns[0]), 0) * 1e-9
    measured = Quantity.from_standard(least.voltage_v, least.standard_u_v, "V")
    entry = {**plain(measured), "where": where, "at_meter_ns": least.meter_ns, "at_s": at_s}
    phase = _phase(least, phases, alignment)
    unchecked = {"unchecked": NO_LIMIT} if limit_v is None else {}
    record.update(least_voltage={**entry, "phase": phase, "limit_v": limit_v, **unchecked})
    if limit_v is not None and least.is_under(limit_v):
        line = (
            f"supply: the least voltage {where} was {least.voltage_v:.2f} V, {at_s:.1f} s into the trace"
            f"{f' ({phase})' if phase else ''}, below the board's limit of {limit_v:g} V"
        )
        record.add_notices(Notice(NoticeKind.LOW_VOLTAGE, line, facts.supply.remedy))


def _phase(least: LeastVoltage, phases: Sequence[Phase], alignment: Alignment | None) -> str:
    """Name of the phase of the least voltage, in words; empty between phases, and if the clocks are not matched."""
    if alignment is None:
        return ""
    board_ns = alignment.board_to_meter.inverse().to_target(least.meter_ns)
    inside = (phase for phase in phases if phase.start_board_ns <= board_ns <= phase.end_board_ns)
    return next((f"{phase.name}, repeat {phase.repeat}" for phase in inside), "")


SHORTEST_S: Final = 1.0
FEWEST_SAMPLES: Final = 500
_SPARE: Final = 1.5
"""Factor by which a recommended length exceeds the minimum, because runs vary."""


def short_run_notices(runs: Sequence[Phase], period_ns: int, longer: Callable[[float, float], str]) -> list[Notice]:
    """A notice if the shortest run is too short for reliable figures, with samples `period_ns` apart.

    `longer`: gives the options to recommend, from the factor by which a run must be longer and its length [s].
    """
    shortest_s = min(run.duration_s for run in runs)
    samples = shortest_s * 1e9 / max(period_ns, 1)
    if shortest_s >= SHORTEST_S and samples >= FEWEST_SAMPLES:
        return []
    times = _SPARE * max(SHORTEST_S / shortest_s, FEWEST_SAMPLES / samples)
    line = (
        f"the run is too short to be representative: it took {shortest_s:.3g} s, {samples:.0f} samples. At least "
        f"{SHORTEST_S:g} s and {FEWEST_SAMPLES} samples are needed"
    )
    return [Notice(NoticeKind.TOO_SHORT, line, longer(times, shortest_s))]


def withhold(entries: Mapping[str, Any], withheld: Mapping[str, str], quantities: Quantities) -> dict[str, Any]:
    """The numbers of a run without those that its faults make wrong; `withheld`: group -> fault."""
    kept = dict(entries)
    by_repeat = dict(entries.get("by_repeat", {}))
    for group, fault in withheld.items():
        for key in quantities.resting_on(group):
            if key in kept:
                kept[key] = _withheld(key, fault, quantities)
            by_repeat = {path: values for path, values in by_repeat.items() if path.split(".")[0] != key}
    return kept | ({"by_repeat": by_repeat} if "by_repeat" in entries else {})


def _withheld(key: str, fault: str, quantities: Quantities) -> Any:  # a Quantity, or the entry of a group
    group = quantities.below(key)
    if not any(definition.required for definition in group):
        return None
    return missing(fault, "" if "*" in group[0].key else group[0].unit, Cause.WITHHELD)
