"""Figures of a study that is a workload: which records each shows, laid out by the study's own axes."""

from __future__ import annotations

import pytest
from opjoule.cli.commands import main
from opjoule.pages.plots import figures
from opjoule.pages.plots.figures import figures_of_studies
from opjoule.results.comparison.index import gather
from report_record import RESULT, make_record
from study_records import make


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("runs")
    for at, system in enumerate(("leveldb", "sqlite"), 1):
        for mix in ("read", "write"):
            make(made, system, "sd", "zipfian", mix, at)
            make(made, system, "sd", "latest", mix, 10 * at)
            make(made, system, "ssd", "zipfian", mix, 100 * at)
    return made


def test_each_figure_shows_its_own_records_by_the_axes_that_differ(folder):
    runs, _ = gather([str(folder)])
    plots = figures_of_studies(runs)
    assert set(plots) == {"s1-figure-3", "s1-figure-7"}, "there is one board: nothing to compare in figure 6"
    patterns, media = plots["s1-figure-3"], plots["s1-figure-7"]
    assert len(patterns.cells) == len(media.cells) == 8
    assert (patterns.series_axes, patterns.group_axes) == (["system"], ["distribution", "mix"])
    assert (media.series_axes, media.group_axes) == (["system"], ["storage", "mix"])
    usual = RESULT["energy_j"]["value"]
    cell = patterns.cell(patterns.series[1], "latest, write")
    assert cell and cell.number("energy_j").value == pytest.approx(20 * usual)
    cell = media.cell(media.series[0], "ssd, read")
    assert cell and cell.number("energy_j").value == pytest.approx(100 * usual)


def test_a_figure_that_is_not_about_boards_is_one_for_each(folder, tmp_path):
    for mix in ("read", "write"):
        make(tmp_path, "leveldb", "sd", "zipfian", mix, 1, device="rpi3")
        make(tmp_path, "leveldb", "sd", "latest", mix, 1, device="rpi3")
    runs, _ = gather([str(folder), str(tmp_path)])
    plots = figures_of_studies(runs)
    assert list(plots) == ["s1-figure-3-rpi3", "s1-figure-3-rpi4", "s1-figure-6", "s1-figure-7"]
    assert len(plots["s1-figure-3-rpi3"].cells) == 4
    assert "device" in plots["s1-figure-7"].group_axes


def test_records_of_two_scales_stand_beside_each_other_with_their_scale(folder, tmp_path):
    make(tmp_path, "leveldb", "ssd", "zipfian", "read", 1, scale=0.1)
    runs, _ = gather([str(folder), str(tmp_path)])
    assert "ssd, read, scale 0.1" in figures_of_studies(runs)["s1-figure-7"].groups


def test_other_records_have_their_own_figures_beside_a_studys(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "FIGURES", {"energy-power": figures.FIGURES["energy-power"]})
    make_record(tmp_path / "alone", db="rocksdb")
    places = [str(folder), str(tmp_path / "alone")]
    monkeypatch.setattr(figures, "save", lambda _figure, folder, name: [folder / f"{name}.svg"])
    assert main(["runs", "figures", *places, "--out", str(tmp_path / "out")]) == 0
    names = [line.rpartition("/")[2].partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert names[0] == "ONE RUN"
    assert names[1:4] == ["s1-figure-3-energy-power", "s1-figure-7-energy-power", "energy-power"]


@pytest.mark.slow
def test_a_studys_figures_are_written_in_place_of_those_of_all_runs(folder, tmp_path, monkeypatch, capsys):
    drawn = {name: figures.FIGURES[name] for name in ("energy-power", "energy-delay")}
    monkeypatch.setattr(figures, "FIGURES", drawn)
    assert main(["runs", "figures", str(folder), "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.glob("*.svg")}
    assert names == {"s1-figure-3-energy-power.svg", "s1-figure-7-energy-power.svg"}
    assert "SIMULATED" in (tmp_path / "s1-figure-3-energy-power.svg").read_text()


def test_what_stands_for_a_papers_figures_is_drawn_in_its_order_with_its_conclusions(
    folder, tmp_path, monkeypatch, capsys
):
    drawn = {name: figures.FIGURES[name] for name in ("energy-power", "energy-delay")}
    monkeypatch.setattr(figures, "FIGURES", drawn)
    monkeypatch.setattr(figures, "save", lambda _figure, folder, name: [folder / f"{name}.svg"])
    assert main(["runs", "figures", str(folder), "--study", "s1", "--out", str(tmp_path / "out")]) == 0
    names = [line.rpartition("/")[2].partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    drawn = [name for name in names if name[:2].isdigit()]
    assert drawn == ["05-figure-3-s1-figure-3-energy-power", "09-figure-7-s1-figure-7-energy-power"]
    assert names[-1] == "s1-conclusions.csv"
    head, *rows = (tmp_path / "out" / "s1-conclusions.csv").read_text().splitlines()
    assert head.startswith("study,question,where,") and rows and all(row.startswith("s1,") for row in rows)
    assert main(["runs", "figures", str(folder), "--study", "s3", "--out", str(tmp_path / "none")]) == 2
    said = capsys.readouterr()
    assert "no record of study s3" in said.err and "not drawn: Figure 1 (LOAD: " in said.out
