"""What the computer does to a command is one line; what a killed one left is swept; a pause is no lost sample."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from opjoule.cli import init
from opjoule.cli.failures import one_line, told
from opjoule.cli.init import run_init
from opjoule.cli.leftovers import alone, sweep
from opjoule.devices.loader_process import LINE_MAX, LoaderProcess
from opjoule.errors import BadInput
from opjoule.record.run_record import RunRecord, check_out
from opjoule.trace.csv_import import PAUSE, import_csv
from opjoule.trace.power_trace import Gap

HOST = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("error", "said", "status"),
    [
        (
            OSError(28, "No space left on device", "/mnt/run.json"),
            "/mnt/run.json: No space left on device: free",
            1,
        ),
        (OSError(30, "Read-only file system", "/mnt"), "/mnt: Read-only file system: give --out", 1),
        (PermissionError(13, "Permission denied", "/clone/build"), "belongs to another user", 1),
        (FileNotFoundError(2, "No such file", "/gone"), "removed while it was in use", 1),
        (IsADirectoryError(21, "Is a directory", "report.html"), "a directory is in the place of a file", 1),
        (OSError("odd"), "odd: run host/measure.py doctor", 1),
        (MemoryError(), "more memory than there is", 1),
        (subprocess.TimeoutExpired(["x"], 5), "timed out", 1),
        (KeyboardInterrupt(), "interrupted", 130),
        (BadInput("two\nlines of \x1b[31m\udce9"), r"two lines of \x1b[31m\udce9", 2),
    ],
    ids=str,
)
def test_every_failure_is_one_line_with_its_status(capsys, error, said, status):
    def fails() -> int:
        raise error

    assert told("measure.py", fails) == status
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and said in lines[0]


def test_one_line_leaves_ordinary_text_alone():
    assert one_line("±5 µJ, [red] ü") == "±5 µJ, [red] ü"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_came_before_python_was_ready_is_one_line(tmp_path, number):
    """host/measure.py holds signals back while it hands over; they are answered as soon as someone can."""
    program = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [2, 15, 1]); "
        f"os.kill(os.getpid(), {int(number)}); "
        "os.execv(sys.executable, [sys.executable, '-m', 'opjoule.cli.start', 'report', 'nothing'])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(HOST)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 130
    assert ended.stderr.splitlines() == [
        "measure.py: interrupted; what was recorded is kept and says partial"
    ]


def test_only_what_dead_processes_left_is_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    storage = tmp_path / "clone/build/simulated-storage"
    gone = [tmp_path / f"opjoule-twin-{dead.pid}-abc1", storage / f"run-7-{dead.pid}"]
    kept = [
        tmp_path / f"opjoule-twin-{os.getpid()}-abc2",
        tmp_path / "opjoule-twin-mine",
        tmp_path / f"opjoule-other-{dead.pid}-abc",
        storage / "notes",
        storage / f"run-8-{os.getpid()}",
    ]
    for path in [*gone, *kept]:
        path.mkdir(parents=True)
        (path / "file").write_text("x")
    link = tmp_path / f"opjoule-twin-{dead.pid}-link"
    link.symlink_to(kept[1])
    assert sorted(sweep(tmp_path / "clone")) == sorted(gone)
    assert all(path.exists() for path in kept) and link.exists() and not any(path.exists() for path in gone)


def test_a_second_measurement_on_this_computer_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with alone() as first, alone() as second:
        assert first and not second
    with alone() as again:
        assert again


def test_a_line_of_the_loader_without_an_end_is_taken_apart():
    lines = f"sys.stdout.write('x' * {3 * LINE_MAX} + '\\n'); print('{{\"summary\": 1}}'); print('[' * 99999)"
    endless = f"import sys; {lines}"
    loader = LoaderProcess([sys.executable, "-c", endless])
    assert list(loader.lines()) == [{"summary": 1}]
    assert loader.wait() == 0 and len(loader.complaint()) <= 500


@pytest.mark.parametrize("duration_s", [2_500, 800_000])
def test_a_long_pause_of_an_imported_trace_is_a_gap_without_samples(tmp_path, duration_s):
    """2,500 s at 1 kHz overflowed, 800,000 s took 12 GB."""
    rows = [
        f"{time_s:.3f},500,5" for start in (0, duration_s) for time_s in np.arange(start, start + 0.1, 0.001)
    ]
    path = tmp_path / "trace.csv"
    path.write_text("time (s),current (mA),voltage (V)\n" + "\n".join(rows) + "\n")
    gaps = [part for part in import_csv(path, {}).parts() if isinstance(part, Gap)]
    assert [(gap.lost_samples, gap.reason) for gap in gaps] == [(0, PAUSE)]


def test_centres_of_lost_samples_hold_for_days():
    gap = Gap(0, 2_500 * 10**9, 2_500_000, None, "x")
    centres_ns = gap.lost_centres_ns()
    assert centres_ns[0] == 500_000 and centres_ns[-1] == 2_500 * 10**9 - 500_000
    assert bool(np.all(np.diff(centres_ns) == 1_000_000))


def test_a_record_needs_a_directory_of_its_own(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file", tmp_path / "file/below"):
        with pytest.raises(BadInput, match="choose another --out"):
            check_out(place)
    check_out(tmp_path / "new/deep")
    assert not (tmp_path / "new").exists()


def test_a_record_made_by_another_version_of_python_types_keeps_its_checksum(tmp_path):
    """Keys that are numbers and tuples are texts and lists once they are read."""
    record = RunRecord.create(tmp_path / "run", {"n": {2: "b", 10: ("a", 1.5)}}, simulated=False)
    assert RunRecord.open(record.directory).contents["asked"] == {"n": {"2": "b", "10": ["a", 1.5]}}
    assert json.loads((record.directory / "run.json").read_text())["digest"]


def test_init_checks_each_answer_and_writes_only_what_it_can_read_again(tmp_path, monkeypatch, capsys):
    given = ["/dev/ttyACM0", "rpi4", "telnet:pi", "", "ssh:pi@raspberrypi.local", "pin 17", "gpio:GPIO17"]
    answers = iter([*given, "here", "/mnt/sd [a]"])
    monkeypatch.setattr(init.Prompt, "ask", lambda *_, **__: next(answers, ""))
    assert run_init(Namespace(rig=tmp_path / "rig.toml")) == 0
    written = (tmp_path / "rig.toml").read_text()
    assert 'connection = "ssh:pi@raspberrypi.local"' in written and "/mnt/sd [a]" in written
    said = capsys.readouterr().out
    assert "telnet:pi" in said and "pin 17" in said and "'here' is no absolute path" in said
    assert [path.name for path in tmp_path.iterdir()] == ["rig.toml"]
