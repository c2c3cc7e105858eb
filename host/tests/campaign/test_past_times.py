"""How long a study takes, told by records of it at another scale; and the scale that fits into a time."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.base.scripts import ROOT, RUNS
from opjoule.campaign.past_times import TimeNeeded, past_times, time_needed
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
    for more in ({"device": "rpi5"}, {"storage": "sd"}, {"folder": "s2"}, {"simulate": False}):
        record(tmp_path, "duckdb", 1000, 20, 6, **more)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    past = past_times(tmp_path, cell_of("duckdb", 1))
    assert past == [] and time_needed([cell_of("duckdb", 10)], past) is None


@given(st.floats(1, 1e4), st.floats(1, 1e6), st.floats(1, 1e6))
def test_a_scale_that_is_chosen_takes_no_longer_than_it_may(fixed_s, growing_s, limit_s):
    scale = TimeNeeded(fixed_s, growing_s, 1, 1).scale_within(limit_s)
    assert scale <= 1
    if scale > 0:
        assert fixed_s + growing_s * scale <= limit_s * (1 + 1e-9)
    else:
        assert fixed_s >= limit_s * (1 - 1e-9)


def test_records_are_looked_for_where_measurements_put_them():
    assert RUNS == ROOT / "runs"


STUDY = ["--study", "s3", "--device", "rpi4", "--simulate", "--dry-run", "--repeats", "2"]


def test_a_dry_run_says_how_long_and_within_chooses_the_scale(tmp_path, capsys):
    record(tmp_path / "small", "sqlite", 111, fixed_s=20, work_s=11.1)
    command = [*STUDY, "--only", "system=sqlite", "--out", str(tmp_path / "whole")]
    assert main(command) == 0
    assert "about 6 h 11 min, judging by records of the study at another scale" in capsys.readouterr().out
    assert main([*command, "--within", "20min"]) == 0
    said = capsys.readouterr().out
    assert "(scale 0.052)" in said and "about 20 min" in said


def test_within_needs_to_know_something_and_a_time_that_can_be_kept(tmp_path, capsys):
    command = [*STUDY, "--only", "system=sqlite", "--out", str(tmp_path / "runs" / "whole")]
    assert refused(capsys, *command, "--within", "2h").count("measure it at a small scale first") == 1
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
