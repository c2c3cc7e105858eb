"""The page of runs in Chromium, on SYNTHETIC records."""

import shutil

import opjoule
import pytest
from opjoule.results.rounding import quantity_text
from opjoule.runs.record.directory import Notes, write_notes
from raw_record import finished_record
from report_browser import FAINT, Browser
from report_record import make_record
from view_client import served

DONE = "!!window.viewer && viewer.asking === 0 && viewer.runs.length > 0"
LISTED = "!!window.viewer && viewer.asking === 0 && viewer.table.whole"

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="Debian's package chromium is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("runs")
    make_record(top / "a", seed=1)
    make_record(top / "b", seed=2)
    finished_record(top / "c")
    write_notes(top / "b", Notes("fan was off", ("paper",)))
    make_record(top / "d", status="failed", simulated=False, db="sqlite")
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
    chromium.visit(server.address, LISTED)
    choose(chromium, "c")
    return chromium


def choose(browser, *names):
    """Clicks the boxes of these runs, one after the other."""
    for name in names:
        browser.run(f"[...document.querySelectorAll('.runs input')].find((box) => box.value === '{name}').click()")
        browser.wait_for("viewer.asking === 0")


def names(browser):
    return browser.run("[...document.querySelectorAll('.runs tbody input')].map((box) => box.value)")


def filtered(browser, field, value):
    browser.run(
        f"(() => {{ const field = document.querySelector('[data-filter={field}]'); field.value = '{value}';"
        " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    return names(browser)


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
    start_s, end_s = (float(browser.run(f"document.getElementById('{field}').value")) for field in ("from", "to"))
    assert (start_s, end_s) == pytest.approx((1.3, 2.3), abs=0.02)
    energy = opjoule.open_run(folder / "c").energy(start_s, end_s)
    assert energy.operations > 0
    for key in (
        "energy_j",
        "marginal_energy_j",
        "power_w",
        "energy_per_operation_j",
        "marginal_energy_per_operation_j",
    ):
        assert shown(browser, key) == quantity_text(getattr(energy, key)) and " ± " in shown(browser, key), key
    assert browser.complaints == []


def test_a_stretch_is_selected_and_moved_by_keys(browser, folder):
    browser.run("document.querySelector('.panels').focus()")
    browser.key("+")
    browser.key("Enter")
    browser.wait_for("document.querySelectorAll('[data-key=energy_j]').length === 1 && viewer.asking === 0")
    chosen = browser.run("[viewer.chart.start, viewer.chart.end]")
    energy = opjoule.open_run(folder / "c").energy(round(chosen[0], 9), round(chosen[1], 9))
    assert shown(browser, "energy_j") == quantity_text(energy.energy_j)
    browser.key("ArrowRight", shift=True)
    browser.key("]")
    browser.wait_for(f"Number(document.getElementById('to').value) < {chosen[1] - 1e-6} && viewer.asking === 0")
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
    choose(browser, "c", "a", "c")
    assert browser.run("document.getElementById('align').value") == "run 1"
    browser.run("viewer.chart.select(12.1, 12.9)")
    browser.wait_for("document.querySelectorAll('[data-key=energy_j]').length === 2 && viewer.asking === 0")
    runs = [opjoule.open_run(folder / name) for name in ("a", "c")]
    shift_s = runs[1].phase("run").start_s - runs[0].phase("run").start_s
    energies = [runs[0].energy(12.1, 12.9), runs[1].energy(12.1 + shift_s, 12.9 + shift_s)]
    for column, energy in enumerate(energies):
        text = browser.run(f"document.querySelectorAll('[data-key=energy_j]')[{column}].dataset.value")
        assert float(text) == pytest.approx(energy.energy_j.value, rel=1e-6)
    heads = browser.run("[...document.querySelectorAll('#stretch thead th')].map((head) => head.textContent)")
    assert heads[1].startswith("a: ") and heads[2].startswith("c: ")
    assert browser.complaints == []


def test_the_table_says_what_to_know_of_each_run_before_one_is_chosen(chromium, server):
    chromium.visit(server.address, LISTED)
    assert chromium.run("document.getElementById('shown').hidden && viewer.runs.length === 0")
    rows = dict(
        chromium.run(
            "[...document.querySelectorAll('.runs tbody tr')].map((row) =>"
            " [row.querySelector('input').value, row.textContent])"
        )
    )
    assert set(rows) == {"a", "b", "c", "d"}
    assert all("SIMULATED" in rows[name] for name in "abc") and "SIMULATED" not in rows["d"]
    assert "one run" in rows["a"] and "one run" not in rows["c"]
    assert "fault" in rows["d"] and "SQLite" in rows["d"] and "fan was off" in rows["b"] and "paper" in rows["b"]


def test_the_table_is_filtered_and_sorted(browser):
    assert filtered(browser, "words", "FAN off") == ["b"]
    filtered(browser, "words", "")
    assert filtered(browser, "subject", "SQLite") == ["d"]
    filtered(browser, "subject", "")
    assert filtered(browser, "tag", "paper") == ["b"]
    filtered(browser, "tag", "")
    assert filtered(browser, "origin", "measured") == ["d"]
    filtered(browser, "origin", "")
    press = "document.querySelector('th[data-column=name] button').click()"
    browser.run(press)
    assert names(browser) == ["a", "b", "c", "d"]
    assert browser.run("document.querySelector('th[data-column=name]').ariaSort") == "ascending"
    browser.run(press)
    assert names(browser) == ["d", "c", "b", "a"]


def test_a_phase_takes_the_length_that_it_has_in_each_run(browser, folder):
    choose(browser, "a")
    browser.run("[...document.querySelectorAll('#phases button')].find((one) => one.textContent === 'run 1').click()")
    browser.wait_for("document.querySelectorAll('[data-key=energy_j]').length === 2 && viewer.asking === 0")
    for column, name in enumerate(("c", "a")):
        run = opjoule.open_run(folder / name)
        assert shown(browser, "energy_j", column) == quantity_text(run.energy(run.phase("run")).energy_j)
        assert shown(browser, "duration_s", column) == quantity_text(run.energy(run.phase("run")).duration_s)


def test_joules_add_up_to_those_of_the_stretch(browser, folder):
    browser.run("viewer.chart.select(1.3, 2.3)")
    browser.wait_for("!document.getElementById('adding').hidden && viewer.asking === 0")
    energy = opjoule.open_run(folder / "c").energy(1.3, 2.3)
    for key in ("marginal_energy_j", "energy_j"):
        browser.run(
            f"(() => {{ const field = document.getElementById('of-energy'); field.value = '{key}';"
            " field.dispatchEvent(new Event('change')); })()"
        )
        drawn = browser.run("viewer.running.plot.data[1]")
        assert drawn[0] == 0 and drawn[-1] == pytest.approx(getattr(energy, key).value, rel=1e-6)
        assert quantity_text(getattr(energy, key)) in browser.run("document.getElementById('running-said').textContent")
    assert len(drawn) == 400 and drawn == sorted(drawn)


def test_a_run_that_is_removed_leaves_chart_and_table(browser):
    choose(browser, "a")
    browser.run("[...document.querySelectorAll('#legend button')][0].click()")
    browser.wait_for("viewer.asking === 0")
    assert browser.run("viewer.runs.map((run) => run.name)") == ["a"]
    assert browser.run("viewer.chart.curves.length") == 1
    choose(browser, "a")
    assert browser.run("document.getElementById('shown').hidden")


def test_a_report_opens_from_the_table_and_draws(chromium, browser):
    address = browser.run("document.querySelector('#legend a').href")
    browser.visit(address, "!!document.querySelector('.uplot')")
    assert "SIMULATED" in browser.run("document.title")


def test_dark_and_light_have_their_own_colours(browser):
    pixels = "viewer.chart.plot.ctx.canvas.toDataURL()"
    browser.emulate()
    light = browser.run(pixels)
    browser.emulate(dark=True)
    browser.run("new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame)).then(() => 0)")
    assert browser.run(pixels) != light
    browser.emulate()


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_stands_out_from_its_ground(browser, dark):
    choose(browser, "a", "d")
    browser.run("viewer.chart.select(1.3, 2.3)")
    browser.wait_for("viewer.asking === 0")
    browser.emulate(dark=dark)
    assert browser.run(FAINT) == []
    browser.emulate()


def test_every_control_has_a_name_and_nothing_is_cut_off_on_a_phone(browser):
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "checkbox", "combobox", "textbox", "searchbox", "application", "link")
    controls = [node for node in nodes if node.get("role", {}).get("value") in roles and not node.get("ignored")]
    assert len(controls) >= 10
    assert all(node.get("name", {}).get("value") for node in controls)
    for width in (390, 800, 1280):
        browser.resize(width)
        browser.run("new Promise(requestAnimationFrame).then(() => 0)")
        assert browser.run(f"document.documentElement.scrollWidth <= {width}")
    browser.send("Emulation.clearDeviceMetricsOverride")


def test_an_error_and_a_request_to_elsewhere_would_be_seen(browser):
    browser.run("setTimeout(() => { throw new Error('seen') }); fetch('https://example.org/').catch(() => 0)")
    for words in ("seen", "Content Security Policy"):
        for _ in range(1000):
            if any(words in complaint for complaint in browser.complaints):
                break
            browser.run("new Promise((resolve) => setTimeout(() => resolve(true), 20))")
        assert any(words in complaint for complaint in browser.complaints)
