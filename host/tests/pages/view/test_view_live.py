"""The live page: what a measurement has flushed so far, whatever else its files hold."""

import json
import os
import shutil
import signal
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from opjoule.base.errors import BadInput
from opjoule.cli.view import live_page, show
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, Exchange, ExchangeFile
from opjoule.energy.trace.journal import TraceJournal
from opjoule.energy.trace.power_trace import Gap
from opjoule.pages.view.live import GrowingPower, LiveReplies
from opjoule.pages.view.runs_folder import POWER
from opjoule.pages.view.server import ViewServer
from opjoule.runs.measuring.progress import PhaseProgress, ProgressNotes
from opjoule.runs.record.run_record import RunRecord
from report_browser import Browser
from usual_phases import usual_phase
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
        progress.write_down(operations=4.0)
        progress.write_down(temperature_c=51.5)
    progress.phase("after", None)
    notes.add(phase="closed")
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    timed = [line for line in lines if "elapsed_s" in line]
    assert [line for line in lines if line not in timed] == [
        {"meter_ns": 5, "phase": "run", "repeat": 1, "repeats": 1},
        {"meter_ns": 5, "operations": 4.0},
        {"meter_ns": 5, "temperature_c": 51.5},
    ]


BOARD_NS, HOST_NS = 50_000_000_000, 900_000_000_000
LATE_NS = 200_000_000
"""So much later than its notes the work is in the trace."""


def on_board(time_s):
    """A moment of the page's axis on the board's clock."""
    return BOARD_NS + round(time_s * 1e9)


def round_trips(raw):
    """Between host, board and meter, 2 us each way."""
    for name, start_ns in ((BOARD_EXCHANGES, BOARD_NS), (METER_EXCHANGES, START_NS)):
        file = ExchangeFile(raw / name)
        for at_ns in range(0, 6_000_000_000, 500_000_000):
            far_ns = start_ns + at_ns + 2_000
            file.append(Exchange(HOST_NS + at_ns, far_ns, far_ns, HOST_NS + at_ns + 4_000))
        file.close()


def seconds(clock):
    """Seconds of a time that the page shows, "1:02:03"."""
    hours, minutes, rest = clock.split(":")
    return 3600 * int(hours) + 60 * int(minutes) + int(rest)


def run_of(growing):
    """A second of idle, then a run at 1000 operations a second, whose beginning the board tells."""
    round_trips(growing.directory / "raw")
    growing.notes.add(phase="idle", repeat=1, repeats=3)
    growing.notes.add(board_ns=on_board(0.1))
    growing.grow(1.0)
    idle = usual_phase("idle-before", 1, on_board(0.1), on_board(1.0))
    RunRecord.open(growing.directory).update(phases=[idle])
    growing.notes.add(phase="run", repeat=1, repeats=3)
    growing.notes.add(board_ns=on_board(1.0) + LATE_NS)
    growing.notes.add(host_ns=time.monotonic_ns(), elapsed_s=60.0, remaining_s=3600.0, is_least=1.0)
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
    answer = replies.known["run"]({})
    assert "SIMULATED" in answer["title"] and answer["duration_s"] == pytest.approx(4.0, abs=0.05)
    now = answer["now"]
    assert {key: now[key] for key in ("power_w", "operations_per_s", "temperature_c", "phase", "is_least")} == {
        "power_w": pytest.approx(6.0, abs=0.05),
        "operations_per_s": pytest.approx(1000.0, rel=0.01),
        "temperature_c": 51.0,
        "phase": "run (1 of 3)",
        "is_least": True,
    }
    assert now["energy_j"] == pytest.approx(3.0 + 3 * 6.0, rel=0.02) and answer["simulated"] is True
    assert now["elapsed_s"] >= 60.0 and now["elapsed_s"] + now["remaining_s"] == pytest.approx(3660.0)
    power = replies.known["power"]({"start": "0", "end": "4", "columns": "50"})
    assert len(power["mean_w"]) <= 50 and power["mean_w"][0] == pytest.approx(3.0, abs=0.05)
    with (growing.directory / "raw" / "progress.jsonl").open("a") as torn:
        torn.write('{"meter_ns": 1')
    assert replies.known["run"]({})["now"]["phase"] == "run (1 of 3)"


def test_bands_lie_where_the_work_is_and_wait_until_that_is_known(growing):
    replies = LiveReplies()
    replies.watch(growing.directory)
    run_of(growing)
    phases = replies.known["run"]({})["phases"]
    assert [(phase["name"], phase["repeat"], phase["kind"]) for phase in phases] == [
        ("idle-before", 1, "idle"),
        ("run", 1, "run"),
    ]
    places_s = [(phase["start_s"], phase["end_s"]) for phase in phases]
    assert places_s == [pytest.approx((0.1, 1.0), abs=1e-3), pytest.approx((1.2, 4.0), abs=0.03)]
    rates = replies.known["power"]({"start": "0", "end": "4", "columns": "50"})["operations"]
    began_s = next(at for at, per_s in zip(rates["bounds_s"], rates["per_s"], strict=False) if per_s)
    assert began_s == pytest.approx(1.2, abs=0.03)
    growing.notes.add(phase="settle", repeat=1, repeats=3)
    assert [phase["name"] for phase in replies.known["run"]({})["phases"]] == ["idle-before"]
    growing.notes.add(board_ns=on_board(3.5))
    assert replies.known["run"]({})["phases"][-1]["start_s"] == pytest.approx(3.5, abs=1e-3)


def test_without_round_trips_no_band_is_drawn(growing):
    growing.notes.add(phase="run", repeat=1, repeats=1)
    growing.notes.add(board_ns=on_board(0.5))
    growing.grow(1.0)
    replies = LiveReplies()
    replies.watch(growing.directory)
    answer = replies.known["run"]({})
    assert answer["phases"] == [] and answer["now"]["phase"] == "run"


def test_joules_of_a_stretch_so_far_say_that_they_are_not_corrected(growing):
    replies = LiveReplies()
    replies.watch(growing.directory)
    run_of(growing)
    replies.known["run"]({})
    request = {"run": "record", "start": "1", "end": "3", "columns": "21"}
    rows = {quantity["key"]: quantity for quantity in replies.known["stretch"](request)["quantities"]}
    assert rows["energy_j"]["value"] == pytest.approx(12.0, rel=0.01) and rows["energy_j"]["u"] is None
    assert "before calibration" in rows["energy_j"]["reason"] and rows["marginal_energy_j"]["value"] is None
    running = replies.known["running"](request)
    assert running["energy_j"][0] == 0 and running["energy_j"][-1] == pytest.approx(12.0, rel=0.01)


def test_after_its_end_a_measurement_says_how_it_ended(tmp_path):
    replies = LiveReplies()
    replies.end()
    assert replies.known["runs"]({})["ended"]["words"]
    record = RunRecord.create(tmp_path / "record", {}, simulated=True)
    replies = LiveReplies()
    replies.watch(record.directory)
    assert replies.known["runs"]({})["ended"] is None
    replies.end()
    killed = replies.known["runs"]({})["ended"]
    assert "was killed" in killed["words"] and "host/measure.py report" in killed["words"]
    assert not killed["report"]
    record.path("report.html").write_text("<title>its report</title>")
    record.finish("partial")
    ended = replies.known["runs"]({})["ended"]
    assert "has ended: partial" in ended["words"] and ended["report"]
    assert b"its report" in replies.pages["report"]({"run": "record"})
    with pytest.raises(BadInput, match="has no run"):
        replies.pages["report"]({"run": "../record"})


def test_a_recording_without_notes_has_power_alone(growing):
    growing.grow(1.0)
    (growing.directory / "raw" / "progress.jsonl").unlink()
    replies = LiveReplies()
    replies.watch(growing.directory)
    answer = replies.known["run"]({})
    assert answer["phases"] == [] and answer["now"]["phase"] is None and answer["samples"] == 5000


@contextmanager
def begun(last_asked_s=60.0):
    """A page's process in its block, and what to ask it by."""
    reading, writing = os.pipe()
    with live_page(writing, last_asked_s) as process, os.fdopen(reading) as said:
        os.close(writing)
        address = said.readline().split()[-1]
        port, token = int(address.split(":")[2].split("/")[0]), address.split("/")[3]
        yield process, SimpleNamespace(server_port=port, token=token)
        assert said.read() == ""  # whoever reads its output does not wait for its end


def test_the_process_serves_what_it_is_told_and_stays_for_its_page(growing):
    growing.grow(1.0)
    with begun() as (process, server):
        assert ask(server, "runs")[1]["runs"] == []
        show(process, growing.directory)
        while not ask(server, "runs")[1]["runs"]:
            pass
        assert ask(server, "run", run="record")[1]["samples"] == 5000
        assert get(server, "/wrong/runs")[0] == 403
        assert ask(server, "runs")[1]["ended"] is None
    while (ended := ask(server, "runs")[1]["ended"]) is None:
        pass
    assert "was killed" in ended["words"] and process.poll() is None
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM


def test_the_process_ends_by_itself_once_its_page_is_closed(growing):
    with begun(last_asked_s=0.0) as (process, server):
        assert ask(server, "runs")[0] == 200
    assert process.wait(60) == 0


def test_the_process_of_a_page_that_nobody_opened_ends_with_the_measurement():
    with begun() as (process, _):
        pass
    assert process.wait(60) == 0


@pytest.mark.skipif(not shutil.which("chromium"), reason="Debian's package chromium is not installed")
def test_the_page_shows_a_measurement_as_it_grows(growing):
    replies = LiveReplies()
    replies.watch(growing.directory)
    with ViewServer(replies.known, replies.pages) as server, Browser(1280, 1100) as browser:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            browser.visit(server.address, "!!window.viewer")
            run_of(growing)
            browser.wait_for("viewer.runs[0]?.samples === 20000 && viewer.runs[0].data?.mean_w.length > 10")
            shown = browser.run(
                "Object.fromEntries([...document.querySelectorAll('#now dd')].map((cell) =>"
                " [cell.dataset.now, cell.textContent]))"
            )
            assert shown["operations_per_s"] == "1,000" and shown["temperature_c"] == "51.0 °C"
            assert shown["power_w"].endswith(" W") and shown["energy_j"].endswith(" J")
            elapsed_s, left_s = (
                seconds(shown["elapsed_s"]),
                seconds(shown["remaining_s"].removeprefix("at least ")),
            )
            assert shown["remaining_s"].startswith("at least ") and 60 <= elapsed_s < 120
            # The one grows as the other shrinks, from the note on; each is rounded on its own.
            assert 3540 < left_s <= 3600 and elapsed_s + left_s == pytest.approx(3660, abs=1)
            growing.grow(1.0)
            browser.wait_for("viewer.chart.end > 4.9")
            assert "SIMULATED" in browser.run("document.getElementById('title').textContent")
            assert not browser.run("document.getElementById('simulated').hidden")
            (growing.directory / "report.html").write_text("<title>its report</title>")
            RunRecord.open(growing.directory).finish("complete")
            replies.end()
            browser.wait_for("!!document.querySelector('#after a')")
            assert "has ended: complete" in browser.run("document.getElementById('said').textContent")
            assert browser.complaints == []
            link = browser.run("document.querySelector('#after a').href")
            browser.visit(link, "true")
            assert browser.run("document.title") == "its report"
            assert browser.complaints == []
        finally:
            server.shutdown()
            thread.join(60)
