"""The simulated board under a loader: each part draws its own cost while at work, and it is written down."""

import json
import struct
from itertools import pairwise

import numpy as np
import pytest
from opjoule.attribution.activities import Intervals
from opjoule.bench.simulation.engine_power import HOLD_NS, EnginePower, GrowingLog, LoaderFiles
from opjoule.bench.simulation.medium_work import MediumMode, MediumStretch
from opjoule.bench.simulation.parts import PARTS, PartCourse, PartPowers, own_stretches
from opjoule.bench.simulation.power_model import Activity, Supply
from opjoule.bench.simulation.truth_line import true_parts
from opjoule.energy.operations.oplog import BLOCK_HEADER, BLOCK_MAGIC, FILE_HEADER, SIZE_TAG
from opjoule.runs.record.phases import Cycle
from stated_models import load_model
from usual_phases import usual_phase

MS = 1_000_000
START_NS = 10_000 * MS
READ, UPDATE = 0, 1
OPERATIONS = 4000
LENGTH_NS, GAP_NS = 200_000, 50_000


def varint(value):
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def block(sequence, base_ns, operations, thread=0):
    """One block of an operation log; operations are (kind, gap_ns, duration_ns)."""
    triples = [(SIZE_TAG | kind, 100, 0) for kind in (READ, UPDATE)]
    triples += [(8 | kind, gap_ns, duration_ns) for kind, gap_ns, duration_ns in operations]
    payload = b"".join(varint(value) for triple in triples for value in triple)
    header = BLOCK_HEADER.pack(BLOCK_MAGIC, thread, 0, len(triples), len(payload), base_ns, 0, 0, sequence)
    return header + payload


@pytest.fixture
def files(tmp_path):
    """The folder of a run, as the loader makes it."""
    folder = tmp_path / "session" / "run-1"
    folder.mkdir(parents=True)
    log, events = folder / "run-1.oplog", folder / "run-1.events.jsonl"
    log.write_bytes(bytes(FILE_HEADER.size))
    events.write_text("")
    return log, events


def test_operations_of_a_run_in_another_mix_draw_what_those_of_a_run_draw(tmp_path):
    for tag in ("run-1", "mix-2", "harness-1"):
        folder = tmp_path / "session" / tag
        folder.mkdir(parents=True)
        log = bytes(FILE_HEADER.size) + block(0, START_NS, [(READ, GAP_NS, LENGTH_NS)])
        (folder / f"{tag}.oplog").write_bytes(log)
    blocks, _ = LoaderFiles(tmp_path).more()
    assert sorted(block.phase for block in blocks) == ["harness", "run", "run"]


def model(folder, seed=1):
    made = EnginePower(load_model("rpi4", "sd", Supply(5.1, 0.0)), seed, one_thread=True)
    made.begin(folder)
    return made


def played(of, milliseconds, cpu=1.0, busy=()):
    """Rows (board_ns, power [W]) of a board that is sampled every 10 ms, all of which are known.

    `busy` has start, end [ms] and mode of the medium's work.
    """
    work = [MediumStretch(START_NS + round(a * MS), START_NS + round(b * MS), mode) for a, b, mode in busy]
    span = [START_NS + 10 * MS * at for at in range(milliseconds // 10 + 1)]
    known = [Activity(a, b, cpu * 1e-9 * (b - a)) for a, b in pairwise(span)]
    rows = []
    for at, activity in enumerate(known):
        span_ns = activity.start_board_ns, activity.end_board_ns
        now = [one.within(*span_ns) for one in work if one.start_ns < span_ns[1] and one.end_ns > span_ns[0]]
        later = [one for one in known[at + 1 :] if one.end_board_ns <= activity.end_board_ns + HOLD_NS]
        rows += [(board_ns, a * v) for board_ns, a, v in of.rows(activity, later, now)]
    of.end()
    return rows, span[-1]


def energy_j(rows, end_ns):
    times = np.array([row[0] for row in rows] + [end_ns])
    return float(np.diff(times) @ np.array([row[1] for row in rows])) * 1e-9


def half_and_half(rng):
    kinds = rng.integers(0, 2, OPERATIONS)
    return [(int(kind), GAP_NS, LENGTH_NS * (1 + int(kind))) for kind in kinds]


def test_what_the_parts_drew_is_all_that_the_board_drew_above_rest(tmp_path, files):
    log, events = files
    made = half_and_half(np.random.default_rng(1))
    log.write_bytes(log.read_bytes() + block(0, START_NS + 30 * MS, made))
    event = {"event": "compaction", "board_ns": START_NS + 300 * MS, "end_board_ns": START_NS + 900 * MS}
    events.write_text(json.dumps(event) + "\n")
    rows, end_ns = played(model(tmp_path), 3000, busy=[(700, 905, MediumMode.WRITING), (905, 911, MediumMode.FLUSHING)])
    drawn_j = PartCourse.read(tmp_path / PARTS).between(START_NS, end_ns)
    rest_j = 3.04 * (end_ns - START_NS) * 1e-9
    assert energy_j(rows, end_ns) - rest_j == pytest.approx(sum(drawn_j.values()), rel=1e-6)
    assert {name for name, part_j in drawn_j.items() if part_j > 0} == {
        "read",
        "update",
        "compaction",
        "write_back",
        "tail",
        "other",
    }


def test_an_operation_costs_what_its_kind_costs_however_long_it_takes(tmp_path, files):
    """And the kinds' costs are their own: the processor is as busy with the one as with the other."""
    log, _ = files
    rng = np.random.default_rng(2)
    made = half_and_half(rng)
    slow = [(kind, gap_ns, duration_ns * 3) for kind, gap_ns, duration_ns in made]
    later_ns = START_NS + 2000 * MS
    log.write_bytes(log.read_bytes() + block(0, START_NS, made) + block(1, later_ns, slow))
    _, end_ns = played(model(tmp_path), 6000)
    course = PartCourse.read(tmp_path / PARTS)
    first, second = course.between(START_NS, later_ns), course.between(later_ns, end_ns)
    for kind in ("read", "update"):
        assert first[kind] == pytest.approx(second[kind], rel=0.03)
    assert len({round(seed_ratio(tmp_path / str(seed), made, seed), 3) for seed in range(5)}) == 5


def seed_ratio(folder, made, seed):
    (folder / "session" / "run-1").mkdir(parents=True)
    (folder / "session" / "run-1" / "run-1.oplog").write_bytes(bytes(FILE_HEADER.size) + block(0, START_NS, made))
    _, end_ns = played(model(folder, seed), 2000)
    drawn_j = PartCourse.read(folder / PARTS).between(START_NS, end_ns)
    return drawn_j["update"] / drawn_j["read"]


def test_work_that_has_begun_draws_before_anybody_knows_when_it_ends(tmp_path, files):
    _, events = files
    event = {"event": "begin", "board_ns": START_NS + 100 * MS, "detail": "compaction"}
    events.write_text(json.dumps(event) + "\n")
    rows, _ = played(model(tmp_path), 2000, cpu=0.0)
    powers_w = dict(rows)
    assert powers_w[START_NS] == pytest.approx(3.04)
    at_work = [power_w for board_ns, power_w in rows if board_ns >= START_NS + 100 * MS]
    assert min(at_work) > 3.04 + 0.1 and max(at_work) == pytest.approx(min(at_work))


def test_the_medium_s_energy_is_write_back_and_then_its_tail_s_exactly(tmp_path, files):
    """At its stated power, from its own moments on; the tail begins where it is no longer busy."""
    of = EnginePower(load_model("rpi4", "ssd-usb3", Supply(5.1, 0.0)), 1, one_thread=True)
    of.begin(tmp_path)
    work = [
        (100.1, 300.7, MediumMode.WRITING),
        (300.7, 302.8, MediumMode.FLUSHING),
        (1800, 1850, MediumMode.READING),
    ]
    rows, end_ns = played(of, 4000, cpu=0.0, busy=work)
    drawn_j = PartCourse.read(tmp_path / PARTS).between(START_NS, end_ns)
    assert drawn_j["write_back"] == pytest.approx(2.2 * 0.2027)
    assert drawn_j["tail"] == pytest.approx(0.5 * (1.0 + 1.0))
    assert drawn_j["reading"] == pytest.approx(2.2 * 0.05)
    steps = [((board_ns - START_NS) / MS, power_w) for board_ns, power_w in rows]
    changes = [step for step, before in zip(steps[1:], steps, strict=False) if step[1] != pytest.approx(before[1])]
    assert [at_ms for at_ms, _ in changes] == pytest.approx([100.1, 302.8, 1302.8, 1800, 1850, 2850])


def test_what_the_medium_draws_while_a_sync_waits_for_it_is_the_sync_s(tmp_path, files):
    _, events = files
    event = {"event": "sync", "board_ns": START_NS + 200 * MS, "end_board_ns": START_NS + 300 * MS}
    events.write_text(json.dumps(event) + "\n")
    _, end_ns = played(model(tmp_path), 2000, cpu=0.0, busy=[(100, 300, MediumMode.WRITING)])
    drawn_j = PartCourse.read(tmp_path / PARTS).between(START_NS, end_ns)
    active_w = load_model("rpi4", "sd", Supply(5.1, 0.0)).medium.active_w
    assert drawn_j["write_back"] == pytest.approx(active_w * 0.1)
    assert drawn_j["sync"] > active_w * 0.1


def test_what_the_medium_draws_during_a_sync_that_lasts_is_the_sync_s_before_it_ends(tmp_path, files):
    _, events = files
    event = {"event": "begin", "board_ns": START_NS + 200 * MS, "detail": "sync"}
    events.write_text(json.dumps(event) + "\n")
    _, end_ns = played(model(tmp_path), 2300, cpu=0.0, busy=[(100, 2300, MediumMode.WRITING)])
    drawn_j = PartCourse.read(tmp_path / PARTS).between(START_NS, end_ns)
    active_w = load_model("rpi4", "sd", Supply(5.1, 0.0)).medium.active_w
    assert drawn_j["write_back"] == pytest.approx(active_w * 0.1)
    assert drawn_j["sync"] > active_w * 2.1


def test_a_sync_in_a_compaction_is_the_sync_s(tmp_path, files):
    _, events = files
    spans = {"compaction": (100, 900), "sync": (400, 600)}
    entries = [
        {"event": name, "board_ns": START_NS + begin * MS, "end_board_ns": START_NS + end * MS}
        for name, (begin, end) in spans.items()
    ]
    events.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    _, end_ns = played(model(tmp_path), 1000, cpu=0.0)
    course = PartCourse.read(tmp_path / PARTS)
    inside = course.between(START_NS + 410 * MS, START_NS + 590 * MS)
    assert inside["compaction"] == 0 and inside["sync"] > 0
    whole = course.between(START_NS, end_ns)
    rate_w = course.between(START_NS + 200 * MS, START_NS + 300 * MS)["compaction"] / 0.1
    assert whole["compaction"] == pytest.approx(0.6 * rate_w, rel=1e-6)


def test_a_flush_in_a_compaction_is_a_pause_of_it_on_one_thread_alone():
    spans = {"compaction": (0, 100), "flush": (20, 30), "sync": (25, 27)}
    of = {name: intervals(*span) for name, span in spans.items()}
    assert own_stretches(of, "compaction", 0, 100, one_thread=True) == [(0, 20), (30, 100)]
    assert own_stretches(of, "compaction", 0, 100, one_thread=False) == [(0, 100)]
    assert own_stretches(of, "flush", 20, 30, one_thread=False) == [(20, 25), (27, 30)]


def intervals(start_ns, end_ns):

    return Intervals.of(np.array([start_ns]), np.array([end_ns]))


def test_operations_that_are_told_too_late_are_drawn_later_and_none_is_lost(tmp_path, files, monkeypatch):
    monkeypatch.setattr("opjoule.bench.simulation.engine_power.READ_NS", 0)
    log, _ = files
    made = half_and_half(np.random.default_rng(3))
    of = model(tmp_path)
    known = [Activity(START_NS, START_NS + 500 * MS, 0.5)]
    of.rows(known[0], [], [])
    log.write_bytes(log.read_bytes() + block(0, START_NS, made))
    _, end_ns = played_from(of, START_NS + 500 * MS, 2500)
    late = PartCourse.read(tmp_path / PARTS).between(START_NS, end_ns)
    (tmp_path / "punctual" / "session" / "run-1").mkdir(parents=True)
    log.rename(tmp_path / "punctual" / "session" / "run-1" / "run-1.oplog")
    _, end_ns = played(model(tmp_path / "punctual"), 3000)
    punctual = PartCourse.read(tmp_path / "punctual" / PARTS).between(START_NS, end_ns)
    assert late["read"] == pytest.approx(punctual["read"], rel=0.02)
    assert late["update"] == pytest.approx(punctual["update"], rel=0.02)


def played_from(of, start_ns, milliseconds):
    for at in range(milliseconds // 10):
        of.rows(
            Activity(start_ns + 10 * MS * at, start_ns + 10 * MS * (at + 1), 0.01),
            [],
            [],
        )
    of.end()
    return None, start_ns + milliseconds * MS


def test_the_board_never_draws_more_than_its_stated_most(tmp_path, files):
    log, _ = files
    blocks = [block(at, START_NS, [(UPDATE, 100, LENGTH_NS)] * OPERATIONS, thread=at) for at in range(16)]
    log.write_bytes(log.read_bytes() + b"".join(blocks))
    rows, _ = played(model(tmp_path), 1000, cpu=16.0)
    assert max(power_w for _, power_w in rows) == pytest.approx(6.44, abs=1e-5)


def test_the_parts_of_a_run_are_those_from_its_start_to_the_end_of_its_settle(tmp_path, files):
    log, _ = files
    made = half_and_half(np.random.default_rng(4))
    log.write_bytes(log.read_bytes() + block(0, START_NS + 1037 * MS, made))
    _, end_ns = played(model(tmp_path), 4000, cpu=0.0)
    course = PartCourse.read(tmp_path / PARTS)
    run_ns = (START_NS + 1037 * MS, START_NS + 2300 * MS)
    cycle = Cycle(usual_phase("run", 1, *run_ns, OPERATIONS), usual_phase("settle", 1, run_ns[1], end_ns), ())
    assert true_parts(course, [cycle])["read"] == pytest.approx(course.between(START_NS, end_ns)["read"], rel=1e-3)


def test_a_log_is_read_while_it_grows_block_by_block(tmp_path):
    path = tmp_path / "a.oplog"
    whole = block(0, 1000, [(READ, 5, 10)]) + block(1, 2000, [(UPDATE, 7, 20), (READ, 1, 3)])
    path.write_bytes(bytes(FILE_HEADER.size))
    log, seen = GrowingLog(path), []
    for byte in struct.iter_unpack("c", whole):
        with path.open("ab") as file:
            file.write(byte[0])
        seen += [(table.board_ns.tolist(), table.duration_ns.tolist()) for table in log.more()]
    log.close()
    assert seen == [([1005], [10]), ([2007, 2028], [20, 3])]


def test_the_same_seed_draws_the_same_powers_and_kinds_differ():
    drawn = [PartPowers.draw(np.random.default_rng(seed), ("read", "update"), ("sync",)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0].kind_w["read"] != drawn[0].kind_w["update"]
