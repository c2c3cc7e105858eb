"""report.html opened from disk in Chromium, on a SYNTHETIC record (report_record.py)."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from opjoule.pages.report.html import write_report
from page_looks import CUT, OVERLAPS, PANELS_OVER_EACH_OTHER, SMALL
from report_browser import ANSWER_LIMIT_S, FAINT, Browser
from report_record import GAPS_S, PHASES_S, SPIKE_A, make_record


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("record")
    make_record(directory)
    return write_report(directory)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with Browser(1280, 1400) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser, page: Path) -> Browser:
    """The page freshly loaded; what it complained of before is forgotten."""
    chromium.complaints.clear()
    chromium.open(page)
    return chromium


def view(browser: Browser) -> tuple[float, float]:
    start, end = browser.run("[timeChart.start, timeChart.end]")
    return float(start), float(end)


def place(browser: Browser, time_s: float) -> tuple[float, float]:
    """The point of the power panel at a time."""
    script = f"""(() => {{
        const plot = timeChart.panels[0].plot, box = plot.over.getBoundingClientRect();
        return [box.left + plot.valToPos({time_s}, "x"), box.top + box.height / 2];
    }})()"""
    x, y = browser.run(script)
    return float(x), float(y)


def drawn_power(browser: Browser) -> list[list[float | None]]:
    """Times, lowest, highest and mean of the cells that the power panel draws."""
    return [list(column) for column in browser.run("timeChart.panels[0].plot.data.map((column) => Array.from(column))")]


def test_page_opens_from_disk_without_an_error_or_a_request(browser: Browser) -> None:
    assert browser.run("document.querySelectorAll('#chart canvas').length") >= 4
    assert browser.run("getComputedStyle(document.querySelector('.still')).display") == "none"
    assert browser.complaints == []


@pytest.mark.parametrize("width", [390, 800, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_faint_small_or_over_something_else(browser: Browser, width: int, dark: bool) -> None:
    browser.resize(width)
    browser.emulate(dark=dark)
    browser.run("new Promise(requestAnimationFrame).then(() => 0)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    for script in (CUT, FAINT, OVERLAPS, PANELS_OVER_EACH_OTHER, SMALL):
        assert browser.run(script) == []
    browser.emulate()
    browser.send("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("width", [390, 800, 1000, 1280])
def test_no_number_of_the_headline_stands_alone_in_the_last_of_several_rows(browser: Browser, width: int) -> None:
    browser.resize(width)
    rows = browser.run("""[2, 3, 4, 5, 6, 7].map((count) => {
        const place = document.querySelector('.answers'), one = place.firstElementChild;
        place.replaceChildren(...Array.from({ length: count }, () => one.cloneNode(true)));
        const tops = [...place.children].map((each) => each.getBoundingClientRect().top);
        return [...new Set(tops)].map((top) => tops.filter((other) => other === top).length);
    })""")
    assert all(row[-1] > 1 or set(row) == {1} for row in rows), rows
    browser.send("Emulation.clearDeviceMetricsOverride")


def test_browser_would_report_an_error(browser: Browser) -> None:
    """The test above can fail: an exception and a request for the network are both seen."""
    browser.run("setTimeout(() => { throw new Error('seen') }); fetch('https://example.org/').catch(() => 0)")
    deadline_s = time.monotonic() + ANSWER_LIMIT_S
    for words in ("seen", "Content Security Policy"):
        while not any(words in complaint for complaint in browser.complaints):
            assert time.monotonic() < deadline_s, f"{words}: {browser.complaints}"
            browser.run("new Promise((resolve) => setTimeout(() => resolve(true), 50))")


def test_lost_stretches_stay_empty_and_are_marked(browser: Browser) -> None:
    for start_s, lost in GAPS_S:
        length_s = lost * 1.064e-3
        browser.run(f"timeChart.show({start_s - length_s}, {start_s + 2 * length_s})")
        times, _, _, mean = drawn_power(browser)
        # The last time only closes the last cell.
        empty = [time for time, value in zip(times[:-1], mean[:-1], strict=True) if value is None]
        assert len(empty) >= 1, f"gap at {start_s} s is bridged"
        assert all(abs(time - start_s) < length_s + 0.003 for time in empty if time is not None)
    gaps = browser.run("JSON.stringify([...timeChart.gaps.start])")
    assert json.loads(gaps) == pytest.approx([start_s + 0.001 for start_s, _ in GAPS_S], abs=0.002)


def pixels_of(browser: Browser, name: str, time_s: float) -> int:
    """Pixels of a colour of the style sheet in the power panel's column of pixels at a time."""
    return int(
        browser.run(f"""(() => {{
            const {{ ctx, bbox, valToPos }} = timeChart.panels[0].plot, x = Math.round(valToPos({time_s}, "x", true));
            const pixels = ctx.getImageData(x, bbox.top, 1, bbox.height).data;
            const wanted = drawing.colour("{name}").match(/[0-9a-f]{{2}}/g).map((part) => parseInt(part, 16));
            const near = (i) => wanted.every((value, k) => Math.abs(pixels[4 * i + k] - value) < 30);
            return [...Array(pixels.length / 4).keys()].filter(near).length;
        }})()""")
    )


def test_no_line_is_drawn_across_a_lost_stretch(browser: Browser) -> None:
    browser.run("timeChart.show(25.9, 27.1)")
    browser.run("new Promise(requestAnimationFrame).then(() => 0)")
    assert pixels_of(browser, "--power", 25.97) > 0
    assert pixels_of(browser, "--power", 27.03) > 0
    assert [pixels_of(browser, "--power", time_s) for time_s in (26.13, 26.53, 26.83)] == [0, 0, 0]
    assert pixels_of(browser, "--gap", 26.53) > 10, "the stretch is hatched"


def test_a_gap_of_three_samples_is_visible_with_the_whole_run_in_view(browser: Browser) -> None:
    """A mark of the gap's colour stands at its place although the gap is a tenth of a pixel wide."""
    marked = [pixels_of(browser, "--gap", 21.0025 + shift) for shift in (-0.02, 0.0, 0.02, 0.04)]
    assert max(marked) >= 3
    assert pixels_of(browser, "--gap", 19.0) == 0


def test_a_spike_of_one_sample_survives_the_whole_view(browser: Browser) -> None:
    times, _, highest, _ = drawn_power(browser)
    assert len(times) < 3000, "zoomed out, samples are joined"
    volts = round((5.1 - 0.05 * SPIKE_A) / 0.004) * 0.004
    assert max(value for value in highest if value is not None) == pytest.approx(SPIKE_A * volts, rel=1e-4)


def test_no_level_spreads_a_value_over_a_long_hole(browser: Browser) -> None:
    """4000 samples of 10 ms with a hole of 60 s in the middle: no level of the pyramid has a value inside it."""
    cells = browser.run("""(() => {
        const bounds = Float64Array.from({ length: 4002 }, (_, i) => (i <= 2002 ? i * 0.01 : (i - 1) * 0.01 + 60));
        const ones = Float64Array.from({ length: 4001 }, (_, i) => (i === 2002 ? NaN : 1));
        const pyramid = new drawing.Pyramid({ bounds, mean: { ones }, lowest: {}, highest: {}, samplesPerCell: 1 });
        return pyramid.levels.map((level) => {
            const index = drawing.indexAt(level.bounds, 50);
            return [level.columns.ones.mean[index], level.bounds[index + 1] - level.bounds[index]];
        });
    })()""")
    assert len(cells) >= 3
    for value, width_s in cells:
        assert value is None  # NaN
        assert width_s == pytest.approx(60.0)


def test_full_resolution_when_zoomed_in(browser: Browser) -> None:
    browser.run("timeChart.show(17.48, 17.52)")
    times, lowest, highest, mean = drawn_power(browser)
    assert mean == lowest == highest
    steps = [later - earlier for earlier, later in pairwise(times)]  # type: ignore[operator]
    assert steps == pytest.approx([1.064e-3] * len(steps), abs=2e-6)


def test_keys_zoom_move_and_return(browser: Browser) -> None:
    whole = view(browser)
    browser.run("document.querySelector('.panels').focus()")
    browser.key("+")
    zoomed = view(browser)
    assert zoomed[1] - zoomed[0] == pytest.approx((whole[1] - whole[0]) / 1.5)
    browser.key("ArrowRight")
    moved = view(browser)
    assert moved[0] > zoomed[0]
    assert moved[1] - moved[0] == pytest.approx(zoomed[1] - zoomed[0])
    browser.key("Home")
    assert view(browser)[0] == whole[0]
    browser.key("0")
    assert view(browser) == whole


def test_wheel_zooms_about_the_pointer_once_the_chart_has_the_focus(browser: Browser) -> None:
    whole = view(browser)
    x, y = place(browser, 10.0)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    browser.run("new Promise(requestAnimationFrame).then(() => 0)")
    assert view(browser) == whole, "without the focus the wheel scrolls the page"
    browser.run("scrollTo(0, 0); document.querySelector('.panels').focus({ preventScroll: true })")
    x, y = place(browser, 10.0)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    browser.wait_for(f"timeChart.end - timeChart.start < {whole[1] - whole[0]}")
    assert place(browser, 10.0)[0] == pytest.approx(x, abs=1.5)


def test_drag_selects_z_shows_the_selection_and_shift_drag_moves(browser: Browser) -> None:
    whole = view(browser)
    browser.drag(place(browser, 12.0), place(browser, 14.0))
    assert browser.run("timeChart.chosen") == pytest.approx([12.0, 14.0], abs=0.05)
    assert view(browser) == whole
    said = browser.run("document.querySelector('.in-view').textContent")
    energy = browser.run("timeChart.tracks.power.integral('power_w', ...timeChart.chosen).sum")
    assert said.startswith("From A, 1") and f"{energy:.4g}" in said
    browser.key("z")
    assert view(browser) == pytest.approx((12.0, 14.0), abs=0.05)
    browser.drag(place(browser, 13.0), place(browser, 13.5), shift=True)
    assert view(browser) == pytest.approx((11.5, 13.5), abs=0.05)
    browser.key("Escape")
    assert browser.run("timeChart.chosen") is None


def between_markers(browser: Browser) -> tuple[float, ...]:
    """Δt [s], ΔJ [J] and mean power [W] as the page says them."""
    said = browser.run("document.querySelector('.in-view').textContent")
    [numbers] = re.findall(r"Δt\s([0-9.]+)\ss: ΔJ\s([0-9.]+)\sJ .*mean ([0-9.]+) W", said)
    return tuple(map(float, numbers))


def true_between(browser: Browser, start_s: float, end_s: float) -> tuple[float, ...]:
    energy_j = browser.run(f"timeChart.tracks.power.integral('power_w', {start_s}, {end_s}).sum")
    return end_s - start_s, energy_j, energy_j / (end_s - start_s)


def test_two_markers_give_time_energy_and_mean_power_between_them_and_are_dragged(browser: Browser) -> None:
    browser.run("timeChart.select(12, 14)")
    assert between_markers(browser) == pytest.approx(true_between(browser, 12, 14), rel=1e-3)
    browser.drag(place(browser, 14.0), place(browser, 15.0))
    start_s, end_s = browser.run("timeChart.chosen")
    assert start_s == 12 and end_s == pytest.approx(15.0, abs=0.05)
    assert between_markers(browser) == pytest.approx(true_between(browser, start_s, end_s), rel=1e-3)
    browser.drag(place(browser, 12.0), place(browser, 16.0))
    assert browser.run("timeChart.chosen") == pytest.approx([end_s, 16.0], abs=0.05), "markers that cross change places"
    browser.key("Escape")


def test_the_buttons_set_the_markers_at_the_read_out_though_the_pointer_has_left_it(browser: Browser) -> None:
    browser.run("timeChart.select(null)")
    for label, time_s in (("A", 13.0), ("B", 15.5)):
        x, y = place(browser, time_s)
        browser.mouse("mouseMoved", x - 3, y)
        browser.mouse("mouseMoved", x, y)
        browser.wait_for(f"Math.abs(timeChart.pointed - {time_s}) < 0.05")
        button = f"[...document.querySelectorAll('.tools button')].find((each) => each.textContent === '{label}')"
        middle = browser.run(
            f"(({{ x, y, width, height }}) => [x + width / 2, y + height / 2])({button}.getBoundingClientRect())"
        )
        browser.mouse("mouseMoved", *middle)
        browser.run(f"{button}.click()")
    assert browser.run("timeChart.chosen") == pytest.approx([13.0, 15.5], abs=0.05)
    browser.run("document.querySelector('.panels').focus()")
    for _ in range(3):
        browser.key("ArrowRight", shift=True)
    browser.key("b")
    assert browser.run("timeChart.chosen[1]") == pytest.approx(browser.run("timeChart.markedTime()"))
    browser.key("Escape")


def test_a_finger_moves_a_marker(browser: Browser) -> None:
    browser.run("timeChart.select(12, 14)")
    browser.run("""((from, to) => {
        const { stack: target, plot } = timeChart, { left } = plot.over.getBoundingClientRect();
        const finger = (time) => new Touch({ identifier: 1, target, clientX: left + plot.valToPos(time, "x") });
        const touch = (kind, time) => target.dispatchEvent(new TouchEvent(kind, {
            cancelable: true, touches: time === null ? [] : [finger(time)] }));
        touch("touchstart", from); touch("touchmove", to); touch("touchend", null);
    })(14.05, 17)""")
    assert browser.run("timeChart.chosen") == pytest.approx([12.0, 17.0], abs=0.05)
    browser.run("timeChart.select(null)")


def test_a_battery_and_a_rate_give_hours_and_watt_hours_a_million_operations(browser: Browser) -> None:
    idle_w, operation_j = browser.run("(({ idleW, operationJ }) => [+idleW, +operationJ])(battery.dataset)")
    browser.run("""(() => {
        Object.assign(battery.dataset, { idleUW: 0, operationUJ: 0 });
        battery.elements.rate_per_s.value = "200";
        battery.elements.battery_wh.value = "37,5";
        battery.dispatchEvent(new Event("input"));
    })()""")
    power_w = idle_w + 200 * operation_j
    said = re.findall(r"([0-9.]+) to ([0-9.]+)\s(Wh|h)", browser.run("battery.querySelector('output').textContent"))
    assert [unit for *_, unit in said] == ["Wh", "h"]
    for (low, high, _), value in zip(said, (power_w / 200 * 1e6 / 3600, 37.5 / power_w), strict=True):
        assert float(low) == float(high) == pytest.approx(value, rel=1e-3)
    browser.run(
        "(() => { Object.assign(battery.dataset, { idleUW: 0.1 }); battery.dispatchEvent(new Event('input')); })()"
    )
    wider = re.findall(r"([0-9.]+) to ([0-9.]+)\sh", browser.run("battery.querySelector('output').textContent"))
    [(low, high)] = wider
    assert float(low) == pytest.approx(37.5 / (power_w + 0.1), rel=5e-3)
    assert float(high) == pytest.approx(37.5 / (power_w - 0.1), rel=5e-3)


def test_the_selection_is_saved_as_csv_with_its_joules(browser: Browser) -> None:
    browser.run("timeChart.select(12, 14)")
    browser.run("""URL.createObjectURL = (blob) => { window.saved = blob; return "#"; };
        HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }""")
    browser.run("[...document.querySelectorAll('.tools button')].find((each) => each.textContent === 'CSV').click()")
    assert browser.run("savedAs") == "power-12.000000-14.000000-SIMULATED.csv"
    rows = list(csv.DictReader(browser.run("saved.text()").splitlines()))
    assert float(rows[0]["start_s"]) <= 12.0 < float(rows[0]["end_s"])
    assert float(rows[-1]["start_s"]) < 14.0 <= float(rows[-1]["end_s"])
    energy_j = sum(
        float(row["mean_power_w"]) * (min(float(row["end_s"]), 14.0) - max(float(row["start_s"]), 12.0))
        for row in rows
        if row["mean_power_w"]
    )
    assert energy_j == pytest.approx(browser.run("timeChart.tracks.power.integral('power_w', 12, 14).sum"))


def test_a_selection_is_made_by_keys_alone_and_the_read_out_stays_in_sight(browser: Browser) -> None:
    browser.run("scrollTo(0, 0); document.querySelector('.panels').focus()")
    browser.key("ArrowRight", shift=True)
    browser.key("[")
    start = browser.run("timeChart.cursorTime()")
    for _ in range(5):
        browser.key("ArrowRight", shift=True)
    browser.key("]")
    assert browser.run("timeChart.chosen") == pytest.approx([start, browser.run("timeChart.cursorTime()")])
    browser.resize(1280, 500)
    browser.run("document.querySelector('.panels').lastElementChild.scrollIntoView({ block: 'end' })")
    top = browser.run("document.querySelector('.readout').getBoundingClientRect().top")
    browser.send("Emulation.clearDeviceMetricsOverride")
    assert 0 <= top < 400


def test_every_panel_shows_the_same_time(browser: Browser) -> None:
    browser.run("document.querySelector('button.phase.run').click()")
    run = next((start, end) for name, start, end in PHASES_S if name == "run")
    start, end = view(browser)
    assert start < run[0] + 0.01 < run[1] < end
    ranges = browser.run("timeChart.panels.map(({ plot }) => [plot.scales.x.min, plot.scales.x.max])")
    assert len(ranges) >= 4
    assert all(shown == [start, end] for shown in ranges)
    lefts = browser.run("timeChart.panels.map(({ plot }) => [plot.bbox.left, plot.bbox.width])")
    assert all(left == lefts[0] for left in lefts), "the panels' time axes must lie above each other"


def test_read_out_names_watts_amperes_volts_and_operations(browser: Browser) -> None:
    browser.run("timeChart.show(14, 14.1)")
    x, y = place(browser, 14.05)
    browser.mouse("mouseMoved", x - 5, y)
    browser.mouse("mouseMoved", x, y)
    browser.wait_for("document.querySelector('.readout').textContent.includes('power')")
    said = browser.run("document.querySelector('.readout').textContent")
    for part in ("phaserun", "W", "A", "V", "operations", "/s"):
        assert part in said
    cell = browser.run("drawing.indexAt(timeChart.tracks.power.levels[0].bounds, 14.05)")
    watts = browser.run(f"timeChart.tracks.power.levels[0].columns.power_w.mean[{cell}]")
    shown = float(said.split("power")[1].split("\N{NO-BREAK SPACE}W")[0])
    assert shown == pytest.approx(watts, abs=0.06)


def test_view_sentence_gives_energy_and_names_the_lost_time(browser: Browser) -> None:
    browser.run("timeChart.show(26, 27)")
    said = browser.run("document.querySelector('.in-view').textContent")
    assert "without samples" in said
    browser.run("timeChart.show(13, 16)")
    assert "without samples" not in browser.run("document.querySelector('.in-view').textContent")
    energy = browser.run("timeChart.tracks.power.integral('power_w', 6.5, 8.5)")
    assert energy["known"] == pytest.approx(2.0)
    assert energy["sum"] == pytest.approx(2 * 3.09, rel=0.01)


def test_dark_theme_redraws_in_its_own_colours(browser: Browser) -> None:
    light = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.emulate(dark=True)
    assert browser.run("getComputedStyle(document.body).backgroundColor") != light
    browser.emulate(dark=False)
    assert browser.complaints == []


def test_print_shows_the_still_picture(browser: Browser) -> None:
    browser.emulate(media="print")
    assert browser.run("getComputedStyle(document.getElementById('chart')).display") == "none"
    assert browser.run("getComputedStyle(document.querySelector('.still')).display") == "block"
    browser.emulate()


def test_partial_record_opens_with_its_reason(chromium: Browser, tmp_path: Path) -> None:
    make_record(tmp_path, status="partial")
    chromium.complaints.clear()
    chromium.open(write_report(tmp_path))
    said = chromium.run("document.querySelector('.banners').textContent")
    assert "PARTIAL" in said
    assert "cable pulled" in said
    assert chromium.complaints == []
