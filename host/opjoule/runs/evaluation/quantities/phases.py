"""Phases that the work marked inside its own, and their quantities. A new quantity is one row of `PHASES`.

Its formula computes it from a `MarkedPhase`. The board's events contain every mark, but reach the record only at the
end of a repeat. For a repeat that was killed earlier, the marks come from raw/marks.jsonl, to which the host writes
each mark as it arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from opjoule.base.errors import DataFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Cause, Quantity, exact, missing
from opjoule.energy.baseline import IdlePower, marginal_energy
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, SQRT3
from opjoule.energy.operations.board_files import MARKS_FILE, PHASE_BEGIN, PHASE_END, PhaseMark, read_events
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.window import EnergyResult
from opjoule.runs.evaluation.alignment import AlignedTrace
from opjoule.runs.evaluation.quantities.definition import FIRST, Definition, Figures, Quantities, Topic, over_repeats
from opjoule.runs.record.phases import RUN, Phase, Role
from opjoule.runs.record.result import ABOVE_IDLE, ENERGY
from opjoule.runs.record.run_record import RunRecord

_NO_OPERATION: Final = "no operation was marked in this phase"
_BOARD_CLOCK_U: Final = CRYSTAL_ERROR_MAX / SQRT3
"""Relative standard uncertainty of the board's seconds."""


@dataclass(frozen=True)
class MarkedPhase:
    """All stretches of one name in one repeat together, and what was measured in that repeat."""

    aligned: AlignedTrace
    stretches: Sequence[Phase]
    idle: IdlePower | None
    """None if it was not measured."""
    operation_table: OperationTable

    @property
    def energy(self) -> Quantity:
        """Energy in all; missing if a stretch is outside the trace, or mostly lost."""
        return _together([energy if isinstance(energy, Quantity) else energy.energy for energy in self._energies])

    @property
    def above_idle(self) -> Quantity:
        """Energy above idle; missing as `energy`, and without idle power."""
        return _together([self._above_idle(energy) for energy in self._energies])

    @property
    def duration(self) -> Quantity:
        """Length of all stretches by the board's clock."""
        lengths_s = [phase.duration_s for phase in self.stretches]
        return _together([Quantity.from_standard(length_s, _BOARD_CLOCK_U * length_s, "s") for length_s in lengths_s])

    @property
    def operations(self) -> float:
        """Number of operations that began in them."""
        started_in = self.operation_table.started_in
        return float(sum(len(started_in(phase.start_board_ns, phase.end_board_ns)) for phase in self.stretches))

    @cached_property
    def _energies(self) -> list[EnergyResult | Quantity]:
        """Energy of each stretch, or the reason why it is missing."""
        return [self._energy(phase) for phase in self.stretches]

    def _energy(self, phase: Phase) -> EnergyResult | Quantity:
        try:
            return self.aligned.energy(phase, phase)
        except DataFault as fault:
            return missing(str(fault), "J")

    def _above_idle(self, energy: EnergyResult | Quantity) -> Quantity:
        if isinstance(energy, Quantity):
            return energy
        if self.idle is None:
            return missing(Cause.NO_IDLE, "J")
        return marginal_energy(energy, self.idle, self.aligned.sensor).energy


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


PHASES: Final = (
    Definition(
        "by_phase.*.energy_j", "J", Topic.PART, "energy", "energy of a phase that the command marked",
        lambda phase: phase.energy, rests_on=(ENERGY,), required=False, column="in all",
    ),
    Definition(
        "by_phase.*.marginal_energy_j", "J", Topic.PART, "energy above idle",
        "the same less idle power times the phase's duration",
        lambda phase: phase.above_idle, rests_on=(ENERGY, ABOVE_IDLE), required=False,
        column="above idle", rank={"column": FIRST},
    ),
    Definition(
        "by_phase.*.duration_s", "s", Topic.PART, "time", "its duration",
        lambda phase: phase.duration, required=False, column="time",
    ),
    Definition(
        "by_phase.*.operations", "1", Topic.PART, "operations", "operations marked in it",
        lambda phase: exact(phase.operations, "1"), required=False, column="operations",
    ),
    Definition(
        "by_phase.*.energy_per_operation_j", "J", Topic.PART, "energy per operation", "its energy over them",
        lambda phase: phase.energy.over(phase.operations, _NO_OPERATION), rests_on=(ENERGY,), required=False,
    ),
    Definition(
        "by_phase.*.marginal_energy_per_operation_j", "J", Topic.PART, "energy above idle per operation",
        "its energy above idle over them",
        lambda phase: phase.above_idle.over(phase.operations, _NO_OPERATION), rests_on=(ENERGY, ABOVE_IDLE),
        required=False, column="per operation",
    ),
)  # fmt: skip
"""One row a quantity, in the order of result.json."""


def phase_columns() -> list[Definition]:
    """The quantities that a table of phases shows, in its order."""
    return Quantities(PHASES).shown("column")


def figures_of(phases: Mapping[str, MarkedPhase]) -> Figures:
    """Figures of one repeat's phases, each by its path in result.json; `phases`: by name."""
    return {_path(of, name): of.formula(phase) for name, phase in phases.items() for of in PHASES if of.formula}


def _path(of: Definition, name: str) -> str:
    return of.key.replace("*", name)


def by_phase(names: Sequence[str], repeats: Sequence[Figures]) -> dict[str, Mapping[str, Quantity]]:
    """`by_phase` of result.json: each figure's mean over the repeats; missing if a repeat lacks it."""
    none = missing("the phase was not marked")
    return {
        name: {
            of.key.rpartition(".")[2]: over_repeats([figures.get(_path(of, name), none) for figures in repeats])
            for of in PHASES
        }
        for name in dict.fromkeys(names)
    }


_OPEN_END_NS: Final = (1 << 63) - 1


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


def phase_figures(
    aligned: AlignedTrace, marked: Sequence[Phase], idle: IdlePower | None, operations: OperationTable
) -> Figures:
    """Figures of one repeat's marked phases by path; phases of the same name are summed."""
    stretches: dict[str, list[Phase]] = {}
    for phase in marked:
        stretches.setdefault(phase.name, []).append(phase)
    return figures_of({name: MarkedPhase(aligned, named, idle, operations) for name, named in stretches.items()})
