"""The phases that the work marked inside its own, from the marks on the disk.

The board's events hold every mark, but come to the record at the end of a repeat. Of a repeat that was killed before
that there is what the host heard, which it writes down as it arrives (raw/marks.jsonl).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from opjoule.operations.board_files import MARKS_FILE, PHASE_BEGIN, PHASE_END, read_events
from opjoule.record.phases import RUN, Phase, Role
from opjoule.record.run_record import RunRecord

_OPEN_END_NS: Final = (1 << 63) - 1


@dataclass(frozen=True)
class PhaseMark:
    """A phase begins or ends, as the board stamped it."""

    board_ns: int
    name: str
    begins: bool


def marks_of(record: RunRecord, events: pa.Table) -> list[PhaseMark]:
    """Marks among the board's events and those that the host heard, each once, in order of time.

    Raises: RecordFault: the host's file was changed since the run.
    """
    heard = [read_events(path).table for path in record.raw_files(MARKS_FILE)]
    once = dict.fromkeys(_marks(pa.concat_tables([events, *heard])))
    return sorted(once, key=lambda mark: mark.board_ns)


def _marks(events: pa.Table) -> Iterator[PhaseMark]:
    kinds = events["event"].to_numpy(zero_copy_only=False)
    chosen = events.filter(pa.array((kinds == PHASE_BEGIN) | (kinds == PHASE_END), pa.bool_()))
    for row in chosen.select(["board_ns", "event", "detail"]).to_pylist():
        yield PhaseMark(row["board_ns"], row["detail"] or "", row["event"] == PHASE_BEGIN)


def marked_phases(marks: Sequence[PhaseMark], phases: Sequence[Phase]) -> tuple[list[Phase], list[str]]:
    """The phases that were marked inside the work of each repeat, and a line for each mark without its other end.

    Args:
        marks: in order of time.
        phases: those of the measurement that came to their end. Work that was cut off keeps what it had marked.
    """
    found: list[Phase] = []
    wrong: list[str] = []
    for work in [each for each in phases if each.role is Role.WORK] + _cut_off(marks, phases):
        pairs, lines = _paired(marks, work)
        found += pairs
        wrong += [f"repeat {work.repeat}: marks of {work.name}: {line}" for line in lines]
    return found, wrong


def _cut_off(marks: Iterable[PhaseMark], phases: Sequence[Phase]) -> list[Phase]:
    """The work that has begun after all phases that came to their end; empty where there is none."""
    since_ns = max((each.end_board_ns for each in phases), default=0)
    begins = [mark for mark in marks if mark.begins and mark.name == RUN and mark.board_ns >= since_ns]
    if not begins:
        return []
    repeat = phases[-1].repeat if phases else 1
    worked = any(each.repeat == repeat and each.role is Role.WORK for each in phases)
    return [Phase(RUN, repeat + worked, begins[0].board_ns, _OPEN_END_NS, role=Role.WORK)]


def _paired(marks: Iterable[PhaseMark], work: Phase) -> tuple[list[Phase], list[str]]:
    found: list[Phase] = []
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
            found.append(Phase(mark.name, work.repeat, start_ns, mark.board_ns, role=Role.WORK))
        else:
            wrong.append(f"phase {mark.name} ends without having begun")
    wrong += [f"phase {name} has no end" for name in begun]
    return sorted(found, key=lambda phase: phase.start_board_ns), wrong
