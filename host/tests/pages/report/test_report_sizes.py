"""report.html at the width of a phone, a tablet and a desk, in both themes, on a SYNTHETIC record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opjoule.pages.report.html import write_report
from report_browser import Browser
from report_record import RESULT, make_record, put_result

PHONE = 390

# Text that reaches beyond the view, or beyond the box that it stands in, and stands in nothing that scrolls.
CUT_TEXT = """(() => {
    const cut = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode, parent = node.parentElement;
        if (!node.data.trim() || parent.closest("script, style, .scroll, .phases, .still")) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const { left, right, width } of range.getClientRects()) {
            const box = parent.closest("section, header, .tiles div, .readout div, button")?.getBoundingClientRect();
            const low = Math.max(box?.left ?? 0, 0), high = Math.min(box?.right ?? innerWidth, innerWidth);
            if (width > 0 && (left < low - 1 || right > high + 1)) cut.push(node.data);
        }
    }
    return cut;
})()"""

# Numbers of the axes that need more room than there is: left of the value axis, right of the time axis.
CUT_TICKS = """timeChart.panels.flatMap(({ plot }) => {
    const { ctx } = plot;
    ctx.save();
    const [times, values] = plot.axes;
    ctx.font = times.font[0];
    const wide = (text) => ctx.measureText(text ?? "").width / devicePixelRatio;
    const right = Math.min(plot.width, timeChart.stack.clientWidth);
    const room = plot.bbox.left / devicePixelRatio - values.gap - (values.label ? 20 : 0);
    const cut = values._values.filter((text) => wide(text) > room);
    times._values.forEach((text, i) => {
        const middle = plot.bbox.left / devicePixelRatio + plot.valToPos(times._splits[i], "x");
        if (middle + wide(text) / 2 > right) cut.push(text);
    });
    ctx.restore();
    return cut;
})"""


SHOWN_TICKS = """timeChart.panels.filter(({ lanes }) => !lanes).flatMap(({ plot }) =>
    plot.axes.flatMap((axis) => axis._splits.map((at, i) => [at, axis._values[i]])))"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("record")
    make_record(directory)
    listed = {
        "unit": "s",
        "n": 3,
        "values": [0.001, 0.002, 0.003],
        "mean": 0.002,
        "standard_deviation": 0.001,
    }
    columns = ("duration_s", "settle_s", "latency_s.p99", "power_w", "idle_power_w", "throughput_per_s")
    put_result(directory, {**RESULT, "by_repeat": dict.fromkeys(columns, listed)})
    return write_report(directory)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with Browser(1280, 900) as browser:
        yield browser


@pytest.fixture(params=[PHONE, 800, 1280])
def sized(request: pytest.FixtureRequest, chromium: Browser, page: Path) -> Browser:
    return opened(chromium, page, request.param)


@pytest.fixture
def phone(chromium: Browser, page: Path) -> Browser:
    return opened(chromium, page, PHONE)


def opened(browser: Browser, page: Path, width: int) -> Browser:
    browser.complaints.clear()
    browser.resize(width)
    browser.open(page)
    browser.run("document.querySelector('.readout').scrollIntoView(); new Promise(requestAnimationFrame).then(() => 0)")
    return browser


def read_out(browser: Browser) -> dict[str, str]:
    """What the read-out says, by name of the entry; the last one of a name."""
    pairs: list[list[str]] = browser.run(
        "[...document.querySelectorAll('.readout div')].map((one) => [...one.children].map((part) => part.textContent))"
    )
    return {name: text.replace("\N{NO-BREAK SPACE}", " ") for name, text in pairs}


def lines(browser: Browser) -> list[Any]:
    """Where each panel's line of the read-out stands [pixels]; None where it is hidden."""
    return list(browser.run("timeChart.panels.map(({ plot }) => (plot.cursor.left < 0 ? null : plot.cursor.left))"))


def place(browser: Browser, time_s: float, panel: int = 0) -> tuple[float, float]:
    x, y = browser.run(f"""(() => {{
        const {{ plot }} = timeChart.panels[{panel}], box = plot.over.getBoundingClientRect();
        return [box.left + plot.valToPos({time_s}, "x"), box.top + box.height / 2];
    }})()""")
    return float(x), float(y)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_cut_and_the_page_does_not_scroll_sideways(sized: Browser, dark: bool) -> None:
    sized.emulate(dark=dark)
    try:
        sized.run("timeChart.placeCursor(100)")
        assert sized.run("document.documentElement.scrollWidth - innerWidth") == 0
        assert sized.run(CUT_TEXT) == []
        for start, end in ((0, 31), (14, 14.002), (17.4, 17.6), (30.9, 31)):
            sized.run(f"timeChart.show({start}, {end}); new Promise(requestAnimationFrame).then(() => 0)")
            assert sized.run(CUT_TICKS) == []
        assert sized.complaints == []
    finally:
        sized.emulate()


def test_cut_text_would_be_found(phone: Browser) -> None:
    """The test above can fail."""
    phone.run("title = document.querySelector('h1'); title.style.whiteSpace = 'nowrap'")
    phone.run("title.textContent += 'x'.repeat(99)")
    assert len(phone.run(CUT_TEXT)) == 1
    phone.run("timeChart.panels[0].plot.axes[1]._values = ['1234.567890']")
    assert phone.run(CUT_TICKS) == ["1234.567890"]
    phone.run("times = timeChart.panels[1].plot.axes[0]; times._values = times._splits.map(() => '9'.repeat(20))")
    assert "9" * 20 in phone.run(CUT_TICKS)


def test_ticks_say_the_very_values_that_they_stand_at(phone: Browser) -> None:
    for start, end in ((0, 31), (12.0, 12.9), (14, 14.01), (30.9, 31)):
        phone.run(f"timeChart.show({start}, {end}); new Promise(requestAnimationFrame).then(() => 0)")
        shown = phone.run(SHOWN_TICKS)
        assert len(shown) > 10
        for value, text in shown:
            if text:
                number = float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)
                assert number == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_ticks_of_a_quarter_are_not_rounded(phone: Browser) -> None:
    for values, step, said in (
        ([4, 4.25, 4.5, 4.75], 0.25, ["4.00", "4.25", "4.50", "4.75"]),
        ([0, 2500, 5000, 12500], 2500, ["0", "2.5k", "5.0k", "12.5k"]),
    ):
        assert phone.run(f"timeChart.plot.axes[1].values(timeChart.plot, {values}, 1, 0, {step})") == said


def test_the_read_out_follows_mouse_and_keys_on_every_panel(chromium: Browser, page: Path) -> None:
    browser = opened(chromium, page, 1280)
    assert read_out(browser)["power"].startswith("-")
    before = browser.run("document.querySelector('.readout').offsetHeight")
    browser.mouse("mouseMoved", *place(browser, 13.0, panel=1))
    browser.mouse("mouseMoved", *place(browser, 14.0, panel=1))
    browser.wait_for("document.querySelector('.readout').textContent.includes('run')")
    assert float(read_out(browser)["time"].removesuffix(" s")) == pytest.approx(14.0, abs=0.05)
    assert browser.run("document.querySelector('.readout').offsetHeight") == before, "the chart moved"
    at = lines(browser)
    assert len(at) >= 4
    browser.run("document.querySelector('.panels').focus({ preventScroll: true })")
    for _ in range(3):
        browser.key("ArrowRight", shift=True)
    assert lines(browser) == [pytest.approx(at[0] + 12)] * len(at)
    later = read_out(browser)
    assert float(later["time"].removesuffix(" s")) > 14.0
    assert browser.run("document.querySelector('.readout').getAttribute('aria-live')") == "polite"
    browser.key("+")
    assert read_out(browser)["time"] != later["time"], "the view moved below the read-out"


def test_a_finger_reads_values_and_leaves_the_view(phone: Browser) -> None:
    phone.touch([place(phone, 8.0)], [place(phone, 14.0)])
    said = read_out(phone)
    assert said["phase"] == "run"
    assert float(said["time"].removesuffix(" s")) == pytest.approx(14.0, abs=0.2)
    assert said["power"].endswith("W") or " to " in said["power"]
    assert lines(phone)[0] is not None
    assert phone.run("[timeChart.start, timeChart.end]") == phone.run("timeChart.whole")


def test_two_fingers_zoom_about_themselves(phone: Browser) -> None:
    near, far = place(phone, 12.0), place(phone, 18.0)
    apart = far[0] - near[0]
    phone.touch([near, far], [(near[0] - apart / 4, near[1]), (far[0] + apart / 4, far[1])])
    start, end = phone.run("[timeChart.start, timeChart.end]")
    whole = phone.run("timeChart.whole[1]")
    assert end - start == pytest.approx(whole / 1.5, rel=0.02)
    assert place(phone, 15.0)[0] == pytest.approx((near[0] + far[0]) / 2, abs=2)
    assert phone.run("visualViewport.scale") == 1, "the chart zooms, not the page"


def test_a_wide_table_scrolls_in_its_frame_and_keeps_its_row_headings(phone: Browser) -> None:
    scrolled = phone.run("""(() => {
        const frame = [...document.querySelectorAll(".scroll")].find((one) => one.textContent.includes("Repeats (n"));
        frame.scrollLeft = 10000;
        const box = frame.getBoundingClientRect(), sides = (one) => one.getBoundingClientRect().left - box.left;
        return [frame.scrollLeft, sides(frame.querySelector("tbody th")), sides(frame.querySelector("caption span")),
                frame.querySelector("tbody tr td:last-child").getBoundingClientRect().right - box.right];
    })()""")
    assert scrolled[0] > 100
    assert scrolled[1:3] == [pytest.approx(0, abs=1)] * 2
    assert scrolled[3] <= 1


def test_the_view_gives_energy_above_idle_beside_energy(phone: Browser) -> None:
    phone.run("timeChart.show(6.5, 8.5)")
    said = phone.run("document.querySelector('.in-view').textContent").replace("\N{NO-BREAK SPACE}", " ")
    energy_j = phone.run("timeChart.tracks.power.integral('power_w', 6.5, 8.5).sum")
    idle = RESULT["idle_power_w"]
    above_mj = 1000 * (energy_j - 2 * idle["value"])
    assert 1 <= abs(above_mj) < 1000, "told in millijoules"
    energy = f"{energy_j:.3f} J drawn in 2.000 s, of which {above_mj:#.4g} mJ"
    spread = f"(\N{PLUS-MINUS SIGN} {2000 * idle['u']:.0f} mJ from the uncertainty of the idle power alone)"
    assert f"{energy} {spread} " in said and f" {idle['value']:.3f} W" in said
