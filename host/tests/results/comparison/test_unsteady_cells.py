"""Cells whose runs differ in energy or writes are named where their runs are compared."""

import json

import pytest
from compared_records import KEY, made
from opjoule.base.notices import NoticeKind
from opjoule.cli.commands import main
from opjoule.results.comparison.index import gather
from opjoule.results.comparison.run_warnings import marks_of, warnings_of


def cell(folder, values, written=(), operations=1000):
    """Runs of one setting with these headlines [uJ], 1 % of own uncertainty, and bytes written [MB]."""
    for number, value in enumerate(values):
        changes = {"operations": {"value": operations * (1 + number % 2), "u": 0, "unit": "1"}}
        if written:
            of_run = written[number] * 1e6 * (1 + number % 2)
            changes["disk_written_bytes"] = {"value": of_run, "u": None, "unit": "B", "reason": "counted"}
        made(folder / f"run-{number}", value * 1e-6, u=0.02e-6 * value, changes=changes)
    return gather([str(folder)])[0]


def said(runs):
    return [notice for notice in warnings_of([runs]) if notice.kind is NoticeKind.UNSTEADY_CELL]


def test_runs_that_scatter_beyond_their_own_uncertainties_are_named(tmp_path):
    runs = cell(tmp_path, [54.7, 64.3, 75.5])
    [warning] = said(runs)
    assert "\N{MINUS SIGN}16, \N{MINUS SIGN}1, +16 %" in warning.text
    assert warning.runs == ("run-0", "run-1", "run-2") and marks_of(runs) == ["unsteady cell"]


def test_runs_that_wrote_unequal_amounts_for_equal_work_are_named(tmp_path):
    [warning] = said(cell(tmp_path, [60.0, 61.0, 60.5], [27.0, 120.0, 257.0]))
    shares = [float(word) for word in warning.text.split(" wrote ")[1].split(" MB")[0].split(", ")]
    assert [share / shares[0] for share in shares] == pytest.approx([1.0, 120 / 27, 257 / 27], rel=0.02)


def test_steady_cells_single_runs_and_runs_without_an_interval_are_not_named(tmp_path):
    assert not said(cell(tmp_path / "steady", [60.0, 61.0, 60.5], [100.0, 105.0, 98.0]))
    assert not said(cell(tmp_path / "single", [60.0]))
    cell(tmp_path / "unknown", [54.7, 64.3])
    unknown = {"value": 75.5e-6, "u": None, "unit": "J", "reason": "not stated"}
    made(tmp_path / "unknown" / "run-3", 0.0, changes={KEY: unknown})
    assert not said(gather([str(tmp_path / "unknown")])[0])


def test_the_notice_is_above_a_comparison_and_in_its_json(tmp_path, capsys):
    cell(tmp_path / "leveldb", [54.7, 64.3, 75.5])
    for number, value in enumerate([60e-6, 61e-6, 60.5e-6]):
        made(tmp_path / f"sqlite/{number}", value, u=1e-6, db="sqlite")
    assert main(["compare", str(tmp_path), "--by", "db"]) == 0
    assert f"WARNING  {NoticeKind.UNSTEADY_CELL.upper()}: run-0 and 2 more runs: The energy" in capsys.readouterr().out
    assert main(["compare", str(tmp_path), "--by", "db", "--json"]) == 0
    assert [notice["kind"] for notice in json.loads(capsys.readouterr().out)["notices"]] == [NoticeKind.UNSTEADY_CELL]
