"""What the computer does to a command is one line; what a killed one left is swept; a pause is no lost sample."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from opjoule.base.errors import INTERRUPTED, BadInput, of_system
from opjoule.base.scripts import script_name
from opjoule.base.terminal import Prompts
from opjoule.boards.shell import LINE_MAX, LineProcess
from opjoule.cli import commands, init
from opjoule.cli.failures import one_line, reporting_failures
from opjoule.cli.init import run_init
from opjoule.cli.measure.command import LOCK, alone, sweep
from opjoule.cli.rig_commands import InitOptions
from opjoule.energy.trace.imported.trace_file import PAUSE, read_trace_file
from opjoule.energy.trace.power_trace import Gap
from opjoule.runs.record.directory import check_out
from opjoule.runs.record.run_record import RunRecord

HOST = Path(__file__).resolve().parents[2]


def test_too_few_open_files_are_one_line_before_anything_is_made(tmp_path):
    command = [sys.executable, "-m", "opjoule.cli.start", "--db", "leveldb", "--device", "rpi4", "--simulate"]
    words = [*command, "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(HOST), "TMPDIR": str(tmp_path)}

    def fewer():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    ended = subprocess.run(words, check=False, capture_output=True, text=True, env=environment, preexec_fn=fewer)
    assert ended.returncode == 2
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("measure.py: ") and " 64 " in last and "ulimit -n" in last
    assert not (tmp_path / "out").exists()


def test_a_folder_of_a_killed_process_goes_with_it(tmp_path):
    making = (
        "import sys, time; from pathlib import Path; from opjoule.base.files import ProcessFolder\n"
        "kept = ProcessFolder('kept-', Path(sys.argv[1])); Path(kept.name, 'file').touch()\n"
        "print(kept.name, flush=True); time.sleep(600)"
    )
    words = [sys.executable, "-c", making, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(HOST)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        folder = Path(process.stdout.readline().strip())
        assert (folder / "file").exists()
        process.kill()
    while folder.exists():
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "said", "status"),
    [
        (
            OSError(28, "ENOSPC", "/mnt/run.json"),
            "/mnt/run.json: ENOSPC: free",
            1,
        ),
        (OSError(30, "EROFS", "/mnt"), "/mnt: EROFS: give --out", 1),
        (PermissionError(13, "EACCES", __file__), f"'chmod u+rwX {__file__}'", 1),
        (OSError(99, "EADDRNOTAVAIL"), "'ip address'", 1),
        (OSError(98, "EADDRINUSE"), "EADDRINUSE: another", 1),
        (FileNotFoundError(2, "ENOENT", "/gone"), "/gone: ENOENT: ", 1),
        (FileNotFoundError(2, "ENOENT", "/nosuch/dir/x"), "/nosuch/dir/x: ENOENT: the folder /nosuch/dir ", 1),
        (IsADirectoryError(21, "EISDIR", "report.html"), "report.html: EISDIR: ", 1),
        (OSError("odd"), "odd: run host/measure.py doctor", 1),
        (MemoryError(), "memory", 1),
        (RuntimeError("can't start new thread"), "'ulimit -u'", 1),
        (OSError(40, "ELOOP", "runs/x/run.json"), "runs/x/run.json: ELOOP: ", 1),
        (subprocess.TimeoutExpired(["x"], 5), "timed out", 1),
        (KeyboardInterrupt(), "interrupted", 130),
        (BadInput("two\nlines of \x1b[31m\udce9"), r"two lines of \x1b[31m\udce9", 2),
    ],
    ids=str,
)
def test_every_failure_is_one_line_with_its_status(capsys, error, said, status):
    def fails() -> int:
        raise error

    assert reporting_failures("measure.py", fails) == status
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and said in lines[0]


def test_a_file_of_another_user_is_not_to_be_taken_over(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: Path(__file__).stat().st_uid + 1)
    said = of_system(PermissionError(13, "Permission denied", f"{__file__}/not/there"))
    assert said.startswith(f"{__file__}/not/there: ") and "another user" in said and "chown" not in said


def test_one_line_leaves_ordinary_text_alone():
    assert one_line("±5 µJ, [red] ü") == "±5 µJ, [red] ü"


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["calibrate", "show"], "calibrate.py"),
        *([[name, "x"], f"{name}.py"] for name in ("compare", "campaign", "runs", "view")),
        (["record", "--out", "x"], "measure.py"),
        (["--db", "leveldb"], "measure.py"),
        (["../host/calibrate"], "measure.py"),
        ([], "measure.py"),
    ],
)
def test_messages_begin_with_the_script_that_the_user_started(argv, name):
    assert script_name(argv) == name


@pytest.mark.parametrize("script", ["calibrate.py", "validate.py"])
def test_a_failure_names_its_own_script_through_set_up_and_all(tmp_path, script):
    """At run time, in .venv, not only what the command line's parser says."""
    wrong = {
        "calibrate.py": ["show", "--folder", str(tmp_path)],
        "validate.py": ["--trials", "1", "--plot", str(tmp_path / "none" / "plot.svg")],
    }
    (tmp_path / "x.toml").write_text("schema = 99")
    ended = subprocess.run([HOST / script, *wrong[script]], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode != 0
    line = ended.stderr.splitlines()[-1]  # set-up may say before what it does
    assert line.startswith(f"{script}: ")


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
    [line] = ended.stderr.splitlines()
    assert line.startswith("measure.py: interrupted ") and "record" not in line


def test_a_ctrl_c_in_text_that_python_executes_ends_with_the_same_status(tmp_path):
    """Dataclasses execute such text when a module loads; CPython marks the interruption, handled or not."""
    (tmp_path / "interrupted.py").write_text(
        "import sys; from opjoule.cli import commands, start\n"
        "def command(): exec('raise KeyboardInterrupt')\n"
        "from types import SimpleNamespace\n"
        "commands.parse = lambda argv: SimpleNamespace(needs=None, loaded=lambda: command)\n"
        "sys.exit(start.main(['report']))"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        env={**os.environ, "PYTHONPATH": f"{HOST}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 130
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"measure.py: {INTERRUPTED}; ") and "partial" in line


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("moment", range(21))
def test_a_signal_at_any_moment_of_the_first_second_is_one_line(tmp_path, moment):
    """The shell's lines, Python's own start, set-up, the second Python and its imports, the first question of init."""
    number = ENDING[moment % 3]
    started = [str(HOST / "measure.py"), "init", "--rig", str(tmp_path / "rig.toml")]
    with subprocess.Popen(
        started, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        time.sleep(moment / 20)
        running.send_signal(number)
        _, said = running.communicate(timeout=120)
    lines = [line for line in said.splitlines() if not line.startswith(("Set-up", "  "))]
    if running.returncode != -number:  # it came before Python began
        assert running.returncode == 130 and len(lines) == 1 and "measure.py: interrupted" in lines[0], said
    else:
        assert not said


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_at_a_question_is_one_line(tmp_path, number):
    started = [str(HOST / "measure.py"), "init", "--rig", str(tmp_path / "rig.toml")]
    with subprocess.Popen(
        started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout and running.stdout.read(1)
        running.send_signal(number)
        said = running.communicate(timeout=120)[1].splitlines()
    assert running.returncode == 130
    by = "the user (Ctrl-C)" if number == signal.SIGINT else number.name
    assert said[-1].startswith(f"measure.py: interrupted by {by}; ") and "partial" in said[-1]
    assert not (tmp_path / "rig.toml").exists()


def test_a_bare_call_says_how_to_begin(capsys):
    with pytest.raises(SystemExit) as ended:
        commands.parse([])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "to begin: host/measure.py --db leveldb --device rpi4 --simulate" in line


def test_help_is_a_word_too(capsys):
    with pytest.raises(SystemExit) as ended:
        commands.parse(["help"])
    assert ended.value.code == 0 and "usage: measure.py" in capsys.readouterr().out


def test_nohup_keeps_a_closed_terminal_from_ending_it(tmp_path):
    started = ["nohup", str(HOST / "measure.py"), "init", "--rig", str(tmp_path / "rig.toml")]
    with subprocess.Popen(
        started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout and running.stdout.read(1)
        running.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.5)
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=120)
    assert running.returncode == 130


def test_set_up_that_is_interrupted_ends_its_commands(tmp_path):
    """A termination reaches this program alone; a build may take minutes."""
    program = (
        "import os, signal, threading; import logged_commands as set_up; from pathlib import Path\n"
        "def build():\n"
        "    try: set_up.logged(['sleep', '600'], Path('other.log'))\n"
        "    except set_up.SetupError: print('other ended')\n"
        "other = threading.Thread(target=build); other.start()\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try: set_up.logged(['sleep', '600'], Path('own.log'))\n"
        "except KeyboardInterrupt: print('interrupted'); set_up.end_running()\n"
        "other.join()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HOST)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.stdout.split("\n") == ["interrupted", "other ended", ""], ended.stderr


def test_only_what_dead_processes_left_is_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    storage = tmp_path / "clone/build/simulated-files"
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
    swept = sweep(tmp_path / "clone")
    swept = [path for path in swept if path.is_relative_to(tmp_path)]  # all share /dev/shm
    assert sorted(swept) == sorted(gone)
    assert all(path.exists() for path in kept) and link.exists() and not any(path.exists() for path in gone)


def test_a_second_measurement_on_this_computer_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with alone() as first, alone() as second:
        assert first and not second
    with alone() as again:
        assert again


def test_a_measurement_elsewhere_on_this_computer_is_not_noticed_by_the_tests():
    """The lock of ordinary measurements is held; a process of tests has a folder of its own for its lock."""
    ordinary = Path(os.environ["PYTEST_DEBUG_TEMPROOT"]) / LOCK
    with ordinary.open("a") as lock:
        with suppress(BlockingIOError):  # another measurement may hold it at this moment
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with alone() as only_one:
            assert only_one


def test_a_line_of_the_loader_without_an_end_is_taken_apart():
    lines = f"sys.stdout.write('x' * {3 * LINE_MAX} + '\\n'); print('{{\"summary\": 1}}'); print('[' * 99999)"
    endless = f"import sys; {lines}"
    loader = LineProcess([sys.executable, "-c", endless])
    assert list(loader.lines()) == [{"summary": 1}]
    assert loader.wait() == 0 and len(loader.complaint()) <= 500


@pytest.mark.parametrize("duration_s", [2_500, 800_000])
def test_a_long_pause_of_an_imported_trace_is_a_gap_without_samples(tmp_path, duration_s):
    """2,500 s at 1 kHz overflowed, 800,000 s took 12 GB."""
    rows = [f"{time_s:.3f},500,5" for start in (0, duration_s) for time_s in np.arange(start, start + 0.1, 0.001)]
    path = tmp_path / "trace.csv"
    path.write_text("time (s),current (mA),voltage (V)\n" + "\n".join(rows) + "\n")
    gaps = [part for part in read_trace_file(path, {}).parts() if isinstance(part, Gap)]
    assert [(gap.lost_samples, gap.reason) for gap in gaps] == [(0, PAUSE)]


def test_centres_of_lost_samples_hold_for_days():
    gap = Gap(0, 2_500 * 10**9, 2_500_000, None, "x")
    centres_ns = gap.lost_centres_ns()
    assert centres_ns[0] == 500_000 and centres_ns[-1] == 2_500 * 10**9 - 500_000
    assert bool(np.all(np.diff(centres_ns) == 1_000_000))


def test_a_record_needs_a_directory_of_its_own(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file", tmp_path / "file/below", tmp_path / ("x" * 300)):
        with pytest.raises(BadInput, match="choose another --out"):
            check_out(place)
    check_out(tmp_path / "new/deep")
    assert not (tmp_path / "new").exists()


def test_a_record_made_by_another_version_of_python_types_keeps_its_checksum(tmp_path):
    """Keys that are numbers and tuples are texts and lists once they are read."""
    record = RunRecord.create(tmp_path / "run", {"n": {2: "b", 10: ("a", 1.5)}}, simulated=False)
    assert RunRecord.open(record.directory).document["asked"] == {"n": {"2": "b", "10": ["a", 1.5]}}
    assert json.loads((record.directory / "run.json").read_text())["digest"]


def test_init_offers_a_sensors_name_that_no_calibration_bears_and_says_which_it_would_use(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(init, "CALIBRATIONS", tmp_path)
    (tmp_path / "bench-1@0x40.toml").write_text("")
    asked = []

    def line(question):
        asked.append(question)
        replaces = "exists; replace" in question
        return "local" if question.startswith("Connection") else "yes" if replaces else ""

    assert run_init(InitOptions(rig=tmp_path / "rig.toml"), Prompts(line)) == 0
    assert sum(question.endswith("(bench-2): ") for question in asked) == 1
    assert "label=bench-2" in (tmp_path / "rig.toml").read_text()
    monkeypatch.setattr(init, "_free_label", lambda: "bench-1")
    run_init(InitOptions(rig=tmp_path / "rig.toml"), Prompts(line))
    assert f"{tmp_path}/bench-1@0x40.toml" in capsys.readouterr().out


def test_init_takes_another_kind_of_meter_by_its_name_and_refuses_what_it_does_not_know(tmp_path, capsys):
    given, asked = iter(["km003c:rate=fast", "km003c:KM1,rate=200"]), []

    def line(question):
        asked.append(question)
        if "Port of the meter" in question:
            return next(given)
        return "local" if question.startswith("Connection") else ""

    assert run_init(InitOptions(rig=tmp_path / "rig.toml"), Prompts(line)) == 0
    assert 'port = "km003c:KM1,rate=200"' in (tmp_path / "rig.toml").read_text()
    said = capsys.readouterr().out + "".join(asked)
    assert "rate must be" in said and "'fast'" in said
    assert all(name in said for name in ("monsoon", "ppk2", "joulescope", "km003c", "fnirsi"))


def test_init_checks_each_answer_and_writes_only_what_it_can_read_again(tmp_path, capsys):
    given = [
        "/dev/ttyACM0",
        "R020",
        "0.02",
        "half",
        "0.5 %",
        "75",
        "perhaps",
        "yes",
        "no",
        "my sensor",
        "left",
        "much",
        "0.01",
        "rpi4",
        "telnet:pi",
        "",
        "ssh:pi@raspberrypi.local",
        "pin 17",
        "gpio:GPIO17",
    ]
    answers, asked = iter([*given, "here", "/mnt/sd [a]"]), []
    dialogue = Prompts(lambda question: asked.append(question) or next(answers, ""))
    assert run_init(InitOptions(rig=tmp_path / "rig.toml"), dialogue) == 0
    rig_toml = (tmp_path / "rig.toml").read_text()
    assert 'connection = "ssh:pi@raspberrypi.local"' in rig_toml and "/mnt/sd [a]" in rig_toml
    assert 'port = "serial:/dev/ttyACM0,shunt=0.02,shunt_tolerance=0.5%,shunt_ppm=75,kelvin=yes,label=left"' in rig_toml
    assert "[supply]\nsense_ohm = 0.01" in rig_toml
    said = capsys.readouterr().out + "".join(asked)
    for refused in ("'perhaps' is", "'much' is", "not 'R020'", "not 'half%'", "telnet:pi", "pin 17", "'here' is"):
        assert refused in said, "each is asked for again"
    assert "meter option label must be" in said and "Sensor left: " in said
    assert "Shunt: 0.02 ohm ±0.5 %, " in said
    assert [path.name for path in tmp_path.iterdir()] == ["rig.toml"]
