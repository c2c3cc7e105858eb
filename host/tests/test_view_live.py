"""The live page: what a measurement has flushed so far, whatever else its files hold."""

import json
import os
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from opjoule.cli.live import LiveView
from opjoule.drawing.pyramid import POWER
from opjoule.measurement.progress import PhaseProgress
from opjoule.measurement.progress_notes import ProgressNotes
from opjoule.record.run_record import RunRecord
from opjoule.trace.journal import TraceJournal
from opjoule.trace.power_trace import Gap
from opjoule.view.live import GrowingPower, LiveReplies
from opjoule.view.server import ViewServer
from report_browser import Browser
from view_client import ask, get

PERIOD_NS = 200_000
START_NS = 7_000_000_000


class Growing:
    """A record that is being written: power at 5 kHz, and notes."""

    def __init__(self, directory):
        self.directory = directory
        RunRecord.create(directory, {"db": "leveldb", "device": "rpi4"}, simulated=True)
        self.journal = TraceJournal(directory)
        self.history = SimpleNamespace(end_ns=START_NS)
        self.notes = ProgressNotes(directory / "raw" / "progress.jsonl", self.history)
        self.count = 0
        self.power_w = []

    def grow(self, seconds, watts=3.0):
        """Seconds more of noisy power, flushed in two batches."""
        more = round(seconds * 1e9 / PERIOD_NS)
        for part in np.array_split(np.arange(self.count, self.count + more, dtype=np.int64), 2):
            current_a = watts / 5 + np.random.default_rng(self.count).normal(0, 0.01, part.size)
            self.journal.append_samples(START_NS + part * PERIOD_NS, current_a, np.full(part.size, 5.0))
            self.journal.flush()
            self.power_w += (current_a * 5.0).tolist()
        self.count += more
        self.history.end_ns = START_NS + self.count * PERIOD_NS

    def close(self):
        self.journal.close()
        self.notes.close()


@pytest.fixture
def growing(tmp_path):
    made = Growing(tmp_path / "record")
    yield made
    made.close()


def test_blocks_follow_the_file_and_keep_every_extreme(growing):
    power = GrowingPower(growing.directory / "raw" / "power.arrows")
    for number in range(5):
        growing.grow(0.5, 3.0 + number)
        power.catch_up()
        assert power.samples == growing.count
    all_w, (least_w, greatest_w) = np.array(growing.power_w), power.track.extremes(POWER)
    whole = 100 * (growing.count // 100 - 1)
    assert np.nanmin(least_w) == all_w[:whole].min()
    assert np.nanmax(greatest_w) == pytest.approx(all_w[: whole + 100].max(), abs=0.2)
    assert power.track.mean[POWER] == pytest.approx(all_w[:whole].reshape(-1, 100).mean(axis=1))
    assert np.diff(power.track.bounds_s) == pytest.approx(0.02)


def test_a_batch_that_is_not_whole_yet_waits(growing, tmp_path):
    growing.grow(1.0)
    growing.grow(1.0)
    whole = (growing.directory / "raw" / "power.arrows").read_bytes()
    copy = tmp_path / "power.arrows"
    power = GrowingPower(copy)
    for end in (0, 3, 100, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        copy.write_bytes(whole[:end])
        power.catch_up()
        assert power.samples < growing.count
    copy.write_bytes(whole)
    power.catch_up()
    assert power.samples == growing.count


def test_what_was_lost_is_empty_also_where_no_row_tells(growing):
    growing.grow(1.0)
    last_ns = START_NS + (growing.count - 1) * PERIOD_NS
    growing.journal.append_gap(Gap.between(last_ns, last_ns + 500 * PERIOD_NS, 499, "lost"))
    growing.count += 5000
    growing.grow(1.0)
    power = GrowingPower(growing.directory / "raw" / "power.arrows")
    power.catch_up()
    empty_s = np.diff(power.track.bounds_s)[np.isnan(power.track.mean[POWER])].sum()
    assert empty_s == pytest.approx(1.0, abs=0.03)


def test_a_slow_meter_has_no_holes(tmp_path):
    journal = TraceJournal(tmp_path)
    journal.append_samples(np.arange(50, dtype=np.int64) * 100_000_000, np.ones(50), np.ones(50))
    journal.close()
    power = GrowingPower(tmp_path / "raw" / "power.arrows")
    power.catch_up()
    assert np.isfinite(power.track.mean[POWER]).all() and len(power.track) == 49


def test_progress_notes_phases_operations_and_temperatures_inside_its_block_alone(tmp_path):
    progress = PhaseProgress(quiet=True)
    progress.phase("before", None)
    notes = ProgressNotes(tmp_path / "progress.jsonl", SimpleNamespace(end_ns=5))
    with progress.noted(notes):
        progress.phase("run", 10)
        progress.operations(4.0)
        progress.temperature(51.5)
    progress.phase("after", None)
    notes.add(phase="closed")
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert lines == [
        {"meter_ns": 5, "phase": "run"},
        {"meter_ns": 5, "operations": 4.0},
        {"meter_ns": 5, "temperature_c": 51.5},
    ]


def run_of(growing):
    """A second of idle, then a run at 1000 operations a second."""
    growing.notes.add(phase="idle (1 of 3)")
    growing.grow(1.0)
    growing.notes.add(phase="run (1 of 3)")
    for second in range(1, 4):
        growing.grow(1.0, 6.0)
        growing.notes.add(operations=1000.0 * second)
        growing.notes.add(temperature_c=48.0 + second)


def test_answers_say_power_rate_temperature_and_phase(growing):
    replies = LiveReplies()
    assert replies.known["runs"]({})["runs"] == []
    replies.watch(growing.directory)
    assert replies.known["run"]({})["now"]["power_w"] is None
    run_of(growing)
    told = replies.known["run"]({})
    assert "SIMULATED" in told["title"] and told["duration_s"] == pytest.approx(4.0, abs=0.05)
    assert told["now"] == {
        "power_w": pytest.approx(6.0, abs=0.05),
        "operations_per_s": pytest.approx(1000.0, rel=0.01),
        "temperature_c": 51.0,
        "phase": "run (1 of 3)",
    }
    assert [(each["kind"], round(each["start_s"], 1)) for each in told["phases"]] == [
        ("idle", 0.0),
        ("run", 1.0),
    ]
    power = replies.known["power"]({"start": "0", "end": "4", "columns": "50"})
    assert len(power["mean_w"]) <= 50 and power["mean_w"][0] == pytest.approx(3.0, abs=0.05)
    with (growing.directory / "raw" / "progress.jsonl").open("a") as torn:
        torn.write('{"meter_ns": 1')
    assert replies.known["run"]({})["now"]["phase"] == "run (1 of 3)"


def test_a_recording_without_notes_has_power_alone(growing):
    growing.grow(1.0)
    (growing.directory / "raw" / "progress.jsonl").unlink()
    replies = LiveReplies()
    replies.watch(growing.directory)
    told = replies.known["run"]({})
    assert told["phases"] == [] and told["now"]["phase"] is None and told["samples"] == 5000


def test_the_process_serves_what_it_is_told_and_ends_with_its_starter(growing):
    growing.grow(1.0)
    reading, writing = os.pipe()
    with LiveView(writing) as view, os.fdopen(reading) as said:
        address = said.readline().split()[-1]
        server = SimpleNamespace(
            server_port=int(address.split(":")[2].split("/")[0]), token=address.split("/")[3]
        )
        assert ask(server, "runs")[1]["runs"] == []
        view.show(growing.directory)
        while not ask(server, "runs")[1]["runs"]:
            pass
        assert ask(server, "run", run="record")[1]["samples"] == 5000
        assert get(server, "/wrong/runs")[0] == 403
        process = view._process
    assert process.returncode == 0
    os.close(writing)


@pytest.mark.skipif(not shutil.which("chromium"), reason="Debian's package chromium is not installed")
def test_the_page_shows_a_measurement_as_it_grows(growing):
    replies = LiveReplies()
    replies.watch(growing.directory)
    with ViewServer(replies.known) as server, Browser(1280, 1100) as browser:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            browser.visit(server.address, "!!window.viewer")
            run_of(growing)
            browser.wait_for("viewer.shown[0]?.samples === 20000 && viewer.shown[0].data?.mean_w.length > 10")
            shown = browser.run("[...document.querySelectorAll('#now dd')].map((cell) => cell.textContent)")
            assert shown[1:] == ["1000", "51.0 °C", "run (1 of 3)"] and shown[0].endswith(" W")
            growing.grow(1.0)
            browser.wait_for("viewer.chart.end > 4.9")
            assert "SIMULATED" in browser.run("document.getElementById('said').textContent")
            assert browser.complaints == []
        finally:
            server.shutdown()
            thread.join(60)
