"""Phases that the work marked inside its own phase, from the marks on disk.

The board's events contain every mark, but reach the record only at the end of a repeat. For a repeat that was killed
earlier, the marks come from raw/marks.jsonl, to which the host writes each mark as it arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.baseline import IdlePower
from opjoule.energy.operations.board_files import MARKS_FILE, PHASE_BEGIN, PHASE_END, PhaseMark, read_events
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.runs.evaluation.aligned_trace import AlignedTrace
from opjoule.runs.evaluation.quantities.figures import Figures
from opjoule.runs.evaluation.quantities.phases import MarkedPhase, figures_of
from opjoule.runs.record.phases import RUN, Phase, Role
from opjoule.runs.record.run_record import RunRecord

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
