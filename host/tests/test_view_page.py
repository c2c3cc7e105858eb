"""The page of runs in Chromium, on SYNTHETIC records."""

import shutil

import opjoule
import pytest
from raw_record import finished_record
from report_browser import Browser
from report_record import make_record
from view_client import served

DONE = "!!window.viewer && viewer.asking === 0 && viewer.runs.length > 0"

pytestmark = pytest.mark.skipif(
    not shutil.which("chromium"), reason="Debian's package chromium is not installed"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("runs")
    make_record(top / "a", seed=1)
    make_record(top / "b", seed=2)
    finished_record(top / "c")
    return top


@pytest.fixture(scope="module")
def chromium():
    with Browser(1280, 1300) as browser:
        yield browser


@pytest.fixture(scope="module")
def server(folder):
    with served(folder) as server:
        yield server


@pytest.fixture
def browser(chromium, server):
    chromium.complaints.clear()
    chromium.visit(server.address, DONE)
    choose(chromium, "first", "c")
    return chromium


def choose(browser, field, name):
    browser.run(
        f"(() => {{ const field = document.getElementById('{field}'); field.value = '{name}';"
        " field.dispatchEvent(new Event('change')); })()"
    )
    browser.wait_for(DONE)


def shown(browser, key, column=0):
    return browser.run(f"document.querySelectorAll('[data-key={key}]')[{column}].firstChild.textContent")


def place(browser, time_s):
    script = f"""(() => {{
        const plot = viewer.chart.plot, box = plot.over.getBoundingClientRect();
        return [box.left + plot.valToPos({time_s}, "x"), box.top + 150];
    }})()"""
    x, y = browser.run(script)
    return float(x), float(y)


def test_a_stretch_selected_by_mouse_shows_the_joules_of_the_library(browser, folder):
    browser.drag(place(browser, 1.3), place(browser, 2.3))
    browser.wait_for("document.querySelectorAll('[data-key=energy_j]').length === 1 && viewer.asking === 0")
    start_s, end_s = (
        float(browser.run(f"document.getElementById('{field}').value")) for field in ("from", "to")
    )
    assert (start_s, end_s) == pytest.approx((1.3, 2.3), abs=0.02)
    found = opjoule.open_run(folder / "c").energy(start_s, end_s)
    assert found.operations > 0
    for key, scale, unit in (
        ("energy_j", 1, "J"),
        ("marginal_energy_j", 1, "J"),
        ("power_w", 1, "W"),
        ("energy_per_operation_j", 1e3, "mJ"),
        ("marginal_energy_per_operation_j", 1e3, "mJ"),
    ):
        number, unit_shown = shown(browser, key).split(" ± ")[0], shown(browser, key).split(" ")[-1]
        value = getattr(found, key).value
        assert unit_shown == unit and number == f"{value * scale:#.6g}", key
    assert browser.complaints == []


def test_a_stretch_is_selected_and_moved_by_keys(browser, folder):
    browser.run("document.querySelector('.panels').focus()")
    browser.key("+")
    browser.key("Enter")
    browser.wait_for("document.querySelectorAll('[data-key=energy_j]').length === 1 && viewer.asking === 0")
    chosen = browser.run("[viewer.chart.start, viewer.chart.end]")
    found = opjoule.open_run(folder / "c").energy(round(chosen[0], 9), round(chosen[1], 9))
    assert shown(browser, "energy_j").startswith(f"{found.energy_j.value:#.6g} ")
    browser.key("ArrowRight", shift=True)
    browser.key("]")
    browser.wait_for(
        f"Number(document.getElementById('to').value) < {chosen[1] - 1e-6} && viewer.asking === 0"
    )
    browser.key("Escape")
    assert browser.run("document.querySelectorAll('[data-key]').length") == 0


def test_zooms_from_the_whole_run_to_single_samples_and_back(browser):
    whole = browser.run("viewer.chart.whole")
    browser.run("document.querySelector('.panels').focus()")
    steps = 0
    while browser.run("viewer.runs[0].data.mean_w.length") > 1:
        browser.run("viewer.chart.zoom(1 / 1.5, 1.7)")
        browser.wait_for(DONE)
        steps += 1
        assert steps < 60
    assert browser.run("viewer.runs[0].data.single")
    browser.key("0")
    browser.wait_for(DONE)
    assert browser.run("[viewer.chart.start, viewer.chart.end]") == whole
    assert browser.complaints == []


def test_two_runs_lie_on_one_axis_and_each_has_its_column(browser, folder):
    choose(browser, "first", "a")
    choose(browser, "second", "c")
    assert browser.run("document.getElementById('align').value") == "run 1"
    browser.run("viewer.chart.select(12.1, 12.9)")
    browser.wait_for("document.querySelectorAll('[data-key=energy_j]').length === 2 && viewer.asking === 0")
    runs = [opjoule.open_run(folder / name) for name in ("a", "c")]
    shift_s = runs[1].phase("run").start_s - runs[0].phase("run").start_s
    energies = [runs[0].energy(12.1, 12.9), runs[1].energy(12.1 + shift_s, 12.9 + shift_s)]
    for column, found in enumerate(energies):
        told = browser.run(f"document.querySelectorAll('[data-key=energy_j]')[{column}].dataset.value")
        assert float(told) == pytest.approx(found.energy_j.value, rel=1e-6)
    heads = browser.run("[...document.querySelectorAll('#stretch thead th')].map((head) => head.textContent)")
    assert heads[1].startswith("a: ") and heads[2].startswith("c: ")
    assert browser.complaints == []


def test_dark_and_light_have_their_own_colours(browser):
    pixels = "viewer.chart.plot.ctx.canvas.toDataURL()"
    browser.emulate()
    light = browser.run(pixels)
    browser.emulate(dark=True)
    browser.run(
        "new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame)).then(() => 0)"
    )
    assert browser.run(pixels) != light
    browser.emulate()


def test_every_control_has_a_name_and_nothing_is_cut_off_on_a_phone(browser):
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "combobox", "textbox", "application")
    controls = [
        node for node in nodes if node.get("role", {}).get("value") in roles and not node.get("ignored")
    ]
    assert len(controls) >= 10
    assert all(node.get("name", {}).get("value") for node in controls)
    browser.resize(390)
    browser.run("new Promise(requestAnimationFrame).then(() => 0)")
    assert browser.run("document.documentElement.scrollWidth <= 390")
    browser.send("Emulation.clearDeviceMetricsOverride")


def test_an_error_and_a_request_to_elsewhere_would_be_seen(browser):
    browser.run("setTimeout(() => { throw new Error('seen') }); fetch('https://example.org/').catch(() => 0)")
    for words in ("seen", "Content Security Policy"):
        for _ in range(1000):
            if any(words in complaint for complaint in browser.complaints):
                break
            browser.run("new Promise((resolve) => setTimeout(() => resolve(true), 20))")
        assert any(words in complaint for complaint in browser.complaints)
