"""Phases that the work marked inside its own phase, from the marks on disk.

The board's events contain every mark, but reach the record only at the end of a repeat. For a repeat that was killed
earlier, the marks come from raw/marks.jsonl, to which the host writes each mark as it arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from opjoule.base.errors import DataFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Quantity, exact, missing
from opjoule.energy.baseline import IdlePower, marginal_energy
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, SQRT3
from opjoule.energy.operations.board_files import MARKS_FILE, PHASE_BEGIN, PHASE_END, PhaseMark, read_events
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.runs.evaluation.quantities.figures import Figures, over_repeats
from opjoule.runs.evaluation.quantities.repeat import NO_IDLE
from opjoule.runs.evaluation.repeat_energy import AlignedTrace
from opjoule.runs.record.phases import RUN, Phase, Role
from opjoule.runs.record.run_record import RunRecord

_OPEN_END_NS: Final = (1 << 63) - 1
_BOARD_CLOCK_U: Final = CRYSTAL_ERROR_MAX / SQRT3
"""Relative standard uncertainty of the board's seconds."""


def marks_of(record: RunRecord, events: pa.Table) -> list[PhaseMark]:
    """Marks among the board's events and those that the host received, without duplicates, in order of time."""
    heard = [read_events(path) for path in record.raw_files(MARKS_FILE)]
    once = dict.fromkeys(_marks(pa.concat_tables([events, *heard])))
    return sorted(once, key=lambda mark: mark.board_ns)


def _marks(events: pa.Table) -> Iterator[PhaseMark]:
    kinds = events["event"].to_numpy(zero_copy_only=False)
    chosen = events.filter(pa.array((kinds == PHASE_BEGIN) | (kinds == PHASE_END), pa.bool_()))
    for row in chosen.select(["board_ns", "event", "detail"]).to_pylist():
        yield PhaseMark(row["board_ns"], row["detail"] or "", row["event"] == PHASE_BEGIN)


def marked_phases(marks: Sequence[PhaseMark], phases: Sequence[Phase]) -> tuple[list[Phase], list[Notice]]:
    """Phases marked inside the work of each repeat, and a fault for each mark without its counterpart.

    `phases`: the completed phases. Work that was interrupted keeps the phases that it had marked.
    """
    marked: list[Phase] = []
    wrong: list[Notice] = []
    for work in [phase for phase in phases if phase.role is Role.WORK] + _cut_off(marks, phases):
        pairs, lines = _paired(marks, work)
        marked += pairs
        wrong += [Notice(NoticeKind.MARKS, f"repeat {work.repeat}: marks of {work.name}: {line}") for line in lines]
    return marked, wrong


def _cut_off(marks: Iterable[PhaseMark], phases: Sequence[Phase]) -> list[Phase]:
    """The work that began after all completed phases; empty if there is none."""
    since_ns = max((phase.end_board_ns for phase in phases), default=0)
    begins = [mark for mark in marks if mark.begins and mark.name == RUN and mark.board_ns >= since_ns]
    if not begins:
        return []
    repeat = phases[-1].repeat if phases else 1
    worked = any(phase.repeat == repeat and phase.role is Role.WORK for phase in phases)
    return [Phase(RUN, repeat + worked, begins[0].board_ns, _OPEN_END_NS, role=Role.WORK)]


def _paired(marks: Iterable[PhaseMark], work: Phase) -> tuple[list[Phase], list[str]]:
    pairs: list[Phase] = []
    wrong: list[str] = []
    begun: dict[str, int] = {}
    for mark in marks:
        if mark.name == work.name or not work.start_board_ns <= mark.board_ns <= work.end_board_ns:
            continue
        if mark.begins and mark.name in begun:
            wrong.append(f"phase {mark.name} begins again before it has ended")
        elif mark.begins:
            begun[mark.name] = mark.board_ns
        elif mark.name in begun:
            start_ns = begun.pop(mark.name)
            pairs.append(Phase(mark.name, work.repeat, start_ns, mark.board_ns, role=Role.WORK))
        else:
            wrong.append(f"phase {mark.name} ends without having begun")
    wrong += [f"phase {name} has no end" for name in begun]
    return sorted(pairs, key=lambda phase: phase.start_board_ns), wrong


NO_OPERATION = "no operation was marked in this phase"


def phase_figures(
    aligned: AlignedTrace, marked: Sequence[Phase], idle: IdlePower | None, operations: OperationTable
) -> dict[str, Figures]:
    """Figures of one repeat's marked phases by name; phases of the same name are summed."""
    parts: dict[str, list[dict[str, Quantity]]] = {}
    for phase in marked:
        parts.setdefault(phase.name, []).append(_one(aligned, phase, idle, operations))
    return {name: _sum(named) for name, named in parts.items()}


def by_phase(repeats: Sequence[Mapping[str, Figures]]) -> dict[str, dict[str, Quantity]]:
    """`by_phase` of result.json: each figure's mean over the repeats; missing if a repeat lacks it."""
    names = dict.fromkeys(name for figures in repeats for name in figures)
    lacking: dict[str, Quantity] = {}
    made = {}
    for name in names:
        by_repeat = [figures.get(name, lacking) for figures in repeats]
        keys = next(figures for figures in by_repeat if figures)
        none = missing("the phase was not marked")
        made[name] = {key: over_repeats([figures.get(key, none) for figures in by_repeat]) for key in keys}
    return made


def by_path(phases: Mapping[str, Figures]) -> Figures:
    """Figures of one repeat's marked phases, by their paths in result.json."""
    return {f"by_phase.{name}.{key}": figure for name, of in phases.items() for key, figure in of.items()}


def _one(
    aligned: AlignedTrace, phase: Phase, idle: IdlePower | None, operations: OperationTable
) -> dict[str, Quantity]:
    count = len(operations.started_in(phase.start_board_ns, phase.end_board_ns))
    return {
        **_energies(aligned, phase, idle),
        "duration_s": Quantity.from_standard(phase.duration_s, _BOARD_CLOCK_U * phase.duration_s, "s"),
        "operations": exact(float(count), "1"),
    }


def _energies(aligned: AlignedTrace, phase: Phase, idle: IdlePower | None) -> dict[str, Quantity]:
    """Energies of one phase. A phase outside the trace, or mostly lost, has none; other windows keep theirs."""
    try:
        energy = aligned.energy(phase, phase)
    except DataFault as fault:
        return dict.fromkeys(("energy_j", "marginal_energy_j"), missing(str(fault), "J"))
    above = marginal_energy(energy, idle, aligned.sensor).energy if idle else missing(NO_IDLE, "J")
    return {"energy_j": energy.energy, "marginal_energy_j": above}


def _sum(parts: Sequence[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """Sums of the quantities of a phase's parts, also per operation."""
    total = {key: _together([of_part[key] for of_part in parts]) for key in parts[0]}
    for key in ("energy_j", "marginal_energy_j"):
        total[key.replace("_j", "_per_operation_j")] = total[key].over(float(total["operations"]), NO_OPERATION)
    return total


def _together(parts: Sequence[Quantity]) -> Quantity:
    """Sum of quantities whose systematic errors are common: the standard uncertainties add up, and so do the shared
    errors, with their signs."""
    if lacking := next((part for part in parts if part.value is None), None):
        return lacking
    value, unit = sum(map(float, parts)), parts[0].unit
    if without := [part for part in parts if part.u is None]:
        return replace(next((part for part in without if part.unbounded), without[0]), value=value)
    names = dict.fromkeys(name for part in parts for name in part.shared)
    shared = {name: sum(part.shared.get(name, 0.0) for part in parts) for name in names}
    excess = max(part.excess for part in parts)
    return Quantity.from_standard(value, sum(part.standard_u for part in parts), unit, excess, shared)
