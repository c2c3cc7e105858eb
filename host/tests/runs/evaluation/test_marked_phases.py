"""The phases that a workload marks inside its own, from the board's events and from what the host heard of them."""

import json

import pytest
from opjoule.base.notices import NoticeKind
from opjoule.energy.operations.board_files import MARKS_FILE, PhaseMark
from opjoule.runs.evaluation.collection import collect
from opjoule.runs.evaluation.evidence import Evidence
from opjoule.runs.evaluation.quantities.phases import marked_phases
from opjoule.runs.record.phases import Phase, Role
from opjoule.runs.record.run_record import RunRecord
from raw_record import running_record
from usual_phases import usual_phase

IDLE = usual_phase("idle-before", 1, 10, 90)
RUN = usual_phase("run", 1, 100, 900)


def begin(name, at):
    return PhaseMark(at, name, begins=True)


def end(name, at):
    return PhaseMark(at, name, begins=False)


def marked(name, start, stop, repeat=1):
    return Phase(name, repeat, start, stop, role=Role.WORK)


def test_marked_phases_come_in_order_and_may_overlap_and_come_again():
    marks = [
        *(begin("run", 100), begin("load", 110), begin("index", 150), end("load", 200), end("index", 250)),
        *(begin("load", 300), end("load", 400), end("run", 900)),
    ]
    phases, wrong = marked_phases(marks, [IDLE, RUN])
    assert phases == [marked("load", 110, 200), marked("index", 150, 250), marked("load", 300, 400)]
    assert wrong == []


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ([begin("a", 200)], "no end"),
        ([end("a", 200)], "ends"),
        ([begin("a", 200), begin("a", 210), end("a", 220)], "again"),
    ],
)
def test_marks_that_do_not_pair_are_named_with_their_repeat(marks, said):
    [notice] = marked_phases(marks, [IDLE, RUN])[1]
    assert notice.kind is NoticeKind.MARKS and notice.line.startswith("repeat 1: marks of run: phase a ")
    assert said in notice.line


def test_marks_outside_the_work_are_none_of_it():
    marks = [begin("before", 10), end("before", 50), begin("after", 950), end("after", 960)]
    assert marked_phases(marks, [IDLE, RUN]) == ([], [])


@pytest.mark.parametrize(
    ("phases", "repeat"),
    [([], 1), ([IDLE], 1), ([IDLE, RUN], 2), ([IDLE, RUN, Phase("copy", 2, 910, 920, role="prepare")], 2)],
)
def test_work_that_was_cut_off_keeps_the_phases_that_it_had_marked(phases, repeat):
    marks = [begin("run", 1000), begin("load", 1100), end("load", 1200), begin("index", 1300)]
    kept, [notice] = marked_phases(marks, phases)
    assert kept == [marked("load", 1100, 1200, repeat)] and notice.kind is NoticeKind.MARKS
    assert notice.line.startswith(f"repeat {repeat}: marks of run: phase index ")


def lines(*marks):
    events = [
        {
            "event": "phase-begin" if mark.begins else "phase-end",
            "board_ns": mark.board_ns,
            "detail": mark.name,
        }
        for mark in marks
    ]
    return "".join(json.dumps(event) + "\n" for event in events)


def cut_off(tmp_path):
    """A record whose program was killed in the work of its second repeat: when that began, and the record."""
    whole = running_record(tmp_path / "record")
    ended = [phase for phase in whole.run.phases if phase.repeat == 1 or phase.name == "idle-before"]
    whole.update(phases=ended)
    return ended[-1].end_board_ns + 1000, whole


@pytest.mark.parametrize("name", [MARKS_FILE, "repeat-2.events.jsonl"], ids=["the host", "the board"])
def test_a_run_killed_in_the_middle_keeps_the_marks_that_the_host_heard_or_the_board_wrote(tmp_path, name):
    at, record = cut_off(tmp_path)
    text = lines(begin("run", at), begin("load", at + 10), end("load", at + 20))
    (record.directory / "raw" / name).write_text(text + '{"event":"phase-be')  # killed inside a line
    collect(record, Evidence.of(record, ended_early=True))
    assert RunRecord.open(record.directory).run.marked_phases == (marked("load", at + 10, at + 20, 2),)


def test_a_mark_that_both_have_counts_once(tmp_path):
    record = running_record(tmp_path / "record")
    work = next(phase for phase in record.run.phases if phase.name == "run")
    at = work.start_board_ns
    text = lines(begin("load", at + 10), end("load", at + 20))
    for name in (MARKS_FILE, "repeat-1.events.jsonl"):
        (record.directory / "raw" / name).write_text(text)
    collect(record, Evidence.of(record, ended_early=False))
    run = RunRecord.open(record.directory).run
    assert run.marked_phases == (marked("load", at + 10, at + 20),)
    assert not any(notice.kind is NoticeKind.MARKS for notice in run.notices)


def result_of(record):
    collect(record, Evidence.of(record, ended_early=False))
    return json.loads((record.directory / "result.json").read_text())


def test_a_marked_phase_that_was_mostly_lost_has_no_energy_and_the_run_has_one(tmp_path):
    record = running_record(tmp_path / "record", lost_s=(1.5, 1.51))
    starts = [phase.start_board_ns + 190_000_000 for phase in record.run.phases if phase.name == "run"]
    marks = [mark for at in starts for mark in (begin("query", at), end("query", at + 40_000_000))]
    (record.directory / "raw" / MARKS_FILE).write_text(lines(*marks))
    result = result_of(record)
    assert result["energy_j"]["value"] == pytest.approx(4.59, rel=0.01)
    query = result["by_phase"]["query"]
    for key in ("energy_j", "marginal_energy_j", "energy_per_operation_j"):
        assert query[key]["value"] is None
        assert "repeat 1: 25.0 % of window 4.490000 to 4.530000 s was lost (5 samples)" in query[key]["reason"]
    assert query["duration_s"]["value"] == pytest.approx(0.04)


def test_a_harness_that_was_mostly_lost_has_no_energy_and_the_run_has_one(tmp_path):
    record = running_record(tmp_path / "record", lost_s=(0.06, 0.1))
    start = record.run.phases[0].start_board_ns - 160_000_000
    harness = Phase("harness", 1, start, start + 100_000_000, 400, role=Role.CONTROL)
    record.update(phases=[harness, *record.run.phases])
    result = result_of(record)
    assert result["energy_j"]["value"] == pytest.approx(4.59, rel=0.01)
    assert result["harness_energy_j"]["value"] is None
    assert "was lost (20 samples)" in result["harness_energy_j"]["reason"]
