"""The pictures of one record: energy above idle by activity, latencies of operations, residuals of a calibration."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from calibration_files import made
from compared_records import answer_of
from opjoule.energy.calibration.calibration_file import read_calibration, write_calibration
from opjoule.energy.operations.operation_table import LOADER_KINDS, OperationTable
from opjoule.energy.operations.tables import ATTRIBUTION
from opjoule.energy.trace.parquet_file import write_parquet
from opjoule.pages.drawing.page import text_of
from opjoule.pages.drawing.shown import WIDTH
from opjoule.pages.report.pictures import (
    LATENCY_LEFT,
    LATENCY_RIGHT,
    LEFT,
    RIGHT,
    activity_stack,
    latency_histogram,
    told_parts,
    write_residuals,
)
from opjoule.pages.report.terminal import part_rows
from opjoule.pages.report.timeline import counted_latency
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


def logged(**duration_ns: list[int]) -> OperationTable:
    """Operations of some kinds with these durations."""
    made = OperationTable.empty(sum(len(times_ns) for times_ns in duration_ns.values()))
    made.duration_ns[:] = [one for times_ns in duration_ns.values() for one in times_ns]
    made.kind[:] = [LOADER_KINDS.index(name) for name, times_ns in duration_ns.items() for _ in times_ns]
    return made


@pytest.mark.parametrize("duration_ns", [1, 999, 1000, 1001, 10**6, 123_456_789, 10**10])
def test_an_operation_is_counted_where_its_latency_lies(duration_ns: int) -> None:
    counted = counted_latency(logged(read=[duration_ns]))
    assert counted
    (bin_,) = np.flatnonzero(counted.counts["read"])
    assert counted.bounds_s[bin_] * (1 - 1e-9) <= duration_ns * 1e-9 <= counted.bounds_s[bin_ + 1]


def test_every_operation_is_counted_once_whatever_its_latency() -> None:
    """Durations of 0 too: the clock's step can be longer than an operation."""
    rng = np.random.default_rng(1)
    reads = [0, *(rng.lognormal(9, 4, 5000)).astype(np.int64).tolist()]
    counted = counted_latency(logged(read=reads, scan=[5, 5, 7]))
    assert counted
    assert {name: int(counts.sum()) for name, counts in counted.counts.items()} == {"read": 5001, "scan": 3}
    assert counted.marks_s["50 %"] == pytest.approx(float(np.median([*reads, 5, 5, 7])) * 1e-9, rel=0.01)


def test_nothing_logged_is_nothing_drawn() -> None:
    assert counted_latency(OperationTable.empty()) is None
    assert latency_histogram(None) == []


def test_ticks_stand_at_their_decades_and_the_last_ends_with_the_drawing() -> None:
    """Centred under its tick, "100 ms" would be cut at the right edge."""
    drawn = text_of(*latency_histogram(counted_latency(logged(read=[100, 1000, 10_000, 99_000_000]))))
    labels = re.findall(r'x="([\d.]+)" y="[\d.]+" text-anchor="middle">(\d+) (ns|µs|ms|s)<', drawn)
    places = {f"{number} {unit}": float(x) for x, number, unit in labels}
    assert list(places) == ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]
    assert re.search(rf'x="{WIDTH - 1:.1f}" y="[\d.]+" text-anchor="end">100 ms<', drawn)
    steps = np.diff(list(places.values()))
    assert steps == pytest.approx([steps[0]] * 5, abs=0.2)
    assert LATENCY_LEFT <= min(places.values()) <= max(places.values()) <= WIDTH - LATENCY_RIGHT


SVG = "{http://www.w3.org/2000/svg}"


def drawn(tmp_path, file):
    path = write_calibration(tmp_path, file)
    return ElementTree.fromstring(write_residuals(path, read_calibration(path)).read_text())


def test_each_point_is_drawn_once_in_each_panel_and_the_residuals_keep_their_order(tmp_path):
    file = made("<DMM> & co")
    shifted = tuple(replace(p, residual=0.1e-3 * n) for n, p in enumerate(file.current))
    picture = drawn(tmp_path, replace(file, current=shifted))
    circles = picture.findall(f"{SVG}circle")
    assert len(circles) == 12 and len(picture.findall(f"{SVG}polygon")) == 2
    heights = [float(circle.get("cy")) for circle in circles[:6]]
    assert heights == sorted(heights, reverse=True) and heights[0] - heights[5] > 15
    steps = [above - below for above, below in pairwise(heights)]
    assert max(steps) == pytest.approx(min(steps), abs=0.3)
    assert "<DMM> & co" in picture.findtext(f"{SVG}title")


def test_a_simulated_one_says_so_and_one_without_voltage_has_one_panel(tmp_path):
    file = made(simulated=True)
    file = replace(file, calibration=replace(file.calibration, voltage=None), voltage=())
    picture = drawn(tmp_path, file)
    assert "SIMULATED" in picture.findtext(f"{SVG}title")
    assert len(picture.findall(f"{SVG}polygon")) == 1
