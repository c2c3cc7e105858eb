"""`./test` runs what failed once more, alone, only where it depends on how busy the computer is, and says so."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import run_tests
from run_tests import Part, run_part

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SETTINGS = "[pytest]\nmarkers = end_to_end\n"
PASSES_SECOND = """
import pathlib, pytest
@pytest.mark.end_to_end
def test_measures():
    marker = pathlib.Path(__file__).with_name("marker")
    seen = marker.exists()
    marker.touch()
    assert seen
"""
FAILS = "def test_computes():\n    assert False\n"


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text)
    return (sys.executable, str(path))


def run(part, monkeypatch, capfd):
    monkeypatch.setattr(run_tests, "parts", lambda everything=False: [part])
    monkeypatch.setattr(run_tests.bootstrap, "set_up", lambda needs: None)
    monkeypatch.setattr(sys, "argv", ["./test"])
    status = run_tests.main()
    return status, capfd.readouterr().out


def host_part(folder, **tests):
    """The part of this name, on tests of its own in `folder`."""
    (folder / "conftest.py").write_text(CONFTEST.read_text().replace("END_S = 10.0", "END_S = 0.1"))
    (folder / "thorough.txt").touch()
    (folder / "pytest.ini").write_text(SETTINGS)
    for name, text in tests.items():
        (folder / f"test_{name}.py").write_text(text)
    [host] = [part for part in run_tests.parts() if part.name == "host"]
    python = (sys.executable, "-m", "pytest", "-p", "no:xdist", "--rootdir", str(folder), str(folder))
    again = tuple(word for word in host.again[1:] if word not in {"-n", "0"})
    return Part("tests", "", (python,), (*python, *again))


def test_a_test_that_passes_the_second_time_only_is_named_as_unsteady(tmp_path, monkeypatch, capfd):
    marker = tmp_path / "marker"
    text = f"import pathlib, sys\nm = pathlib.Path({str(marker)!r})\nseen = m.exists()\nm.touch()\n"
    command = script(tmp_path, text + "print('what went wrong')\nsys.exit(not seen)\n")
    status, out = run(Part("one", "", (command,), command), monkeypatch, capfd)
    assert status == 0
    assert "one, which is UNSTEADY:\nwhat went wrong\n" in out and "second time only: one" in out


def test_a_test_that_fails_twice_fails_with_its_first_lines_repeated(tmp_path, monkeypatch, capfd):
    command = script(tmp_path, "import sys\nprint('first')\nsys.exit(1)\n")
    again = (*command, "again")
    status, out = run(Part("one", "", (command,), again), monkeypatch, capfd)
    assert status == 1
    assert out.endswith("one, which failed:\nfirst\nparts failed: one\n0 passed, 1 failed\n")


def test_only_the_last_command_runs_again(tmp_path):
    builds = script(tmp_path, "import sys\nsys.exit(1)\n")
    never = (sys.executable, "-c", "raise SystemExit(0)")
    assert not run_part(Part("one", "", (builds, never), never)).passed


@pytest.mark.slow
def test_a_measurement_in_real_time_may_pass_the_second_time(tmp_path, monkeypatch, capfd):
    status, out = run(host_part(tmp_path, measures=PASSES_SECOND), monkeypatch, capfd)
    assert status == 0
    assert "second time only: tests" in out


@pytest.mark.slow
def test_any_other_test_fails_the_first_time(tmp_path, monkeypatch, capfd):
    """Even one that would pass the second time."""
    steady = PASSES_SECOND.replace("@pytest.mark.end_to_end\n", "")
    status, out = run(host_part(tmp_path, computes=steady), monkeypatch, capfd)
    assert status == 1
    assert "run again: test_computes.py::test_measures" in out


@pytest.mark.slow
def test_any_other_test_beside_a_measurement_fails_the_first_time(tmp_path, monkeypatch, capfd):
    status, out = run(host_part(tmp_path, measures=PASSES_SECOND, computes=FAILS), monkeypatch, capfd)
    assert status == 1
    assert (
        "run again: test_computes.py::test_computes" in out
        and "test_measures.py" not in out.split("run again: ")[1].splitlines()[0]
    )


@pytest.mark.slow
def test_a_file_that_cannot_be_imported_fails_the_first_time(tmp_path, monkeypatch, capfd):
    status, _ = run(
        host_part(tmp_path, measures=PASSES_SECOND, broken="import nothing_of_this_name\n"),
        monkeypatch,
        capfd,
    )
    assert status == 1


def test_of_the_parts_only_that_with_measurements_has_a_second_run():
    assert [part.name for part in run_tests.parts() if part.again] == ["host"]


def test_what_a_test_leaves_behind_with_the_output_open_is_not_waited_for(tmp_path, monkeypatch, capfd):
    left = "import subprocess, sys\np = subprocess.Popen(['sleep', '3600'])\nprint(p.pid)\nprint('done', flush=True)\n"
    try:
        status, out = run(Part("one", "", (script(tmp_path, left),)), monkeypatch, capfd)
    finally:
        os.kill(int(out.split("\n")[1]), signal.SIGKILL)
    assert status == 0
    assert "done\n-- one passed" in out


def test_a_command_that_falls_silent_is_ended_and_fails(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(run_tests, "SILENCE_LIMIT_S", 1.0)
    silent = script(tmp_path, "import time\nprint('begun', flush=True)\ntime.sleep(3600)\n")
    status, out = run(Part("one", "", (silent,)), monkeypatch, capfd)
    assert status == 1
    assert re.search(r"begun\n\n.* 1 s, .*\nparts failed: one\n", out)


def test_parts_that_measure_nothing_run_side_by_side_and_their_lines_say_whose_they_are(tmp_path, monkeypatch, capfd):
    """Each of two waits for the other's file; the one that measures begins when both have ended."""
    meets = """
import pathlib, sys, time
own, other = (pathlib.Path(sys.argv[0]).with_name(name) for name in sys.argv[1:])
own.touch()
while not other.exists():
    time.sleep(0.01)
print("met " + other.name, flush=True)
own.with_suffix(".ended").touch()
"""
    waits = script(tmp_path, meets)
    alone = "import pathlib, sys; sys.exit(len(list(pathlib.Path(sys.argv[1]).glob('*.ended'))) != 2)"
    chosen = [
        Part("one", "", ((*waits, "a", "b"),)),
        Part("measures", "", ((sys.executable, "-c", alone, str(tmp_path)),), alone=True),
        Part("two", "", ((*waits, "b", "a"),)),
    ]
    monkeypatch.setattr(run_tests, "SILENCE_LIMIT_S", 60.0)
    outcomes = run_tests.run_parts(chosen)
    assert [(name, outcome.passed) for name, outcome in outcomes.items()] == [
        ("one", True),
        ("measures", True),
        ("two", True),
    ]
    out = capfd.readouterr().out
    assert "     one | met b\n" in out and "     two | met a\n" in out


def test_quick_leaves_out_rigs_real_time_builds_for_boards_and_what_is_slow(monkeypatch):
    style, host = asked_for(monkeypatch, "--quick")
    assert (style.name, host.name) == ("style", "host")
    [command] = host.commands
    assert "not rig and not end_to_end and not board_builds and not slow and not thorough" in command


def test_c_plus_plus_is_formatted_by_the_pinned_version_whatever_the_system_has():
    [style] = [part for part in run_tests.parts() if part.name == "style"]
    [formatter] = {command[0] for command in style.commands if "clang-format" in command[0]}
    said = subprocess.run([formatter, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"version (\S+)", said)[1]
    pins = (run_tests.ROOT / "host/requirements/test.txt").read_text()
    assert f"\nclang-format=={version} " in pins


def test_all_adds_sanitizers_the_virtual_board_and_every_thorough_test(monkeypatch):
    usual, everything = asked_for(monkeypatch), asked_for(monkeypatch, "--all")
    assert [part.name for part in everything] == [*(part.name for part in usual), "fresh"]
    for name, added in (
        ("loader", "-DOPJOULE_SANITIZE=ON"),
        ("rig-sim", "-DOPJOULE_SANITIZE=ON"),
        ("boards", "virtual-board"),
        ("documents", "--all"),
    ):
        words = [
            {word for part in some if part.name == name for command in part.commands for word in command}
            for some in (usual, everything)
        ]
        assert added not in words[0] and added in words[1], name
    for some, leaves_out in ((usual, True), (everything, False)):
        [host] = [part for part in some if part.name == "host"]
        assert ("not thorough" in host.commands[0]) == leaves_out
        assert ("not thorough" in host.again) == leaves_out


def test_fresh_roots_by_name_need_no_set_up_of_this_clone(monkeypatch):
    """Roots have their own."""
    set_ups = []
    [fresh] = asked_for(monkeypatch, "fresh", set_up=set_ups.append)
    assert fresh.name == "fresh" and not set_ups
    assert len(asked_for(monkeypatch, "fresh", "style", set_up=set_ups.append)) == 2 and len(set_ups) == 1


def test_every_line_of_the_tests_that_only_all_runs_names_a_test():
    tests = Path(__file__).resolve().parents[1]
    sources = {path.name: path.read_text() for path in tests.rglob("test_*.py")}
    lines = (tests / "thorough.txt").read_text().splitlines()
    for line in (line for line in lines if line and line[0] != "#"):
        file, separator, name = line.rpartition("::")
        places = [sources[Path(file).name]] if separator else sources.values()
        assert any(f"def {name.partition('[')[0]}" in source for source in places), line


@pytest.mark.parametrize(("mark", "status"), [("not thorough", 5), ("end_to_end", 0)])
def test_marks_that_follow_from_what_a_test_is_are_set_before_tests_are_selected(mark, status):
    """5: pytest's exit status where no test is selected."""
    file = Path(__file__).resolve().parents[1] / "rig" / "test_rig_calibrated.py"
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", "-m", mark, file]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == status


def asked_for(monkeypatch, *options, set_up=lambda needs: None):
    """The parts that `./test` with these options would run."""
    parts = []
    monkeypatch.setattr(run_tests.bootstrap, "set_up", set_up)
    monkeypatch.setattr(run_tests, "run_parts", lambda chosen: parts.extend(chosen) or {})
    monkeypatch.setattr(sys, "argv", ["./test", *options])
    assert run_tests.main() == 0
    return parts


LEAVES_A_THREAD = """
import threading
def test_leaves():
    threading.Thread(target=threading.Event().wait, args=(3,)).start()
"""


@pytest.mark.slow
def test_a_test_that_leaves_a_thread_which_keeps_the_process_from_ending_fails(tmp_path, monkeypatch, capfd):
    status, out = run(host_part(tmp_path, leaves=LEAVES_A_THREAD), monkeypatch, capfd)
    assert status == 1
    assert "left a thread behind" in out
