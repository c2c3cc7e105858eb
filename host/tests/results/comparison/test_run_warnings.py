"""A warning of a run stands in everything that is made from it: comparison, page, tables, figures, methods."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from opjoule.base.notices import Notice, NoticeKind
from opjoule.cli.commands import main
from opjoule.pages.comparison import write_campaign_page
from opjoule.pages.plots import figures
from opjoule.results.comparison.index import gather
from opjoule.results.comparison.run_warnings import summary_of
from opjoule.results.comparison.sentences import SHORT as SHORT_RUNS
from opjoule.runs.record.result import stand_in
from opjoule.runs.record.run_record import RunRecord
from plotted_runs import make_campaign
from report_record import make_record, put_result

SHORT = Notice(NoticeKind.TOO_SHORT, "the run took 0.0109 s, 10 samples", "--seconds 30")
NOTE = Notice(NoticeKind.NEAR_RANGE, "bursts between two samples may have gone beyond the meter's range")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign in which LevelDB's runs on the SD card are too short and RocksDB's waited, each for another time.

    One of SQLite's has a note and a fault.
    """
    made = make_campaign(tmp_path_factory.mktemp("runs") / "campaign")
    for block in (1, 2):
        warn(made / f"leveldb-sd-{block}", SHORT)
        warn(made / f"rocksdb-sd-{block}", Notice(NoticeKind.WAITED, f"operations waited {30 + block} % of their time"))
    warn(made / "sqlite-sd-1", NOTE)
    record = RunRecord.open(made / "sqlite-sd-1")
    record.add_notices(Notice(NoticeKind.FAULT, "12 samples were lost"))
    record.finish("complete")
    return made


def warn(place: Path, notice: Notice) -> None:
    put_result(place, json.loads((place / "result.json").read_text()) | {"notices": [notice]})


def said(capsys: pytest.CaptureFixture[str], *argv: object, status: int = 0) -> str:
    capsys.readouterr()
    assert main([str(word) for word in argv]) == status
    return capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")


def test_a_comparison_of_runs_that_are_too_short_warns_first_and_concludes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, "compare", f"{folder}/leveldb-sd-*", f"{folder}/leveldb-ssd-usb3-*", "--by", "storage")
    assert text.index("TOO SHORT: leveldb-sd-1 and 1 more run: ") < text.index("6.")
    assert "p <" not in text.split("Intervals")[0] and "p =" not in text and "used the least" not in text


def test_what_stood_in_for_a_database_is_named_in_a_figures_one_line(tmp_path: Path) -> None:
    """Another run's note does not hide it."""
    made = make_campaign(tmp_path / "campaign")
    warn(made / "sqlite-sd-1", stand_in("FerretDB", "MongoDB"))
    warn(made / "sqlite-sd-2", NOTE)
    runs, _ = gather([str(made)])
    assert "stand-in for MongoDB: 1 of" in summary_of([runs]) and "near range: 1 of" in summary_of([runs])


def test_runs_that_are_too_short_are_judged_if_that_is_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("compare", f"{folder}/leveldb-sd-*", f"{folder}/leveldb-ssd-usb3-*", "--by", "storage")
    text = said(capsys, *argv, "--although", "short")
    assert "TOO SHORT" in text and "The SSD used the least" in text


def test_no_verdict_rests_on_runs_that_are_too_short(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = ([f"{folder}/leveldb-{medium}-{n}" for n in (1, 2)] for medium in ("sd", "ssd-usb3"))
    argv = ["compare", "--before", *before, "--after", *after, "--although", "storage"]
    assert main(argv) == 5 and "TOO SHORT" in capsys.readouterr().err


def test_warnings_are_in_the_comparisons_files(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = (
        "compare",
        folder,
        "--by",
        "storage",
        "--csv",
        tmp_path / "x.csv",
        "--html",
        tmp_path / "x.html",
        "--json",
    )
    comparison = json.loads(said(capsys, *argv))
    noted = {notice["kind"]: notice for notice in comparison["notices"]}
    assert noted[NoticeKind.TOO_SHORT]["runs"] == ["leveldb-sd-1", "leveldb-sd-2"]
    assert noted[NoticeKind.FAULT]["line"] == "12 samples were lost"
    marks = {(group["condition"]["db"], group["name"]): group["warnings"] for group in comparison["groups"]}
    assert marks["leveldb", "sd"] == ["too short"] and marks["sqlite", "sd"] == ["fault", "near range"]
    assert marks["rocksdb", "sd"] == ["waited"] and marks["rocksdb", "ssd-usb3"] == []
    assert noted[NoticeKind.WAITED]["runs"] == ["rocksdb-sd-1", "rocksdb-sd-2"] and len(noted) == 4
    rows = {
        (row["db"], row["a"], row["b"]): row
        for row in csv.DictReader((tmp_path / "x.csv").read_text().splitlines(keepends=True))
    }
    assert rows["leveldb", "sd", "ssd-usb3"]["warnings"] == "too short"
    assert rows["leveldb", "sd", "ssd-usb3"]["p_holm"] == ""
    assert rows["leveldb", "ssd-usb2", "ssd-usb3"]["warnings"] == ""
    page = (tmp_path / "x.html").read_text()
    assert page.index("TOO SHORT") < page.index("<h1") and SHORT_RUNS in page


@pytest.mark.slow
def test_a_campaigns_page_and_closing_table_show_the_warnings_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = write_campaign_page(folder).read_text()
    for words in ("TOO SHORT", "FAULT", "12 samples were lost", NOTE.line[1:]):
        assert page.index(words) < page.index("<h1"), words
    assert "<th>warnings" in page or ">warnings</th>" in page
    methods = page[page.index("How it was measured") :]
    assert "TOO SHORT: leveldb-sd-1" in methods and NOTE.line[1:] in methods
    text = said(capsys, "report", folder)
    assert text.index("WARNING  ") < text.index("used the least") < text.index("with a result")


def test_figures_tables_and_methods_show_the_warnings(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FIGURES", {"energy-power": figures.FIGURES["energy-power"]})
    text = said(capsys, "runs", "figures", folder, "--out", tmp_path)
    assert text.startswith("FAULT: sqlite-sd-1") and "TOO SHORT: leveldb-sd-1" in text
    rows = {
        (row["db"], row["storage"]): row
        for row in csv.DictReader((tmp_path / "table.csv").read_text().splitlines(keepends=True))
    }
    assert rows["LevelDB", "SD card"]["warnings"] == "too short"
    assert rows["RocksDB", "SD card"]["warnings"] == "waited"
    latex = (tmp_path / "table.tex").read_text()
    assert r"\textbf{WARNING" in latex and re.search(r"LevelDB & SD card &.*& too short \\\\", latex)
    assert "TOO SHORT: leveldb-sd-1" in (tmp_path / "methods.txt").read_text()
    drawn = (tmp_path / "energy-power.svg").read_text()
    assert "too short: 2 of 18 runs" in drawn and "fault: 1 of 18 runs" in drawn


def test_single_runs_are_reported_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for medium in ("sd", "emmc"):
        make_record(tmp_path / medium, storage=medium)
        put_result(tmp_path / medium, json.loads((tmp_path / medium / "result.json").read_text()) | {"repeats": 1})
    text = said(capsys, "compare", tmp_path, "--by", "storage")
    assert "ONE RUN: 2 of 2 cells" in text and "used the least" not in text
