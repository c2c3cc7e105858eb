"""What an operation costs all told, from energies that are known exactly."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from opjoule.attribution.shares import Attribution, EnergyCourse, Share
from opjoule.evaluation.all_told import (
    LONGER,
    PROCESSOR,
    ReadsApart,
    all_told,
    by_operation,
    quiet_part,
)
from opjoule.evaluation.quantities.figures import Figure
from opjoule.evaluation.quantities.repeat import Repeat
from opjoule.operations import schemas
from opjoule.operations.operation_table import LOADER_KINDS, OperationTable
from opjoule.record.phases import Phase, Role
from opjoule.units import Measured, Missing, Unstated

READ_J, UPDATE_J, CAUSED_J = 5e-6, 20e-6, 78e-6
"""True energies of a read, of an update while it is carried out, and of what it causes later."""
CORE_W = 1.0


def operations(counts, duration_us=5.0):
    """A table with so many operations of each kind, all of one duration."""
    kinds = np.repeat([LOADER_KINDS.index(kind) for kind in counts], list(counts.values()))
    made = OperationTable.empty(kinds.size)
    made.kind[:] = kinds
    made.duration_ns[:] = round(1e3 * duration_us)
    made.board_ns[:] = np.arange(kinds.size) * 10_000
    made.bytes[:] = np.where(kinds == LOADER_KINDS.index("read"), 1000, 100)
    return made


def repeat_of(counts, shares=None, duration_us=5.0, whole_u=0.01):
    """A repeat whose energy above idle is that of its operations."""
    reads, writes = counts.get("read", 0), sum(n for kind, n in counts.items() if kind != "read")
    whole_j = reads * READ_J + writes * (UPDATE_J + CAUSED_J)
    course = EnergyCourse(np.zeros(1, np.int64), {}, np.zeros(0))
    none = Share(0.0, 0.0)
    whole = Share(whole_j, whole_u * whole_j, in_common_j={"scale": whole_u * whole_j})
    attribution = Attribution(shares or {}, none, {}, whole, 100, None, course)
    harness = Figure(1e-6 * (reads + writes), "J", 0.0)
    return Repeat(
        1, None, 10.0, operations=operations(counts, duration_us), attribution=attribution,
        harness=harness, core_w=CORE_W,
    )  # fmt: skip


def apart_of(reads, duration_us=5.0, u=0.02):
    """Reads on their own."""
    return ReadsApart(Share(reads * READ_J, u * reads * READ_J), operations({"read": reads}, duration_us))


def test_what_reads_leave_of_the_whole_belongs_to_the_kind_that_writes():
    repeat = repeat_of({"read": 70_000, "update": 72_000})
    told = all_told(repeat, apart_of(200_000))
    assert told["read"].energy_j / 70_000 == pytest.approx(READ_J)
    assert told["update"].energy_j / 72_000 == pytest.approx(UPDATE_J + CAUSED_J)
    total_j = told["read"].energy_j + told["update"].energy_j
    assert total_j == pytest.approx(repeat.attribution.whole.energy_j)
    reads_u_j = told["read"].standard_u_j
    assert told["update"].standard_u_j == pytest.approx(
        math.hypot(repeat.attribution.whole.standard_u_j, reads_u_j)
    )


def test_one_kind_has_the_whole_without_any_attribution():
    repeat = repeat_of({"update": 1000})
    (share,) = all_told(repeat).values()
    assert share == repeat.attribution.whole


def test_reads_that_take_longer_beside_writes_cost_more_and_are_known_less_well():
    slower = repeat_of({"read": 1000, "update": 1000}, duration_us=8.0)
    share = all_told(slower, apart_of(1000, duration_us=5.0))["read"]
    more_s = 1000 * 3e-6
    assert share.energy_j == pytest.approx(1000 * READ_J + more_s * CORE_W * sum(LONGER) / 2)
    assert share.standard_u_j > (LONGER[1] - LONGER[0]) * more_s * CORE_W / math.sqrt(12) * 0.999


def test_reads_on_their_own_count_without_the_harness_too():
    repeat = replace(repeat_of({"read": 1000, "update": 1000}), core_w=None)
    share = all_told(repeat, apart_of(2000))["read"]
    assert share.energy_j == pytest.approx(1000 * READ_J)
    slower = replace(repeat_of({"read": 1000, "update": 1000}, duration_us=8.0), core_w=None)
    assert all_told(slower, apart_of(2000))["read"].standard_u_j > share.standard_u_j


def test_the_windows_of_the_repeat_are_taken_where_they_know_the_reads_better():
    found = {
        "read": Share(1000 * READ_J, 1e-5, "interval too wide"),
        "update": Share(1.0, 1.0, "no", {}, False),
    }
    repeat = repeat_of({"read": 1000, "update": 1000}, found)
    assert all_told(repeat, apart_of(1000, u=0.5))["read"].standard_u_j == 1e-5
    blind = {"read": replace(found["read"], has_interval=False)}
    assert all_told(repeat_of({"read": 1000, "update": 1000}, blind), apart_of(1000, u=0.5))[
        "read"
    ].standard_u_j == pytest.approx(0.5 * 1000 * READ_J)


def test_an_interval_reaches_both_figures_that_contradict_each_other():
    found = {"read": Share(2 * 1000 * READ_J, 1e-5)}
    share = all_told(repeat_of({"read": 1000, "update": 1000}, found), apart_of(1000))["read"]
    assert abs(share.energy_j - 1000 * READ_J) < 2 * share.standard_u_j


def test_without_reads_on_their_own_the_time_that_they_worked_bounds_them():
    repeat = repeat_of({"read": 1000, "update": 1000})
    told = all_told(repeat)
    least_j, most_j = (1e-3 + times * CORE_W * 1000 * 5e-6 for times in PROCESSOR)
    assert told["read"].energy_j == pytest.approx((least_j + most_j) / 2)
    assert told["update"].standard_u_j < 0.06 * told["update"].energy_j  # reads are a small part of it
    unknown = all_told(replace(repeat, core_w=None))
    assert isinstance(unknown["read"], Missing) and isinstance(unknown["update"], Missing)


def test_several_kinds_that_write_have_no_interval_and_add_up():
    repeat = repeat_of({"read": 1000, "update": 1000, "insert": 500})
    entries = by_operation([repeat], apart_of(1000))
    told = {kind: entry["all_told_energy_per_operation_j"] for kind, entry in entries.items()}
    assert isinstance(told["read"], Measured)
    assert isinstance(told["update"], Unstated) and "a rule" in told["insert"].reason
    total_j = sum(number.value * entries[kind]["count"].value for kind, number in told.items())
    assert total_j == pytest.approx(repeat.attribution.whole.energy_j)


def test_what_an_update_causes_later_needs_no_single_part():
    found = {
        "read": Share(70_000 * READ_J, 1e-3),
        "update": Share(72_000 * UPDATE_J, 1e-2),
    }
    entries = by_operation([repeat_of({"read": 70_000, "update": 72_000}, found)], apart_of(200_000))
    update = entries["update"]
    assert update["background_energy_per_operation_j"].value == pytest.approx(CAUSED_J)
    assert update["energy_per_operation_j"].value == pytest.approx(UPDATE_J)
    assert update["harness_energy_per_operation_j"].value == pytest.approx(1e-6)
    assert entries["read"]["background_energy_per_operation_j"].value == 0.0


def test_a_wrong_gain_moves_the_whole_and_its_parts_together():
    read, update = Share(70_000 * READ_J, 0.0), Share(72_000 * UPDATE_J, 0.0)
    scaled = {
        kind: replace(share, standard_u_j=0.2 * share.energy_j, in_common_j={"scale": 0.2 * share.energy_j})
        for kind, share in {"read": read, "update": update}.items()
    }
    entries = by_operation([repeat_of({"read": 70_000, "update": 72_000}, scaled, whole_u=0.2)], None)
    for key in ("all_told_energy_per_operation_j", "background_energy_per_operation_j"):
        number = entries["update"][key]
        assert number.standard_u == pytest.approx(0.2 * number.value, rel=1e-6)


def quiet_s(*works_s):
    """Start and end [s] of the part of 6 s of reads in which the engine does nothing else; None if there is none."""
    rows = [
        {"board_ns": round(1e9 * start_s), "event": name, "end_board_ns": round(1e9 * end_s)}
        for name, start_s, end_s in works_s
    ]
    events = pa.Table.from_pylist(rows, schema=schemas.EVENTS)
    part = quiet_part(Phase("reads", 1, 0, 6_000_000_000, role=Role.READS), events)
    return part and (part.start_board_ns / 1e9, part.end_board_ns / 1e9)


def test_reads_count_where_the_engine_does_nothing_else_and_the_medium_rests():
    assert quiet_s() == (0.0, 6.0)
    assert quiet_s(("compaction", 0.1, 1.0), ("sync", 0.5, 1.1)) == (2.1, 6.0)
    assert quiet_s(("flush", 3.9, 4.0), ("compaction", 9.0, 9.5)) == (0.0, 3.9)
    assert quiet_s(*[("sync", at / 2, at / 2 + 0.1) for at in range(13)]) is None
