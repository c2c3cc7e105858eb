"""The load of the computer behind a simulated board: which processor time is the rig's own, and its file."""

import os
import time
from types import SimpleNamespace

import pytest
from opjoule.base.errors import RecordFault
from opjoule.bench.simulation.rig import ComputerWatch, DelayedProbe, processor_times
from opjoule.boards.probe import Probe
from opjoule.energy.operations.board_files import COMPUTER, ComputerLoad

TICK = os.sysconf("SC_CLK_TCK")


def process(proc, number, parent, name, own_s, children_s=0):
    folder = proc / str(number)
    folder.mkdir()
    fields = ["S", parent, *[0] * 9, own_s * TICK, 0, 0, children_s * TICK, *[0] * 10]
    (folder / "stat").write_text(f"{number} ({name}) {' '.join(map(str, fields))}\n")
    (folder / "comm").write_text(f"{name}\n")


@pytest.fixture
def proc(tmp_path):
    """Process 10 started 11, which started 12; 20 is another's, and 30 a kernel thread."""
    (tmp_path / "stat").write_text(
        f"cpu  {50 * TICK} {10 * TICK} {20 * TICK} {900 * TICK} 7 5 3 {4 * TICK} 0 0\ncpu0 1\ncpu1 1\nctxt 1\n"
    )
    process(tmp_path, 1, 0, "init", 3)
    process(tmp_path, 2, 0, "kthreadd", 1)
    process(tmp_path, 10, 1, "python3", 7, children_s=2)
    process(tmp_path, 11, 10, "a (b) c", 11)
    process(tmp_path, 12, 11, "loader", 13)
    process(tmp_path, 20, 1, "cc1plus", 17)
    process(tmp_path, 30, 2, "kworker/0:1", 5)
    return tmp_path


def test_the_rigs_own_time_is_that_of_its_processes_and_of_the_kernels_threads(proc):
    times = processor_times(proc, 10)
    assert times.processors == 2
    assert times.busy_s == pytest.approx(50 + 10 + 20 + 4), "with the time that other virtual machines took"
    assert times.own_s == pytest.approx(7 + 2 + 11 + 13 + 1 + 5)


def test_in_a_container_process_2_is_any_program(proc):
    (proc / "2" / "comm").write_text("bash\n")
    assert processor_times(proc, 10).own_s == pytest.approx(7 + 2 + 11 + 13)


def test_a_watch_writes_samples_of_this_computer_until_it_is_closed(tmp_path):
    before_ns = time.monotonic_ns()
    watch = ComputerWatch(tmp_path / COMPUTER)
    while (tmp_path / COMPUTER).read_text().count("\n") < 2:
        time.sleep(0.01)
    watch.close()
    watch.close()
    load = ComputerLoad.read(tmp_path / COMPUTER)
    assert before_ns < load.board_ns[0] <= time.monotonic_ns() and load.processors[0] >= 1
    assert load.busy_s[0] >= 0.0 and load.own_s[0] >= 0.0
    with pytest.raises(FileExistsError):
        ComputerWatch(tmp_path / COMPUTER)


def test_a_file_that_was_cut_off_is_read_up_to_its_last_whole_line(tmp_path):
    whole = "board_ns,processors,busy_s,own_s\n0,2,1.5,1.0\n1000000000,2,3.0,2.0\n"
    (tmp_path / COMPUTER).write_text(whole + "2000000000,2,4.5,2")
    load = ComputerLoad.read(tmp_path / COMPUTER)
    assert load.own_s.tolist() == [1.0, 2.0]
    assert load.others_share(0, 1_000_000_000) == pytest.approx(0.25)
    (tmp_path / COMPUTER).write_text("board_ns,processors,busy_s,own_s\n")
    assert ComputerLoad.read(tmp_path / COMPUTER).others_share(0, 1) == 0.0


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "board_ns,processors,busy_s,own_s\n1,2,x,4\n"])
def test_other_contents_are_a_fault_of_the_record(tmp_path, text):
    (tmp_path / COMPUTER).write_text(text)
    with pytest.raises(RecordFault, match=COMPUTER):
        ComputerLoad.read(tmp_path / COMPUTER)


@pytest.mark.parametrize("watches", [True, False])
def test_a_simulated_board_on_this_computer_is_watched_from_its_marks_to_its_warnings(monkeypatch, tmp_path, watches):
    """A virtual board has a clock of its own: its computer's samples would not fit its phases."""
    for name in ("__init__", "keep_marks", "close"):
        monkeypatch.setattr(Probe, name, lambda self, *arguments: None)
    monkeypatch.setattr(Probe, "warnings", lambda self: [])
    feed = SimpleNamespace(probe_began=lambda: None)
    probe = DelayedProbe(feed=feed, ended=lambda: None, warnings=lambda: ["slow disk"], watches=watches)
    probe.keep_marks(tmp_path / "marks.jsonl")
    assert probe.warnings() == ["slow disk"]
    left = (tmp_path / COMPUTER).read_text() if watches else None
    probe.close()
    assert (tmp_path / COMPUTER).exists() is watches
    assert not watches or (tmp_path / COMPUTER).read_text() == left, "the file does not change afterwards"
