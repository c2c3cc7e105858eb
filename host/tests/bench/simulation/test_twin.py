"""The simulated rig between probe and meter: order is kept, and nothing is left behind."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from opjoule.base.errors import LinkFault
from opjoule.bench.simulation.engine_power import LoaderFiles
from opjoule.bench.simulation.medium_work import LineFifo, MediumWork
from opjoule.bench.simulation.power_model import Activity, Supply
from opjoule.bench.simulation.rig import DelayedProbe
from opjoule.bench.simulation.simulators import Imperfections, RigSimulator
from opjoule.bench.simulation.supply import MARGIN_NS, ActivityReader, Feed, SimulatedSupply
from opjoule.boards.probe import Probe
from stated_models import load_model

SECOND_NS = 1_000_000_000
HEADER = (
    "board_ns,cpu_busy_s,process_cpu_s,process_read_bytes,process_written_bytes,device_read_bytes,"
    "device_written_bytes,dirty_bytes,rss_bytes,rss_anon_bytes"
)


def row(board_ns, cpu_s, written_bytes, dirty=0):
    return f"{board_ns},0,{cpu_s},0,0,0,{written_bytes},{dirty},0,0"


def test_activity_is_the_difference_of_two_samples():
    reader = ActivityReader()
    assert reader.row(HEADER) is None
    assert reader.row(row(1000, 5.0, 100)) is None
    first = reader.row(row(2000, 5.25, 110))
    second = reader.row(row(3000, 5.75, 130))
    assert first == Activity(1000, 2000, 0.25, 0, 10)
    assert second == Activity(2000, 3000, 0.5, 0, 20)


def test_a_torn_or_repeated_row_is_no_activity():
    reader = ActivityReader()
    reader.row(HEADER)
    reader.row(row(1000, 1.0, 1))
    assert reader.row("12,3") is None
    assert reader.row(row(1000, 2.0, 1)) is None
    assert reader.row(row(900, 3.0, 1)) is None
    assert reader.row(row(2000, 2.5, 2)) == Activity(1000, 2000, 1.5, 0, 1)


def test_a_fifo_hands_out_whole_lines_only(tmp_path):
    fifo = LineFifo(tmp_path / "f")
    os.write(fifo.descriptor, b"one\ntw")
    assert fifo.lines() == ["one"]
    os.write(fifo.descriptor, b"o\n")
    assert fifo.lines() == ["two"]
    fifo.close()


def test_the_feed_passes_everything_on_in_order_of_time_and_below_the_watermark(tmp_path):
    feed = Feed(tmp_path, load_model("rpi4", "sd"))
    lines = []
    feed.start()
    with feed.live.open() as live:
        reader = threading.Thread(target=lambda: lines.extend(live.read().splitlines()), daemon=True)
        reader.start()  # the feed waits for a reader once the pipe is full
        start_ns = time.monotonic_ns()
        rows = f"{HEADER}\n{row(start_ns, 0.0, 0)}\n{row(start_ns + SECOND_NS, 1.0, 0)}\n"
        os.write(feed.system.descriptor, rows.encode())
        os.write(feed.sync.descriptor, f"{start_ns + SECOND_NS - MARGIN_NS // 2} 1\n".encode())
        feed.probe_ended()
        feed.stop()
        reader.join(60)
    assert edges_in_order(lines) == 1


def edges_in_order(lines):
    """How many edges there are among the lines for the rig simulator, none of them late or before its time."""
    assert lines[-1] == "q"
    watermark_ns, seen_ns, edges = 0, 0, 0
    for line in lines[:-1]:
        kind, stamp, *_ = line.split()
        if kind == "w":
            watermark_ns = max(watermark_ns, int(stamp))
        else:
            assert watermark_ns <= int(stamp)
            assert int(stamp) >= seen_ns
            seen_ns = int(stamp)
            edges += kind == "e"
    return edges


def test_a_run_whose_folder_goes_while_its_files_are_looked_for_ends_nothing(tmp_path, monkeypatch):
    """A repeat's files are removed at any moment; the error ended the simulator's input, and so the meter."""
    going = tmp_path / "session" / "run-1"
    going.mkdir(parents=True)
    scandir = os.scandir

    def just_gone(path=".", *rest):
        if os.fspath(path) == str(going):
            going.rmdir()
        return scandir(path, *rest)

    monkeypatch.setattr(os, "scandir", just_gone)
    assert LoaderFiles(tmp_path).more() == ([], [])
    assert not going.exists(), "nothing was looked for"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("mistake", [ValueError("no such power"), FileNotFoundError("no such power")])
def test_a_feed_that_ends_by_a_mistake_in_a_model_says_so(tmp_path, monkeypatch, mistake):
    """The simulator takes the end of its input for the end of the run, so nothing else would tell."""
    feed = Feed(tmp_path, load_model("rpi4", "sd"))

    def draws_nothing(*_):
        raise mistake

    monkeypatch.setattr(feed, "_draw", draws_nothing)
    feed.start()
    with feed.live.open() as live:
        assert not live.read()
    feed.stop()
    assert feed.broken == f"{type(mistake).__name__}: no such power"


def test_the_truth_of_another_run_is_not_written_over(tmp_path):
    """Two campaigns in one folder: the second is refused where the first has a record, whose truth stays."""
    record, folder = tmp_path / "record", tmp_path / "rig"
    record.mkdir()
    folder.mkdir()
    (record / "run.json").write_text("{}")
    (record / "simulator-truth.json").write_text("of the first run")
    (folder / "truth.json").write_text("of the second run")
    (folder / "course.csv").write_text("")
    supply = SimulatedSupply.__new__(SimulatedSupply)  # nothing else of it is needed
    supply.folder, supply.truth, supply.course = folder, record / "simulator-truth.json", True
    supply.imperfections, supply.seed, supply.medium = Imperfections.draw(1), 1, None
    supply._tell()
    assert (record / "simulator-truth.json").read_text() == "of the first run"
    assert [path.name for path in sorted(record.iterdir())] == ["run.json", "simulator-truth.json"]


def test_an_edge_is_not_late_because_the_feed_was_kept_from_running(tmp_path, monkeypatch):
    """It and a much later sample come between the feed's two readings."""
    feed = Feed(tmp_path, load_model("rpi4", "sd"))
    start_ns = time.monotonic_ns()
    readings = {fifo: fifo.lines for fifo in (feed.sync, feed.system)}
    happened = []

    def read_and_sleep(fifo):
        lines = readings[fifo]()
        if not happened:
            happened.append(True)
            os.write(feed.sync.descriptor, f"{start_ns + SECOND_NS} 1\n".encode())
            rows = f"{HEADER}\n{row(start_ns, 0.0, 0)}\n{row(start_ns + 3 * SECOND_NS, 1.0, 0)}\n"
            os.write(feed.system.descriptor, rows.encode())
        return lines

    for fifo in readings:
        monkeypatch.setattr(fifo, "lines", lambda fifo=fifo: read_and_sleep(fifo))
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(feed.live.read_text().splitlines()), daemon=True)
    reader.start()
    feed.start()
    deadline_s = time.monotonic() + 120
    while feed._newest_ns < start_ns + 3 * SECOND_NS:
        assert time.monotonic() < deadline_s, "the sample is not taken in"
        time.sleep(0.01)
    feed.probe_ended()
    feed.stop()
    reader.join(60)
    assert edges_in_order(lines) == 1


def test_nothing_is_passed_on_before_the_medium_s_work_of_that_time_is_known(tmp_path):
    """And then what it did is there, at its own moments."""
    work = MediumWork(tmp_path / "work.fifo")
    feed = Feed(tmp_path, load_model("rpi4", "sd", Supply(5.1, 0.0)), work)
    start_ns = feed._newest_ns
    os.write(work.fifo.descriptor, f"m {start_ns + 1000} {start_ns + 5000} write 56\nq {start_ns}\n".encode())
    drawn = []
    feed._hold = lambda board_ns, line: drawn.append(line.split())
    feed._carry()
    assert feed._drawable_ns == 0  # that line was torn: it lacks its bytes
    os.write(work.fifo.descriptor, f"q {start_ns + 30_000_000} 0\n".encode())
    feed._carry()
    feed._draw(feed._drawable_ns)
    assert feed._drawn_ns == start_ns + 30_000_000
    assert [int(at) - start_ns for _, at, *_ in drawn][:4] == [0, 1000, 5000, 10_000_000]
    work.ended = True
    feed._draw(feed._drawable_ns)
    assert feed._drawn_ns == feed._newest_ns
    work.fifo.close()


def test_pending_writes_are_those_of_the_board_s_own_time(tmp_path):
    feed = Feed(tmp_path, load_model("rpi4", "sd"))
    start_ns = time.monotonic_ns() + SECOND_NS
    rows = [row(start_ns + at * SECOND_NS, 0.0, 0, dirty) for at, dirty in enumerate((5, 7, 9, 0))]
    os.write(feed.system.descriptor, "\n".join([HEADER, *rows, ""]).encode())
    feed._carry()
    assert [feed.pending_bytes(start_ns + round(at * SECOND_NS)) for at in (0.5, 1, 1.5, 2, 3)] == [
        0,
        7,
        7,
        9,
        0,
    ]


def test_hours_of_dirty_pages_that_nobody_asks_for_take_no_memory(tmp_path):
    feed = Feed(tmp_path, load_model("rpi4", "sd"))
    start_ns = time.monotonic_ns() + SECOND_NS
    rows = [row(start_ns + at * SECOND_NS // 100, 0.0, 0, at % 7) for at in range(5000)]
    for line in [HEADER, *rows]:
        os.write(feed.system.descriptor, f"{line}\n".encode())
        feed._carry()
    assert len(feed._dirty) < 1500
    assert feed.pending_bytes(start_ns + 4999 * SECOND_NS // 100) == 4999 % 7


def test_a_probe_that_answers_no_more_leaves_an_idle_board_whose_time_goes_on(tmp_path, monkeypatch):
    """The meter waited for the rows of a probe that had ended, and the measurement for the meter."""

    def gone(self):
        raise LinkFault("it has ended")

    monkeypatch.setattr(Probe, "__init__", lambda self: None)
    monkeypatch.setattr(Probe, "clock_exchange", gone)
    feed = Feed(tmp_path, load_model("rpi4", "sd"))
    probe = DelayedProbe(feed=feed, ended=feed.probe_ended)
    start_ns = time.monotonic_ns()
    os.write(feed.system.descriptor, f"{HEADER}\n{row(start_ns, 0.0, 0)}\n{row(start_ns + 1, 0.0, 0)}\n".encode())
    feed._carry()
    time.sleep(0.3)
    feed._carry()
    assert feed._newest_ns == start_ns + 1, "a probe that lives is waited for"
    with pytest.raises(LinkFault):
        probe.clock_exchange()
    later_ns = start_ns + 100 * SECOND_NS
    os.write(feed.system.descriptor, f"{row(later_ns, 0.0, 0)}\n".encode())
    feed._carry()
    assert start_ns + 0.2 * SECOND_NS < feed._newest_ns < later_ns


def test_a_rig_is_drawn_within_its_data_sheets_and_anew_by_each_seed():
    drawn = [Imperfections.draw(seed) for seed in range(500)]
    for name, least, most in (
        ("shunt_ohm", 0.0987, 0.1013),
        ("shunt_ppm", -200, 200),
        ("gain_error", -0.005, 0.005),
        ("offset_uv", -200, 200),
        ("bus_gain_error", -0.005, 0.005),
        ("clock_error_ppm", -5000, 5000),
        ("sensor_clock_error_ppm", -91_000, 100_000),
        ("supply_ohm", 0, 0.8),
    ):
        values = [getattr(rig, name) for rig in drawn]
        width = most - least
        assert least <= min(values) < least + 0.1 * width, name
        assert most - 0.1 * width < max(values) <= most, name
    assert Imperfections.draw(3) == Imperfections.draw(3)


def test_a_simulated_meter_has_one_name_whatever_supply_it_is_on():
    """Two measurements with it share its errors; two other meters share nothing."""
    one = Imperfections.draw(1)
    assert one.meter_name == one.carrying(15.0, 4.63).meter_name == Imperfections.draw(1).meter_name
    assert one.meter_name != Imperfections.draw(2).meter_name


@pytest.mark.parametrize("opens", [True, False])
def test_a_supply_that_is_interrupted_while_it_starts_leaves_nothing_behind(tmp_path, monkeypatch, opens):
    """Whether or not its simulator has opened what it is to read; a thread that reads on would end with a traceback."""
    program = tmp_path / "build" / "rig-sim" / "rig-sim"
    program.parent.mkdir(parents=True)
    reading = 'while [ "$1" != --live ]; do shift; done; exec cat "$2"'
    program.write_text(f"#!/bin/sh\n{reading if opens else 'exec sleep 1000'}\n")
    program.chmod(0o755)
    begun = []

    def interrupted(simulator):
        begun.append(simulator)
        raise KeyboardInterrupt

    monkeypatch.setattr(RigSimulator, "_await", interrupted)
    work = MediumWork(tmp_path / "medium.fifo")
    with pytest.raises(KeyboardInterrupt):
        SimulatedSupply(
            Imperfections.draw(1),
            load_model("rpi4", "sd"),
            root=tmp_path,
            truth=tmp_path / "truth.json",
            seed=1,
            work=work,
        )
    work.fifo.close()
    assert begun[0].status() is not None
    assert not begun[0].port.parent.exists()
    assert not [thread for thread in threading.enumerate() if thread.name == "twin-feed"]


OWNERLESS = """
import sys
from pathlib import Path
from opjoule.boards.profiles import find_profile
from opjoule.bench.simulation.simulators import Imperfections
from opjoule.bench.simulation.power_model import Models
from opjoule.bench.simulation.simulators import RigSimulator
from opjoule.bench.simulation.supply import SimulatedSupply
RigSimulator._await = lambda simulator: None
place = Path(sys.argv[1])
rig, board = Imperfections.draw(1), Models.stated().load(find_profile("rpi4").with_medium("sd"))
supply = SimulatedSupply(rig, board, root=place, truth=place / "truth.json", seed=1)
print(supply._simulator._process.pid, flush=True)
raise KeyboardInterrupt
"""


def test_a_simulator_that_nobody_has_closed_ends_with_the_program(tmp_path):
    """A Ctrl-C comes between its start and the first line that would close it."""
    program = tmp_path / "build" / "rig-sim" / "rig-sim"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    ended = subprocess.run(
        [sys.executable, "-c", OWNERLESS, tmp_path], capture_output=True, text=True, check=False, timeout=60
    )
    assert "KeyboardInterrupt" in ended.stderr
    assert not Path(f"/proc/{int(ended.stdout)}").exists()
