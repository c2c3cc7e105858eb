"""Study S2: every store through the loader, with the same answers, latencies, memory, space and joules."""

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from compared_records import phase_run, study_table
from opjoule.base.units import Quantity, exact
from opjoule.cli.commands import main
from opjoule.pages.drawing.printed import printed
from opjoule.pages.plots.phases import curve_figures, grid_figures, series_figures
from opjoule.results.comparison.study_best import best_csv, best_systems, winners
from opjoule.results.comparison.study_rows import StudyTable, read_studies
from opjoule.results.comparison.verdicts import same_winners, same_winners_table
from opjoule.runs.studies.folder import find_study

ROOT = Path(__file__).resolve().parents[4]
FOLDER = ROOT / "studies/s2"
STORES = ("sqlite", "leveldb", "rocksdb", "berkeleydb", "flatfolder", "nestedfolder", "lmdb")


def parts(*records: int, size: str = "1-10KiB") -> str:
    """What the job is to go through, of one size."""
    return json.dumps([{"size": size, "records": records, "operations": [10]}])


def job(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the job by itself: no probe, no rig."""
    given = {"loader": ROOT / "build/loader/loader", "data": "text", "text": ""}
    given |= {"parts": parts(20, 50), "seed": "3", "storage": tmp_path, "durability": "default"}
    options = [part for name, value in given.items() for part in (f"--{name}", str(value))]
    along = f"{ROOT / 'loader-cpp/probe'}:{ROOT / 'studies'}"
    return subprocess.run(
        [sys.executable, FOLDER / "job.py", *options, *words],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": along},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def phase_lines(tmp_path: Path, *words: str) -> list[dict]:
    results = tmp_path / "results.jsonl"
    ended = job(tmp_path, *words, "--results", str(results))
    assert ended.returncode == 0, ended.stderr
    first, *phases = (json.loads(line) for line in results.read_text().splitlines())
    assert first["software"].split()[0] in STORES, "what is measured is named before its phases"
    return phases


def test_the_study_has_its_own_sizes_and_counts():
    study = find_study("s2")
    assert study.systems == STORES
    cells = study.cells({})
    assert len(cells) == 6 * 2 * 2 and "lmdb" not in {cell["system"] for cell in cells}, "not the paper's"
    assert {cell["system"] for cell in study.cells({"system": ["lmdb"]})} == {"lmdb"}
    made = study.parts(cells[0], 1.0, {})
    most = {part["size"]: max(part["records"]) for part in made}
    assert most == {"0-1KiB": 10**6, "1-10KiB": 10**6, "10-100KiB": 10**5, "100-1024KiB": 10**4}
    assert {part["operations"] for part in made} == {(1000,)}
    few = study.parts(cells[0], 0.01, {"size": ["0-1KiB", "100-1024KiB"], "records": ["10000", "100000"]})
    assert [(part["size"], part["records"]) for part in few] == [
        ("0-1KiB", (100, 1000)),
        ("100-1024KiB", (100,)),
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--dataset", "/no/such/book"], "--dataset /no/such/book: no such file"),
        (["--disturb", "video"], "use --only disturb=video"),
        (["--only", "records=5"], "unknown records of --only '5'"),
    ],
)
def test_an_option_that_does_not_fit_is_one_line(capsys, words, says):
    with pytest.raises(SystemExit) as ended:
        main(["--study", "s2", "--device", "rpi4", "--simulate", "--dry-run", *words])
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert says in complaint and complaint.count("\n") == 1


@pytest.mark.slow
def test_all_stores_give_the_same_answers_on_the_same_data(tmp_path):
    answers = {}
    for store in STORES:
        (tmp_path / store).mkdir()
        lines = phase_lines(tmp_path / store, "--store", store)
        assert [(line["phase"], line["cell"]["records"]) for line in lines] == [
            (phase, count) for count in ("20", "50") for phase in ("load", "insert", "get", "update", "remove", "close")
        ], "the paper's order"
        for line in lines:
            if line["phase"] == "close":
                assert line["figures"]["space_efficiency"] > 0, "after all operations"
                continue
            figures = line["figures"]
            assert 0 < figures["latency_min_s"] <= figures["latency_mean_s"] <= figures["latency_max_s"]
            assert figures["peak_memory_bytes"] > 1 << 20
        answers[store] = [line["answer"] for line in lines]
    assert all(answer == answers["sqlite"] for answer in answers.values())
    assert {line["operations"] for line in lines if line["phase"] in ("insert", "update", "remove")} == {10}
    gets = [line for line in lines if line["phase"] == "get"]
    assert all(get["operations"] > get["answer"]["operations"] == 10 for get in gets), "further ones for joules"
    stored = [line["answer"]["operations"] for line in lines if line["phase"] == "close"]
    assert stored == [30, 60], "what was inserted stays, what was removed is back"
    loads = [answers["sqlite"][0], answers["sqlite"][6]]
    assert [load["operations"] for load in loads] == [20, 50]
    assert all(1024 < load["bytes"] / load["operations"] < 10240 for load in loads)
    gets = [answer for line, answer in zip(lines, answers["sqlite"], strict=True) if line["phase"] == "get"]
    assert all(get["bytes"] > 0 for get in gets)


def test_a_store_whose_values_are_others_than_the_loaders_is_named(tmp_path, monkeypatch):
    """Plain Python reads the flat folder's files by itself, and has to come to the loader's digest."""
    module = imported_job(monkeypatch)
    options = argparse.Namespace(
        **{"loader": ROOT / "build/loader/loader", "store": "flatfolder", "folder": tmp_path, "seed": "3"},
        **{"data": "text", "text": "", "durability": "default"},
    )
    database = module.SizedStore("1-10KiB", 20, 1024, 10240, 10)
    phases = [("load", {"insertproportion": 1}), *module.phases_of(database, 3)]
    (name, last) = module.run(options, database, "load", phases)[-1]
    assert name == "close"
    digest = last.summary["value_digest"]
    module.look_at_files(options, digest)
    changed = next(iter((tmp_path / "database" / "records").iterdir()))
    content = bytearray(changed.read_bytes())
    content[-1] ^= 1
    changed.write_bytes(content)
    with pytest.raises(SystemExit, match=r"flatfolder .* digest"):
        module.look_at_files(options, digest)


@pytest.mark.parametrize(
    ("store", "durability", "means"),
    [
        ("sqlite", "default", "sync"),
        ("sqlite", "async", "async"),
        ("leveldb", "default", "async"),
        ("flatfolder", "sync", "sync"),
    ],
)
def test_the_default_durability_is_that_of_a_store_that_is_told_nothing(monkeypatch, store, durability, means):
    """SQLite syncs each commit by default; the paper's program sets no PRAGMA."""
    module = imported_job(monkeypatch)
    assert module.durability(argparse.Namespace(store=store, durability=durability)) == means


def test_a_small_database_does_not_grow_beyond_five_times_its_records(monkeypatch):
    """The paper's program starts again at 500 of 100 records, and inserts 1,000 into 1,000."""
    module = imported_job(monkeypatch)
    inserts = {count: module.SizedStore("0-1KiB", count, 1, 1024, 1000).inserts for count in (100, 1000, 10**6)}
    assert inserts == {100: 400, 1000: 1000, 10**6: 1000}


def test_a_loader_that_fails_is_one_line(tmp_path):
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "mine").touch()
    ended = job(tmp_path, "--store", "leveldb", "--results", str(tmp_path / "results"))
    assert ended.returncode == 1 and "mine" in ended.stderr.splitlines()[-1]
    assert ended.stderr.splitlines()[-1].startswith("load, 20 records of 1-10KiB: ") and "Traceback" not in ended.stderr


def imported_job(monkeypatch):
    """The job as a module."""
    monkeypatch.setattr(sys, "argv", ["job.py", "--check"])
    monkeypatch.syspath_prepend(str(ROOT / "loader-cpp/probe"))
    monkeypatch.syspath_prepend(str(ROOT / "studies"))
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("job", "opjoule_study", "opjoule_marks"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("job")


def test_text_takes_less_room_than_random_bytes_where_a_store_compresses(tmp_path):
    # Data well above the engine's memtable, so that tables are written.
    efficiency = {}
    for data in ("text", "random"):
        (tmp_path / data).mkdir()
        wanted = ["--store", "leveldb", "--data", data, "--parts", parts(2000)]
        efficiency[data] = phase_lines(tmp_path / data, *wanted)[-1]["figures"]["space_efficiency"]
    assert efficiency["text"] > 1.15 and 0.8 < efficiency["random"] < 1.05


def test_values_can_be_pieces_of_a_file_of_the_user(tmp_path):
    (tmp_path / "book").write_text("It was a bright cold day. " * 400)
    lines = phase_lines(tmp_path, "--store", "flatfolder", "--text", str(tmp_path / "book"), "--parts", parts(5))
    assert lines[0]["answer"]["operations"] == 5
    values = b"".join(path.read_bytes()[4:] for path in (tmp_path / "database" / "records").iterdir())
    assert values.count(b"bright cold day") > 20


def test_the_check_says_what_is_stored_and_names_what_is_wrong(tmp_path):
    fine = job(tmp_path, "--store", "leveldb", "--check")
    assert fine.returncode == 0, fine.stderr
    assert json.loads(fine.stdout)["bytes"] > 60 * 5 * 1024
    wrong = job(tmp_path, "--store", "leveldb", "--text", "/no/such/book", "--check")
    assert wrong.returncode != 0 and "/no/such/book" in wrong.stderr.splitlines()[-1]


def some_rows(blocks: int = 1, **shown: object) -> StudyTable:
    """Two stores, three counts, two phases; the second store is the better one."""
    rows = [
        phase_run(
            {"system": store, "size": "0-1KiB", "records": str(count)},
            phase,
            block,
            {"latency_mean_s": exact(latency_s * count, "s"), "energy_j": Quantity(1.0, 0.1, "J")},
        )
        for store, latency_s in (("sqlite", 2e-6), ("leveldb", 1e-6))
        for count in (100, 1000, 10000)
        for phase in ("load", "get")
        for block in range(1, blocks + 1)
    ]
    return study_table({"latency_mean_s": "least", "energy_j": "least"}, rows, name="s2", **shown)


def test_measures_are_drawn_over_the_counts_with_a_line_for_each_store():
    figures = dict(series_figures(some_rows()))
    assert list(figures) == [
        "s2-size-0-1KiB-by-records-latency-mean-s",
        "s2-size-0-1KiB-by-records-energy-j",
    ]
    figure = printed(figures["s2-size-0-1KiB-by-records-latency-mean-s"]())
    panels = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title() for panel in panels] == ["load", "get"]
    lines = [container.lines[0] for container in panels[0].containers]
    assert len(lines) == 2
    assert list(lines[0].get_xdata()) == [100, 1000, 10000]
    assert list(lines[0].get_ydata()) == pytest.approx([1e-4, 1e-3, 1e-2])
    assert "SIMULATED" in figure.legends[0].get_title().get_text()


def test_cells_with_the_papers_store_are_counted_by_figure_count_and_phase():
    """LevelDB is the paper's at gets of 1,000 records below 1 KiB, Berkeley DB in the others."""
    axes = {"size": "0-1KiB", "data": "random", "disturb": "none", "durability": "default"}
    rows = [
        replace(row, asked={**row.asked, "cell": {**axes, **row.cell}}, phase=phase)
        for row in some_rows(2).rows
        for phase in ("insert", "get")
        if row.phase == "get" and row.cell["records"] != "10000"
    ]
    study = study_table(some_rows().definition.best, rows, name="s2")
    counted = {(part.figure, part.place): part.by_phase for part in same_winners(study, winners("s2"))}
    for figure in ("2.2", "4.2"):
        places = [(("records", count), ("durability", "default")) for count in ("100", "1000")]
        few, many = (counted[figure, place] for place in places)
        assert few == {"insert": (0, 1), "get": (0, 1)}
        assert many == {"insert": (0, 1), "get": (1, 1)}
    assert len(counted) == 4, "the disturbed figures are of other records"
    best = list(csv.DictReader(io.StringIO(best_csv(study))))
    said = {(row["phase"], row["records"]): row["paper"] for row in best if row["measure"] == "latency_mean_s"}
    assert said["get", "1000"] == "2.2, 4.2 leveldb" and said["insert", "1000"] == "2.2, 4.2 berkeleydb"
    words = [column.header for column in same_winners_table(study).columns]
    assert words == ["figure", "here", "insert", "get", "all"]


def test_the_papers_stores_are_of_all_cells_that_it_measured():
    cells = Counter(winner.figure for winner in winners("s2"))
    assert cells == {"2.2": 170, "4.2": 170, "4.3": 170, "4.4": 170}
    assert {winner.system for winner in winners("s2")} == set(STORES[:-1])


GRID = {"down": "size", "across": ["records"], "also": "space_efficiency"}


def test_the_best_stores_are_a_grid_with_a_row_for_each_phase_and_size():
    study = some_rows(2, grid=GRID)
    figures = dict(grid_figures(study))
    assert list(figures) == ["s2-winners-latency-mean-s", "s2-winners-energy-j"]
    figure = printed(figures["s2-winners-latency-mean-s"]())
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["load  0-1KiB", "get  0-1KiB"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["100", "1000", "10000"]
    words = [text.get_text() for text in axes.texts]
    assert len(words) == 6 and all(text.startswith("leveldb\n") for text in words)
    assert "SIMULATED" in figure.legends[0].get_title().get_text()
    assert not list(grid_figures(some_rows())), "a study without a grid has none"


def test_time_and_joules_of_a_phase_are_curves_over_the_counts():
    rows = [
        replace(row, means={"mean_s": exact(float(row.cell["records"]), "s"), "phase_energy_j": exact(2.0, "J")})
        for row in some_rows().rows
    ]
    figures = dict(curve_figures(replace(some_rows(), rows=tuple(rows))))
    assert list(figures) == ["s2-size-0-1KiB-by-records-load", "s2-size-0-1KiB-by-records-get"]
    figure = printed(figures["s2-size-0-1KiB-by-records-get"]())
    assert [panel.get_title().rpartition(" ")[2] for panel in figure.axes] == ["[s]", "[J]"]
    (line, _) = (container.lines[0] for container in figure.axes[0].containers)
    assert list(line.get_ydata()) == [100, 1000, 10000]


@pytest.mark.parametrize(
    ("blocks", "differs"),
    [
        (1, {"latency_mean_s": "single run", "energy_j": "single run"}),
        (2, {"latency_mean_s": "yes", "energy_j": "no"}),
    ],
)
def test_the_best_of_each_cell_is_a_table_with_intervals(blocks, differs):
    """Single runs name no winner; repeated ones differ in what they differ in."""
    lines = list(csv.DictReader(io.StringIO(best_csv(some_rows(blocks)))))
    assert len(lines) == 2 * 3 * 2
    fastest = [line for line in lines if line["measure"] == "latency_mean_s"]
    assert {line["system"] for line in fastest} == {"leveldb"}
    for measure, verdict in differs.items():
        assert {line["differs_from_second"] for line in lines if line["measure"] == measure} == {verdict}
    assert {line["u"] != "" for line in lines if line["measure"] == "energy_j"} == {True}
    assert lines[0]["records"] == "100" and lines[0]["simulated"] == "SIMULATED"


@pytest.mark.rig
@pytest.mark.end_to_end
def test_every_store_has_joules_for_each_phase_and_the_best_is_named(tmp_path, monkeypatch, capsys):
    """And a bundle of the records makes the best stores, with the paper's beside them, again."""
    rig = ["--device", "rpi4", "--simulate", "--idle", "0.3", "--settle-limit", "1", "--repeats", "1"]
    cells = ["--only", "size=0-1KiB", "--only", "data=random", "--only", "disturb=none"]
    counts = ["--scale", "0.1", "--only", "records=100,1000"]
    assert main(["--study", "s2", *rig, *cells, *counts, "--out", str(tmp_path / "s2")]) in (0, 6)
    said = capsys.readouterr().out
    assert "answers    the same in all of berkeleydb, flatfolder, leveldb" in said
    assert "least latency mean, of single runs: no winner (SIMULATED)" in said
    assert "most space efficiency, of single runs: no winner (SIMULATED)" in said
    (study,) = read_studies(sorted(path.parent for path in (tmp_path / "s2").glob("*/run.json")))
    assert not study.faults
    assert {(row.system, row.phase) for row in study.rows} == {
        (store, phase) for store in STORES[:-1] for phase in ("load", "insert", "get", "update", "remove", "close")
    }
    for row in study.rows:
        records = int(row.cell["records"])
        wanted = {"load": records, "insert": min(100, 4 * records), "close": 0}.get(row.phase, 100)
        assert row.operations == wanted or (row.phase == "get" and row.operations > wanted)
        assert float(row.means.get("energy_j", 1)) > 0 and ("energy_j" in row.means or row.why)
    assert any("energy_j" in row.means for row in study.rows)  # the others are too short for it, and say so
    best = [winner for winner in best_systems(study) if winner.measure == "space_efficiency"]
    assert [winner.phase for winner in best] == ["close", "close"] and {winner.system for winner in best} <= set(
        STORES[:-1]
    )
    out, opened = tmp_path / "s2.zip", tmp_path / "opened"
    assert main(["runs", "bundle", str(tmp_path / "s2"), "--study", "s2", "--out", str(out)]) == 0
    assert main(["runs", "open", str(out), "--out", str(opened)]) == 0
    [again] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("draw again ")]
    assert (opened / "study/s2/winners.csv").read_bytes() == (ROOT / "studies/s2/winners.csv").read_bytes()
    monkeypatch.chdir(tmp_path)
    assert main(["runs", *again.split()[3:]]) == 0
    packed = {path.name: path.read_bytes() for path in (opened / "figures").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()} == packed
    lines = csv.DictReader(io.StringIO(packed["s2-best.csv"].decode()))
    assert {line["paper"] for line in lines if (line["phase"], line["records"]) == ("insert", "100")} == {
        "",
        "2.2, 4.2 berkeleydb",
    }
