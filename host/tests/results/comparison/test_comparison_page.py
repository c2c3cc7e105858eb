"""The page of a comparison and of a campaign: it says what the records say, and opens from disk in Chromium."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from opjoule.base.coverage import T_95
from opjoule.base.units import Quantity, exact
from opjoule.cli.commands import main
from opjoule.energy.comparison import holm, ratio_limits
from opjoule.energy.repeats import student_probability, student_t_of
from opjoule.pages.comparison import write_campaign_page
from opjoule.pages.drawing.drawing import Mark, Ratio, Scale
from opjoule.pages.drawing.shown import ratio_strip
from opjoule.pages.plots.cells.course import drift_of
from opjoule.results.comparison.cell import plotted
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.conclusion import answers_of, notes, print_comparison
from opjoule.results.comparison.contrasts import Question, compare, judged_together
from opjoule.results.comparison.index import as_recorded, gather, means_of, read_index, with_result, write_index
from opjoule.runs.record.run_record import RunRecord
from page_looks import CUT, OVERLAPS, SMALL
from plotted_runs import ABOVE_IDLE, DATABASES, MEDIA, UNTOLD, make_campaign, result, scaled
from report_browser import FAINT, Browser
from report_record import put_result

ARROWS_OVER_TEXT = """[...document.querySelectorAll('td .strip')].flatMap((strip) => {
    const arrows = [["left", "\u2190"], ["right", "\u2192"]].map(([side, arrow]) => {
        const made = document.createElement('span');
        made.className = `beyond ${side}`;
        made.textContent = arrow;
        strip.append(made);
        return made.getBoundingClientRect();
    });
    return [...strip.closest('tr').children].filter((cell) => !cell.contains(strip)).filter((cell) => {
        const words = document.createRange();
        words.selectNodeContents(cell);
        const { left, right } = words.getBoundingClientRect();
        return arrows.some((arrow) => arrow.left < right && left < arrow.right);
    }).map((cell) => cell.textContent);
})"""
"""Texts beside a strip that an arrow at one of its ends would cover."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_campaign(tmp_path_factory.mktemp("runs") / "three & <engines>", drift_per_run=0.002)
    write_campaign_page(made)
    return made


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(1280, 900) as made:
        yield made


@pytest.mark.parametrize("width", [360, 390, 800, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_page_opens_without_an_error_or_a_request_and_nothing_is_cut(
    browser: Browser, folder: Path, width: int, dark: bool
) -> None:
    browser.complaints.clear()
    browser.resize(width)
    browser.emulate(dark=dark)
    browser.open(folder / "report.html")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(CUT) == []
    assert browser.run(OVERLAPS) == []
    assert browser.run(FAINT) == []
    assert browser.run(SMALL) == []
    assert browser.complaints == []


def test_every_part_can_be_reached_by_keyboard_and_has_a_name(browser: Browser, folder: Path) -> None:
    browser.resize(1280)
    browser.open(folder / "report.html")
    assert browser.run("[...document.querySelectorAll('svg[role=img]')].every((each) => each.ariaLabel)")
    assert browser.run(
        "[...document.querySelectorAll('.scroll')].every((each) => each.tabIndex === 0 && each.ariaLabel)"
    )
    assert browser.run("[...document.querySelectorAll('table')].every((each) => each.caption.textContent)")
    browser.run("document.querySelector('summary').focus()")
    browser.key(" ")
    assert browser.run("document.querySelector('details').open")


def test_a_cut_off_run_that_was_measured_again_counts_nowhere(folder: Path, tmp_path: Path) -> None:
    """Its raw files may tell a result later; the cell keeps the mean of the runs that came to their end."""
    runs = copied(folder, tmp_path)
    before, _ = gather([str(runs)])
    cut_off = RunRecord.open(runs / "failed")
    put_result(runs / "failed", scaled(result(DATABASES[-1], MEDIA[-1]), 5.0))
    cut_off.finish("partial")
    write_index(runs, [as_recorded(runs, run) for run in read_index(runs)[0]], simulated=True)
    after, left_out = gather([str(runs)])
    assert [run.place for run in after] == [run.place for run in before]
    assert any(line.endswith("sqlite-ssd-usb3-1") for line in left_out)
    index, _ = read_index(runs)
    assert any(run.folder == "failed" and run.run for run in index), "its record has a result"
    assert means_of(index, "sqlite ssd-usb3") == means_of(read_index(folder)[0], "sqlite ssd-usb3")
    assert ">PARTIAL<" not in write_campaign_page(runs).read_text()


def test_links_lead_to_the_runs_own_pages(browser: Browser, folder: Path, page: str) -> None:
    links = {unquote(href) for href in re.findall(r'href="([^"]+)"', page)}
    assert links == {f"{run.folder}/report.html" for run in read_index(folder)[0]}
    browser.open(folder / "report.html")
    address = browser.run("document.querySelector('td a').href")
    browser.visit(address, "document.title === 'its own page'")


def test_simulated_stands_in_every_heading_and_table_of_numbers(page: str) -> None:
    titles = re.findall(r"<h[12][^>]*>([^<]+)</h[12]>", page)
    plain = {"Further notes", "Every run", "How it was measured"}
    assert len(titles) > 6 and all("SIMULATED" in title for title in titles if title not in plain)
    assert all("SIMULATED" in caption for caption in re.findall(r'class="strips"><caption><span>([^<]+)', page))


def test_conclusions_failures_and_what_was_measured_again_are_said(folder: Path, page: str) -> None:
    top = page[page.index("<main>") : page.index("<section")]
    first, second, *more = re.findall(r"<li>([^<]+)", top)
    answers = answers_of(with_result(read_index(folder)[0]))
    assert [first, second, *more] == [escape(line) for line in answers.conclusions]
    assert top.index("<h1") < top.index(first) < top.index("database: LevelDB"), "the answer comes first"
    assert "SD card, SSD on USB 2, SSD on USB 3; 2 blocks" in top and "18 of 18 cells" in top
    [(name, left_out)] = [line.split(": ", 1) for line in notes(read_index(folder)[0])]
    assert name == "failed (block 1, sqlite ssd-usb3)" and "the meter stopped" in left_out
    assert left_out.endswith("sqlite-ssd-usb3-1") and f"{name}: {left_out}" in page


def test_the_end_of_a_campaign_is_worded_as_in_the_golden_screen(
    folder: Path, capsys: pytest.CaptureFixture[str], golden
) -> None:
    print_comparison(folder)
    golden("campaign-conclusion", capsys.readouterr().out, {folder: "DIR"})


def test_the_end_of_a_campaign_shows_what_kinds_cost_all_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With few conditions in the table of means, with ratios; with many in a table of its own."""
    print_comparison(folder)
    text = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
    told = text.split("all told (SIMULATED), 95 %")[1]
    assert re.search(r"leveldb sd +2 of 2 +1\.200 ± 0\.024 mJ +9\.00 ± 0\.18 mJ", told)
    assert re.search(r"sqlite sd +2 of 2 +not identifiable +27\.00 ± 0\.54 mJ", told)
    runs = copied(folder, tmp_path)
    few = [run for run in read_index(runs)[0] if run.name in ("leveldb sd", "rocksdb sd")]
    write_index(runs, few, simulated=True)
    print_comparison(runs)
    text = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(r"update +9\.00 ± 0\.18 mJ +18\.00 ± 0\.36 mJ", text)
    assert re.search(r"ratios by db .*\n.*read +update *\n sd +leveldb / rocksdb +0\.5", text)


def test_both_axes_are_judged_together(folder: Path) -> None:
    runs, _ = gather([str(folder)])
    alone = [compare(runs, Question((axis,))) for axis in ("db", "storage")]
    together = judged_together(alone)
    wanted = holm([contrast.probability for of in alone for contrast in of.answering])
    adjusted = [contrast.adjusted for of in together for contrast in of.answering]
    assert adjusted == pytest.approx(wanted) and len(adjusted) == 2 * 18
    assert {contrast.judged for of in together for contrast in of.answering} == {2 * 18}


def test_the_thin_interval_is_bonferronis() -> None:
    for freedom, t in T_95.items():
        assert student_t_of(0.0455, freedom) == pytest.approx(t, rel=0.01)
        assert student_probability(student_t_of(0.0455 / 9, freedom), freedom) == pytest.approx(0.0455 / 9, rel=1e-3)
    a, b = (exact(value, "J").with_spread(0.01, 4.0, 5) for value in (2.0, 1.0))
    alone, together = ratio_limits(a, b), ratio_limits(a, b, 0.0455 / 9)
    assert ratio_limits(a, b, 0.0455) == pytest.approx(alone, rel=0.01)
    assert together[1] - together[0] > 1.5 * (alone[1] - alone[0])


def test_intervals_of_all_together_hold_all_true_ratios_as_often_as_they_say() -> None:
    draw, held, alone = np.random.default_rng(7), 0, 0
    for _ in range(150):
        sides = [
            Quantity.mean([Quantity.from_standard(float(value), 0.0, "J") for value in draw.normal(1.0, 0.02, 5)])
            for _ in range(5)
        ]
        pairs = [(a, b) for number, a in enumerate(sides) for b in sides[:number]]
        together = [ratio_limits(a, b, 0.0455 / len(pairs)) for a, b in pairs]
        held += all(low <= 1 <= high for low, high in together)
        alone += all(low <= 1 <= high for low, high in (ratio_limits(a, b) for a, b in pairs))
    assert held / 150 > 0.92
    assert alone / 150 < 0.87


def copied(folder: Path, target: Path) -> Path:
    """The campaign without its traces, to be changed."""
    return shutil.copytree(folder, target / "runs", ignore=shutil.ignore_patterns("*.parquet"))


def places(strip: str, name: str) -> list[tuple[float, float]]:
    """(left, width) in per cent of the parts of a class."""
    parts = re.findall(rf'class="{name}" style="left:([0-9.]+)%(?:;width:([0-9.]+)%)?', strip)
    return [(float(left), float(width or 0)) for left, width in parts]


def test_a_strip_stands_where_its_numbers_say() -> None:
    axis = Scale(0.5, 8.0, logarithmic=True)
    ratio = Ratio("", 2.0, (1.0, 3.0), (0.1, 3.9), Mark.DIFFERENT, 0.01, "")
    strip = ElementTree.tostring(ratio_strip(axis, ratio, 2.0), encoding="unicode")
    assert places(strip, "reference") == [(25.0, 0)] and places(strip, "mark") == [(50.0, 0)]
    [(left, width)] = places(strip, "interval")
    assert (left, left + width) == pytest.approx((25.0, 100 * np.log(6) / np.log(16)), abs=0.02)
    assert 'class="beyond left"' in strip and 'class="beyond right"' not in strip
    unjudged = replace(ratio, mark=Mark.OPEN, together=None)
    hollow = ElementTree.tostring(ratio_strip(axis, unjudged, 2.0), encoding="unicode")
    assert 'class="mark hollow single"' in hollow and "together" not in hollow


def test_bars_begin_at_zero_and_reach_their_value(folder: Path, page: str) -> None:
    cells = plotted(gather([str(folder)])[0], words=ComparedRun.value)
    table = page[page.index("bars with interval") :]
    bars = re.findall(r'class="filled [^"]*" style="left:([0-9.]+)%;width:([0-9.]+)%', table)[: len(cells.cells)]
    values = [cell.number(ABOVE_IDLE).value for cell in cells.cells]
    widths = [float(width) for _, width in bars]
    assert {left for left, _ in bars} == {"0.00"}
    assert np.array(widths) / widths[0] == pytest.approx(np.array(values) / values[0], rel=0.02, abs=0.02)


def test_what_kinds_cost_all_told_has_panels_and_ratios_in_the_same_order(page: str) -> None:
    ratios, panels = page[page.index(">What differs") :].split(">Every cell", maxsplit=1)
    cells: dict[str, list[str]] = {}
    for words in (
        "energy above idle per operation",
        "energy all told per read",
        "energy all told per update",
    ):
        panel = next(of for of in panels.split("</table>") if f"{words}: bars with interval" in of)
        cells[words] = re.findall(r"<tr><th[^>]*>([^<]+)", panel)[-9:]
        assert f"{words}: ratios by database" in ratios and f"{words}: ratios by medium" in ratios
        assert panel.count("not identifiable") == (3 if words.endswith("read") else 0)
        assert panel.count(f'title="{UNTOLD}"') == (3 if words.endswith("read") else 0)
    assert len({tuple(order) for order in cells.values()}) == 1 and len(set(cells[words])) == 9
    update = ratios[ratios.index("energy all told per update: ratios by medium") :].split("</table>")[0]
    assert update.count("not judged") == 9 and "6.00 (5.83 to 6.17)" in update
    assert "sqlite sd (2 of 2 runs)" in page


def test_a_drift_is_found_and_falls_on_nothing_that_was_measured_in_turn(folder: Path, page: str) -> None:
    """Every run is 0.2 % of the first more than the one before, a minute later."""
    cells = plotted(gather([str(folder)])[0])
    drift = drift_of(cells, ABOVE_IDLE)
    assert drift.length_s == 17 * 60
    assert drift.whole.value == pytest.approx(17 * 0.002, rel=0.03)
    assert drift.whole.u < 0.005
    sd_cells = [number for number, cell in enumerate(cells.cells) if cell.values["storage"] == "SD card"]
    assert drift.time_s(sd_cells) == pytest.approx(17 * 30, rel=0.01)
    assert drift.shift(sd_cells).value == pytest.approx(0.0, abs=1e-9), "forwards, then backwards"
    assert f"{100 * drift.whole.value:.9f}"[:6] in page and not drift.whole.covers(0.0)


def test_what_was_measured_last_alone_carries_the_drift(folder: Path, tmp_path: Path) -> None:
    runs = copied(folder, tmp_path)
    for medium in MEDIA[1:]:
        for database in DATABASES:
            (runs / f"{database}-{medium}-1" / "result.json").unlink()
    cells = plotted(gather([str(runs)])[0])
    drift = drift_of(cells, ABOVE_IDLE)
    late = [number for number, cell in enumerate(cells.cells) if cell.values["storage"] != "SD card"]
    assert drift.shift(late).value > 0.003


def test_an_axis_that_is_not_comparable_is_reported_and_costs_the_others_nothing(folder: Path, tmp_path: Path) -> None:
    runs = copied(folder, tmp_path)
    for database in DATABASES:
        for block in (1, 2):
            record = RunRecord.open(runs / f"{database}-sd-{block}")
            record.update(found={"commit": "another"})
            record.finish("complete")
    page = write_campaign_page(runs).read_text()
    assert "by storage: " in page and "opjoule: commit" in page
    assert "ratios by database" in page and "ratios by medium" not in page
    assert "bars with interval" not in page and "Energy against time" not in page, "refused in words, and not drawn"
    assert page.count("LevelDB") > 3, "the means of its cells"


def test_long_tables_are_folded(folder: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ratios by database" in page and "<summary>18 rows" not in page
    monkeypatch.setattr("opjoule.pages.comparison.ROWS_MAX", 8)
    long = write_campaign_page(folder).read_text()
    assert long.count("<summary>9 rows: ") >= 2 and "<summary>19 rows: every run" in long
    (folder / "report.html").write_text(page)


def test_the_page_of_a_running_campaign_says_its_age_and_renews_itself(
    folder: Path, page: str, browser: Browser
) -> None:
    assert 'id="written"' not in page and "<script>" not in page
    renewed = write_campaign_page(folder, goes_on=True)
    renewed.write_text(renewed.read_text().replace("RELOAD_MS = 30000", "RELOAD_MS = 1500"))
    browser.open(renewed)
    browser.wait_for("/^[0-9]+ s ago$/.test(document.querySelector('#written')?.textContent)")
    browser.run("window.isFirst = true")
    browser.wait_for("!window.isFirst && !!document.querySelector('#written')")
    renewed.write_text(page)


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_a_drawing_fills_the_width(browser: Browser, folder: Path, width: int) -> None:
    browser.resize(width)
    browser.open(folder / "report.html")
    shares = browser.run("""[...document.querySelectorAll('svg.drawing')].map((drawing) =>
        drawing.getBoundingClientRect().width / drawing.parentElement.clientWidth)""")
    assert len(shares) >= 2 and min(shares) > 0.9


@pytest.mark.parametrize("width", [360, 500, 800, 1280])
def test_no_arrow_beyond_a_strip_is_drawn_over_a_text(browser: Browser, folder: Path, width: int) -> None:
    browser.resize(width)
    browser.open(folder / "report.html")
    assert browser.run(ARROWS_OVER_TEXT) == []


def test_without_any_result_there_is_a_page_that_says_so(folder: Path, tmp_path: Path) -> None:
    runs = copied(folder, tmp_path)
    for place in runs.glob("*/result.json"):
        place.unlink()
    page = write_campaign_page(runs).read_text()
    assert "INCOMPLETE" in page and "0 of 18" in page and "<svg" not in page


def test_compare_writes_its_page_with_links_from_where_it_lies(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], browser: Browser
) -> None:
    runs = copied(folder, tmp_path)
    (tmp_path / "pages").mkdir()
    target = tmp_path / "pages" / "media.html"
    argv = ["compare", f"{runs}/*-sd-*", f"{runs}/*-usb2-*", "--by", "storage", "--although", "db"]
    assert main([*argv, "--html", str(target)]) == 0
    printed = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
    page = target.read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert 'href="../runs/leveldb-sd-1/report.html"' in page and page.count("href=") == 2 * 12
    assert "db leveldb / rocksdb / sqlite" in page
    said = next(line for line in printed.splitlines() if "used the least" in line)
    assert said in page
    browser.complaints.clear()
    browser.open(target)
    assert browser.complaints == []


def test_a_change_has_its_verdict_on_top(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = copied(folder, tmp_path)
    before, after = ([str(runs / f"leveldb-{medium}-{block}") for block in (1, 2)] for medium in MEDIA[:2])
    argv = ["compare", "--before", *before, "--after", *after, "--although", "storage"]
    main([*argv, "--html", str(tmp_path / "x.html")])
    assert "verdict: better" in capsys.readouterr().out
    assert "Verdict: better" in (tmp_path / "x.html").read_text()
