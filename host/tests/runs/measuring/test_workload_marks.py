"""What a workload marks: where its phase lies, the phases inside it, its operations."""

import json

import numpy as np
from opjoule.energy.operations.board_files import PhaseMark, marked_operations, read_events, without_operations
from opjoule.energy.operations.operation_table import LOADER_KINDS, OperationTable
from opjoule.runs.measuring.execution import Bounds, PrintedMarks, process_bounds
from opjoule.runs.record.phases import Cycle
from usual_phases import usual_phase

RUN = Bounds(100, 900)


def begin(name, at):
    return PhaseMark(at, name, begins=True)


def end(name, at):
    return PhaseMark(at, name, begins=False)


def test_the_phase_of_a_process_reaches_from_its_begin_to_its_end():
    marks = [begin("run", 100), begin("a", 200), end("a", 300), end("run", 900)]
    assert process_bounds(marks, "run") == RUN
    assert process_bounds(marks[:-1], "run") is None
    assert process_bounds([], "run") is None


def test_printed_lines_bound_a_phase_and_say_that_it_has_settled():
    marks = PrintedMarks()
    marks.add({"phase": "run-start", "board_ns": 5})
    marks.add({"progress": {"operations": 3}})
    marks.add({"phase": "run-end", "board_ns": 9, "operations": 7})
    assert not marks.settled
    marks.add({"phase": "settle-end", "board_ns": 11, "settled": True})
    assert marks.settled
    assert marks.between("run-start", "run-end") == Bounds(5, 9, 7)
    assert marks.between("run-start", "nothing") is None


def events(tmp_path, *lines):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_events(path)


def test_marked_operations_keep_the_names_of_their_kinds(tmp_path):
    table = events(
        tmp_path,
        {"event": "operation", "board_ns": 10, "end_board_ns": 15, "detail": "select 100 ok"},
        {"event": "sync-edge", "board_ns": 11, "u_ns": 5, "level": 1},
        {"event": "operation", "board_ns": 20, "end_board_ns": 22, "detail": "insert 0 failed"},
        {"event": "operation", "board_ns": 30, "end_board_ns": 37, "detail": "select"},
    )
    operations = marked_operations(table)
    assert operations.kinds == ("select", "insert")
    assert operations.counts() == {"select": 2, "insert": 1}
    assert operations.duration_ns.tolist() == [5, 2, 7]
    assert operations.bytes.tolist() == [100, 0, 0]
    assert operations.ok.tolist() == [True, False, True]
    assert without_operations(table)["event"].to_pylist() == ["sync-edge"]
    assert len(marked_operations(table.slice(1, 1))) == 0


def test_tables_of_different_kinds_become_one():
    one = OperationTable.empty(2)
    other = OperationTable(
        *(getattr(OperationTable.empty(3), name) for name in ("board_ns", "duration_ns")),
        np.array([0, 1, 1], np.uint8),
        np.zeros(3, np.uint16),
        np.zeros(3, np.int64),
        np.ones(3, np.bool_),
        ("select", "read"),
    )
    both = OperationTable.concatenate([one, other])
    assert both.counts() == {"read": 4, "select": 1}
    assert both.kinds == (*LOADER_KINDS, "select")
    assert both.of_kind("select").tolist() == [False, False, True, False, False]


def test_the_drain_of_a_cycle_is_that_after_its_work():
    names = ("load", "load-settle", "idle-before", "run", "settle", "idle-after")
    phases = [usual_phase(name, 1, 10 * at, 10 * at + 10) for at, name in enumerate(names)]
    cycle = Cycle.of(phases, 1)
    assert (cycle.work.name, cycle.drain.name) == ("run", "settle")
    assert [phase.name for phase in cycle.baselines] == ["idle-before", "idle-after"]
    assert Cycle.of(phases[:3], 1) is None
