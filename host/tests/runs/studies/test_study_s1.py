"""Study S1: the cells of its figures, their controls and amounts, on any board; three databases end to end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import mongo_server
import pytest
from opjoule.cli.campaign.command import _plans
from opjoule.cli.commands import main, parse
from opjoule.cli.measure.options import PlanningOptions
from opjoule.pages.plots.figures import figures_of_studies
from opjoule.results.comparison.index import gather
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.studies.folder import find_study

ROOT = Path(__file__).resolve().parents[4]
AMOUNTS = {"1kb": (4_000_000, 2_000_000), "64b": (64_000_000, 32_000_000), "16kb": (250_000, 125_000)}
FIGURES = {
    "2": {"mix": {"read", "write"}},
    "3": {"distribution": {"zipfian", "latest", "uniform"}, "mix": {"read", "write"}},
    "4": {"mix": {"read", "mixed", "write"}},
    "5": {"size": {"64b", "1kb", "16kb"}, "mix": {"read", "write"}},
    "6": {"mix": {"read", "write"}},
    "7": {"storage": {"sd", "ssd-usb2", "ssd-usb3"}, "mix": {"read", "write"}},
}


def planned(*words: str) -> list[tuple[Plan, PlanningOptions]]:
    return _plans(parse(["--study", "s1", *words]).options.file)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_has_every_combination_of_what_it_compares_and_nothing_else(figure):
    cells = [plan.condition for plan, _ in planned("--device", "rpi4", "--only", f"figure={figure}")]
    usual = {"storage": {"sd"}, "journal": {"off"}, "distribution": {"zipfian"}, "size": {"1kb"}}
    usual |= {"system": {"sqlite", "leveldb", "mongodb"}, "device": {"rpi4"}} | FIGURES[figure]
    assert {axis: {cell[axis] for cell in cells} for axis in usual} == usual
    count = 1
    for values in usual.values():
        count *= len(values)
    assert len(cells) == count


def test_cells_that_figures_share_are_measured_once_and_say_so():
    plans = planned("--device", "rpi4")
    assert len(plans) == 9 + 12 + 12 + 12
    [shared] = [options for plan, options in plans if plan.condition_name == "sqlite rpi4 sd off zipfian read 1kb"]
    assert shared.figures == {
        "2": ["system", "device"],
        "3": ["distribution"],
        "4": ["mix"],
        "5": ["size"],
        "6": ["device"],
        "7": ["storage", "device"],
    }


@pytest.mark.parametrize("scale", ["1", "0.025"])
def test_every_cell_has_the_studys_controls_threads_and_amounts(scale):
    plans = planned("--device", "odroid-c2,rpi3,rpi4", "--scale", scale)
    assert len(plans) == len(find_study("s1").cells({}))
    for plan, options in plans:
        cell, effective = plan.condition, plan.study.effective
        lone = cell["system"] == "sqlite" and cell["mix"] == "write"
        assert plan.study.threads == (1 if lone else 4)
        assert plan.study.reset == ("load" if cell["system"] == "mongodb" else "copy")
        assert (plan.board.profile.name, plan.board.medium) == (cell["device"], cell["storage"])
        wanted = {"page_cache=drop", "wifi=off", "bluetooth=off", f"journal={cell['journal']}"}
        assert set(options.state) == wanted | ({"memory_mb=1024"} if cell["device"] == "rpi4" else set())
        assert (effective["durability"], effective["requestdistribution"]) == ("async", cell["distribution"])
        assert float(effective["readproportion"]) == {"read": 1, "mixed": 0.5, "write": 0}[cell["mix"]]
        amounts = [float(scale) * count for count in AMOUNTS[cell["size"]]]
        assert [int(effective["recordcount"]), int(effective["operationcount"])] == amounts
        assert int(effective["fieldlength"]) * amounts[0] == pytest.approx(4.096e9 * float(scale))
        assert plan.settle_limit_s == 900 and options.scale == float(scale)


def test_figures_are_of_the_papers_boards_and_of_boards_that_it_has_not():
    """Figures 2 to 5 are of the ODROID-C2 and the Raspberry Pi 4, figure 6 of the Raspberry Pi 3 too."""
    plans = planned("--device", "odroid-c2,rpi3,rpi4,rpi5")
    for figure, devices in (
        ("2", {"odroid-c2", "rpi4", "rpi5"}),
        ("6", {"odroid-c2", "rpi3", "rpi4", "rpi5"}),
    ):
        assert {plan.condition["device"] for plan, options in plans if figure in options.figures} == devices


def test_another_medium_takes_the_place_of_the_studys_own_and_has_a_folder_of_its_own():
    campaign = parse(["--study", "s1", "--device", "rpi5", "--storage", "nvme"]).options.file
    assert campaign.name == "s1-nvme"
    assert {cell.condition["storage"] for cell in campaign.cells} == {"nvme"}
    assert {name for cell in campaign.cells for name in cell.options.figures} == {*FIGURES, "journaling"}


def test_a_simulated_board_has_a_state_of_its_own():
    """It takes memory and page cache of the study's state, and what differs only in the rest is one cell."""
    words = ["--device", "odroid-c2", "--simulate", "--only", "figure=journaling"]
    plans = planned(*words)
    assert len(plans) == 6 and {options.state for _, options in plans} == {("page_cache=drop",)}
    plans = planned("--device", "rpi4", "--simulate", "--only", "figure=2")
    assert {tuple(sorted(options.state)) for _, options in plans} == {("memory_mb=1024", "page_cache=drop")}
    plans = planned("--device", "odroid-c2", "--only", "figure=journaling")
    assert len(plans) == 12


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "figure=1"], "unknown figure of --only '1'"),
        (["--only", "figure=journaling"], "leaves nothing"),
        (["--storage", "floppy"], "rpi4 'floppy'"),
        (["--storage", "sd,sd"], "sd,sd"),
    ],
)
def test_what_the_study_does_not_have_is_one_line(capsys, words, says):
    argv = ["--study", "s1", "--device", "rpi4", "--dry-run", *words]
    try:
        assert main(argv) == 2
    except SystemExit as ended:
        assert ended.code == 2
    complaint = capsys.readouterr().err
    assert says in complaint and complaint.count("\n") == 1


def test_a_server_that_the_simulated_board_lacks_is_one_line_before_anything_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    argv = ["--device", "rpi4", "--simulate", "--only", "figure=2", "--out", str(tmp_path / "out")]
    if shutil.which("mongod"):
        pytest.skip("this computer has a mongod of its own")
    assert main(["--study", "s1", *argv]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "--simulate: mongodb is missing: 'mongod'" in said[-1] and "--only system=" in said[-1]
    assert not (tmp_path / "out").exists()


@pytest.mark.rig
@pytest.mark.end_to_end
@pytest.mark.parametrize("mongodb", [False, True], ids=["two databases", "every database"])
def test_its_databases_run_on_the_simulated_rig_and_their_figure_is_drawn(tmp_path, monkeypatch, mongodb):
    """MongoDB is a stand-in that speaks its protocol; its client is in the board's loader."""
    databases = {"sqlite": "SQLite", "leveldb": "LevelDB"}
    if mongodb:
        databases["mongodb"] = "MongoDB"
        subprocess.run([ROOT / "loader-cpp/board-builds", "amd64"], check=True, timeout=3600)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    argv = ["--study", "s1", "--device", "rpi4", "--simulate", "--scale", "0.0001", "--repeats", "1"]
    argv += ["--only", "figure=2", "--only", "mix=write", "--idle", "0.3", "--out", str(tmp_path / "out")]
    argv += ["--only", f"system={','.join(databases)}"]
    with mongo_server.stand_in_alone(tmp_path) as mongod:
        (tmp_path / "mongod").symlink_to(mongod)
        assert main(argv) in (0, 6)
    runs, _ = gather([str(tmp_path / "out")])  # without what had to be measured again on a busy computer
    assert {run.subject for run in runs} == set(databases.values())
    for run in runs:
        assert run.simulated and run.means["operations"].value == 200
        assert run.means["energy_j"].value > 0 and run.means["energy_j"].u > 0
        record = json.loads((run.place / "run.json").read_text())
        assert record["asked"]["folder"] == "s1" and record["asked"]["scale"] == 0.0001
    figures = figures_of_studies(runs)
    assert list(figures) == ["s1-figure-2"]
    assert figures["s1-figure-2"].series == [*databases.values()]
    used = [run.means["server.peak_memory_bytes"].value for run in runs if run.subject == "MongoDB"]
    assert all(size > 20_000_000 for size in used) and bool(used) == mongodb
    assert Path(tmp_path / "out" / "report.html").exists()
