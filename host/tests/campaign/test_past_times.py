"""How long a study takes, told by records of it at another scale; and the scale that fits into a time."""

from __future__ import annotations

import csv
import json
import math
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.base.scripts import ROOT, RUNS
from opjoule.campaign.past_times import SHIPPED, PastTime, TimeNeeded, medium_of, past_times, shipped_times, time_needed
from opjoule.cli.commands import main

START = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


def record(into: Path, system: str, rows: int, fixed_s: float, work_s: float, marks=(), **more) -> None:
    """A record's run.json as far as it is read here."""
    place = into / f"{system}-{rows}-{len(list(into.glob('*')))}"
    place.mkdir(parents=True)
    options = {
        "folder": "s3",
        "device": "rpi4",
        "storage": None,
        "simulate": True,
        "cell": {"system": system},
    }
    options |= {"parts": [{"rows": [rows]}], **more}
    ended = START + timedelta(seconds=fixed_s + work_s)
    phases = [
        {"name": "idle-before", "role": "baseline", "start_board_ns": 0, "end_board_ns": 10**9},
        {"name": "run", "role": "work", "start_board_ns": 10**9, "end_board_ns": round((1 + work_s) * 1e9)},
    ]
    times = {"started_utc": START.isoformat(), "ended_utc": ended.isoformat()}
    document = {"status": "complete", "asked": options, "found": times, "phases": phases}
    document["marked_phases"] = [
        {"name": name, "start_board_ns": 0, "end_board_ns": length_s * 10**9} for name, length_s in marks
    ]
    (place / "run.json").write_text(json.dumps(document))


def cell_of(system: str, rows: int) -> dict:
    return {
        "folder": "s3",
        "device": "rpi4",
        "storage": None,
        "simulate": True,
        "cell": {"system": system},
    } | {"parts": ({"rows": (rows,)},)}


def test_work_grows_with_the_counts_and_the_rest_stays_as_it_was(tmp_path):
    record(tmp_path, "duckdb", 1000, fixed_s=20, work_s=6)
    estimate = time_needed([cell_of("duckdb", 100_000)], past_times(tmp_path, cell_of("duckdb", 1)))
    assert estimate and estimate.total_s == pytest.approx(20 + 600)
    assert (estimate.cells, estimate.by_own_records) == (1, 1)


def test_the_records_nearest_in_size_are_taken_and_others_take_their_mean(tmp_path):
    record(tmp_path, "duckdb", 600, fixed_s=90, work_s=5)
    record(tmp_path, "duckdb", 1000, fixed_s=20, work_s=6)
    record(tmp_path, "sqlite", 1000, fixed_s=20, work_s=2)
    cells = [cell_of(system, 10_000) for system in ("duckdb", "sqlite", "postgresql")]
    estimate = time_needed(cells, past_times(tmp_path, cells[0]))
    assert estimate and estimate.total_s == pytest.approx(3 * 20 + 60 + 20 + 40)
    assert estimate.by_own_records == 2


def test_two_sizes_tell_what_work_takes_at_any_size(tmp_path):
    record(tmp_path, "duckdb", 100, fixed_s=20, work_s=6)
    record(tmp_path, "duckdb", 1000, fixed_s=20, work_s=15)
    estimate = time_needed([cell_of("duckdb", 10_000)], past_times(tmp_path, cell_of("duckdb", 1)))
    assert estimate and (estimate.fixed_s, estimate.growing_s) == pytest.approx((20 + 5, 100))
    small = time_needed([cell_of("duckdb", 10)], past_times(tmp_path, cell_of("duckdb", 1)))
    assert small and small.total_s == pytest.approx(20 + 5 + 0.1)


def test_a_server_that_starts_takes_as_long_at_any_size(tmp_path):
    marks = [("START", 6), ("LOAD", 2)]
    record(tmp_path, "questdb", 1000, fixed_s=20, work_s=10, marks=marks)
    past = past_times(tmp_path, cell_of("questdb", 1), ["START"])
    estimate = time_needed([cell_of("questdb", 10_000)], past)
    assert estimate and (estimate.fixed_s, estimate.growing_s) == pytest.approx((20 + 8, 20))


def test_a_time_that_grows_faster_than_its_counts_is_taken_in_proportion_to_the_nearest(tmp_path):
    record(tmp_path, "duckdb", 100, fixed_s=1, work_s=1)
    record(tmp_path, "duckdb", 1000, fixed_s=1, work_s=30)
    estimate = time_needed([cell_of("duckdb", 2000)], past_times(tmp_path, cell_of("duckdb", 1)))
    assert estimate and (estimate.fixed_s, estimate.growing_s) == pytest.approx((0, 62))


def test_records_of_another_board_medium_or_study_and_damaged_ones_tell_nothing(tmp_path):
    for more in ({"device": "rpi5"}, {"storage": "ssd-usb3"}, {"folder": "s2"}, {"simulate": False}):
        record(tmp_path, "duckdb", 1000, 20, 6, **more)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    past = past_times(tmp_path, cell_of("duckdb", 1))
    assert past == [] and time_needed([cell_of("duckdb", 10)], past) is None


@given(st.floats(1, 1e4), st.floats(1, 1e6), st.floats(1, 1e6))
def test_a_scale_that_is_chosen_takes_no_longer_than_it_may(fixed_s, growing_s, limit_s):
    scale = TimeNeeded(fixed_s, growing_s, 0.0, math.inf, 1, 1).scale_within(limit_s)
    assert scale <= 1
    if scale > 0:
        assert fixed_s + growing_s * scale <= limit_s * (1 + 1e-9)
    else:
        assert fixed_s >= limit_s * (1 - 1e-9)


def test_records_are_looked_for_where_measurements_put_them():
    assert RUNS == ROOT / "runs"


SD = {"folder": "s3", "storage": "sd"}


def shipped(*rows: tuple[str, str, int, float, float], file: Path) -> list[PastTime]:
    """Shipped times: medium, cell, size, total and growing time."""
    lines = [f"s3,rpi4,{medium},{cell},{size},{total},{growing},a test" for medium, cell, size, total, growing in rows]
    file.write_text("\n".join(["study,device,storage,cell,size,total_s,growing_s,source", *lines]))
    return shipped_times(SD, file)


def test_a_cell_without_records_takes_the_shipped_times_most_like_it(tmp_path):
    times = shipped(
        ("sd", "mix=read system=sqlite", 100, 30, 10),
        ("sd", "mix=write system=sqlite", 100, 60, 40),
        ("ssd", "mix=write system=sqlite", 100, 21, 1),
        file=tmp_path / "times.csv",
    )
    cell = cell_of("sqlite", 1000) | {"cell": {"system": "sqlite", "mix": "write"}}
    estimate = time_needed([cell, cell_of("duckdb", 1000)], [], times)
    assert estimate and (estimate.by_own_records, estimate.by_shipped, estimate.cells) == (0, 1, 2)
    assert estimate.total_s == pytest.approx(2 * (20 + 400))
    assert estimate.least_s < estimate.total_s / 2 and estimate.most_s > estimate.total_s * 2


def test_records_of_the_boards_first_medium_are_the_same_whether_it_was_named_or_not(tmp_path):
    record(tmp_path, "duckdb", 1000, 20, 6, storage="sd")
    assert len(past_times(tmp_path, cell_of("duckdb", 1))) == 1
    assert medium_of(cell_of("duckdb", 1)) == "sd"


def test_a_database_without_a_shipped_time_on_the_medium_takes_its_own_on_others(tmp_path):
    """Not the mean of the other databases: in S2 SQLite syncs and takes ten times as long."""
    times = shipped(
        ("sd", "system=leveldb", 100, 20, 1),
        ("ssd", "system=leveldb", 100, 15, 1),
        ("ssd", "system=sqlite", 100, 200, 180),
        file=tmp_path / "times.csv",
    )
    estimate = time_needed([cell_of("leveldb", 100), cell_of("sqlite", 100)], [], times)
    assert estimate and estimate.by_shipped == 2 and estimate.total_s == pytest.approx(20 + 200)


def test_own_records_come_before_shipped_times_and_make_the_range_narrower(tmp_path):
    record(tmp_path, "sqlite", 1000, fixed_s=20, work_s=6)
    times = shipped(("sd", "system=sqlite", 1000, 520, 500), file=tmp_path / "times.csv")
    own = time_needed([cell_of("sqlite", 1000)], past_times(tmp_path, cell_of("sqlite", 1)), times)
    assert own and own.total_s == pytest.approx(26) and own.by_own_records == 1
    assert (own.least_s, own.most_s) == pytest.approx((26 / 1.3, 26 * 1.3))


def test_each_value_of_an_axis_within_a_record_has_a_growing_part_of_its_own(tmp_path):
    """A job that varies the size of its values: a planned cell with the large ones alone takes their time."""
    parts = [{"size": "small", "rows": [100]}, {"size": "large", "rows": [100]}]
    marks = (("insert.small.100", 1), ("insert.large.100", 50), ("get.large.100", 10))
    record(tmp_path, "sqlite", 200, fixed_s=20, work_s=61, marks=marks, parts=parts)
    asked = cell_of("sqlite", 1) | {"parts": ({"size": "large", "rows": (200,)},)}
    estimate = time_needed([asked], past_times(tmp_path, asked))
    assert estimate and (estimate.fixed_s, estimate.growing_s) == pytest.approx((20, 120))


def test_each_shipped_time_is_plausible_and_names_its_source():
    """A plan calls all of them SIMULATED."""
    with SHIPPED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"s1", "s2", "s3", "s4", "s5"} <= {row["study"] for row in rows}
    for row in rows:
        assert 0 < float(row["growing_s"]) <= float(row["total_s"])
        assert row["source"].startswith("SIMULATED, ")


STUDY = ["--study", "s3", "--device", "rpi4", "--simulate", "--dry-run", "--repeats", "2"]


def test_a_dry_run_says_how_long_and_within_chooses_the_scale(tmp_path, capsys):
    record(tmp_path / "small", "sqlite", 111, fixed_s=20, work_s=11.1)
    command = [*STUDY, "--only", "system=sqlite", "--out", str(tmp_path / "whole")]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "about 6 h 11 min (85 min to 27 h 4 min), judging 2 measurements by the study's records" in said
    assert main([*command, "--within", "20min"]) == 0
    said = capsys.readouterr().out
    assert "(scale 0.052)" in said and "about 20 min" in said


def test_within_needs_to_know_something_and_a_time_that_can_be_kept(tmp_path, capsys):
    own = shutil.copytree(ROOT / "studies" / "speedtest", tmp_path / "own")
    unknown = ["--study", str(own), *STUDY[2:], "--within", "2h"]
    assert refused(capsys, *unknown).count("measure it at a small scale first") == 1
    command = [*STUDY, "--only", "system=sqlite", "--out", str(tmp_path / "runs" / "whole")]
    record(tmp_path / "runs" / "small", "sqlite", 111, fixed_s=60, work_s=1)
    assert "choose fewer cells" in refused(capsys, *command, "--within", "1min")
    assert "for example 90min, 2h or 3d" in refused(capsys, *command, "--within", "soon")


def refused(capsys, *words: str) -> str:
    """The one line with which a command line is refused."""
    with pytest.raises(SystemExit) as ended:
        main([*words])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.count("\n") == 1
    return said


def test_the_short_runs_that_find_an_equal_rate_are_no_past_times(tmp_path):
    record(tmp_path / "rates", "sqlite", 1000, fixed_s=20, work_s=6)
    assert past_times(tmp_path, cell_of("sqlite", 1)) == []
    record(tmp_path, "sqlite", 1000, fixed_s=20, work_s=6)
    assert len(past_times(tmp_path, cell_of("sqlite", 1))) == 1
