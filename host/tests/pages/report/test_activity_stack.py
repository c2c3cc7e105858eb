"""The drawing of where the joules went shows the identified parts and no other, on SYNTHETIC records."""

import re

import pyarrow as pa
import pytest
from compared_records import answer_of
from opjoule.energy.operations.tables import ATTRIBUTION
from opjoule.energy.trace.parquet_file import write_parquet
from opjoule.pages.drawing.page import text_of
from opjoule.pages.drawing.shown import WIDTH
from opjoule.pages.report.pictures import LEFT, RIGHT, activity_stack, told_parts
from opjoule.pages.report.terminal import part_rows
from opjoule.runs.evaluation.wording import YCSB as WORDING
from report_record import make_record

KNOWN = {"value": 1.0, "u": 0.1, "unit": "J"}
REFUSED = {"value": None, "u": None, "unit": "J", "reason": "too few windows"}
PARTS = {"read": 1.0, "flush": 2.0, "sync": 3.0, "tail": 4.0}


@pytest.fixture
def record(tmp_path):
    """Four parts over three windows of a second each."""
    return recorded(tmp_path, {1: PARTS})


def recorded(place, repeats):
    """A record whose repeats have these parts."""
    made = make_record(place)
    rows = [
        {
            "repeat": repeat,
            "board_ns": at * 10**9,
            "end_board_ns": (at + 1) * 10**9,
            "part": part,
            "energy_j": energy_j,
        }
        for repeat, parts in repeats.items()
        for part, energy_j in {**parts, "measured": sum(parts.values())}.items()
        for at in range(3)
    ]
    write_parquet(place / "attribution.parquet", ATTRIBUTION, [pa.Table.from_pylist(rows, ATTRIBUTION)])
    return made


def result(**by_activity):
    return {
        "by_operation": {"read": {"count": 5, "energy_per_operation_j": KNOWN}},
        "by_activity": by_activity,
    }


def test_refused_parts_are_one_grey_part(record):
    drawn = text_of(*activity_stack(record, result(flush=KNOWN, sync=REFUSED, tail=REFUSED)))
    assert "not identifiable" in drawn and "flush" in drawn and "SIMULATED" in drawn
    assert "sync" not in drawn and "tail" not in drawn
    widths = [float(width) for width in re.findall(r'width="([\d.]+)" height', drawn)]
    whole = WIDTH - LEFT - RIGHT
    assert widths == pytest.approx([0.1 * whole, 0.2 * whole, 0.7 * whole], abs=0.1)
    assert drawn.count('class="part untold"') == 2, "in the bar and over time"


def test_identified_parts_have_a_colour_each(record):
    drawn = text_of(*activity_stack(record, result(flush=KNOWN, sync=KNOWN, tail=KNOWN)))
    assert all(name in drawn for name in PARTS) and "not identifiable" not in drawn
    assert set(re.findall(r'class="part (kind-\d)', drawn)) == {f"kind-{number}" for number in range(4)}


def test_a_part_has_one_colour_in_all_repeats_though_one_lacks_another_part(tmp_path):
    first = {name: PARTS[name] for name in ("read", "sync", "tail")}  # no flush
    drawn = activity_stack(recorded(tmp_path, {1: first, 2: PARTS}), result(flush=KNOWN, sync=KNOWN, tail=KNOWN))
    legends = [re.findall(r"swatch (kind-\d)[^>]*>(?:</span>)? ?([a-z]+)", text_of(of)) for of in drawn]
    assert legends[0] == legends[1] and {name for _, name in legends[0]} == set(PARTS)


def test_without_an_identified_part_nothing_is_drawn(record):
    assert activity_stack(record, {"by_activity": {"flush": REFUSED}}) == []
    assert activity_stack(record, {}) == []


def test_a_part_with_a_value_is_identified():
    assert told_parts(result(flush=KNOWN, sync=REFUSED)) == {"read", "flush"}


def test_a_part_that_all_others_leave_is_stated_once():
    """It is not listed as not identifiable as well. Two such parts have a sum, and neither is identifiable."""
    others = ("foreground", "flush", "compaction", "checkpoint", "write_back", "unseparated")
    for refused in (["sync"], ["sync", "tail"]):
        numbers = result(**dict.fromkeys([*others, "tail"], KNOWN) | dict.fromkeys(refused, REFUSED))
        rows = dict(part_rows(answer_of(numbers, WORDING.quantities)))
        assert " + ".join(refused) in rows and ("not identifiable" in rows) == (len(refused) > 1)


def test_where_only_a_kind_is_not_identified_no_row_gives_a_sum_of_nothing():
    """All kinds together are identified: what is left beside the identified parts is nobody's."""
    known = ("foreground", "flush", "compaction", "checkpoint", "sync", "write_back", "tail", "unseparated")
    numbers = result(**dict.fromkeys(known, KNOWN))
    numbers["by_operation"]["update"] = {"count": 5, "energy_per_operation_j": REFUSED}
    rows = part_rows(answer_of(numbers, WORDING.quantities))
    assert all(name for name, _ in rows)
    assert rows[-1][0] == "not identifiable" and rows[-1][1].startswith("update")
