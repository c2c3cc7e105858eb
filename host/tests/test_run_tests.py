"""`./test` runs what failed once more, alone, and says so."""

import sys

import run_tests
from run_tests import Part, run_part


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text)
    return (sys.executable, str(path))


def run(part, monkeypatch, capfd):
    monkeypatch.setattr(run_tests, "parts", lambda: [part])
    monkeypatch.setattr(run_tests.bootstrap, "set_up", lambda needs: None)
    monkeypatch.setattr(sys, "argv", ["./test"])
    status = run_tests.main()
    return status, capfd.readouterr().out


def test_a_test_that_passes_the_second_time_only_is_named_as_unsteady(tmp_path, monkeypatch, capfd):
    marker = tmp_path / "marker"
    text = f"import pathlib, sys\nm = pathlib.Path({str(marker)!r})\nseen = m.exists()\nm.touch()\n"
    command = script(tmp_path, text + "print('what went wrong')\nsys.exit(not seen)\n")
    status, out = run(Part("one", "", (command,), command), monkeypatch, capfd)
    assert status == 0
    assert "== the last lines of one, which is UNSTEADY:\nwhat went wrong\n" in out
    assert "passed the second time only: one" in out


def test_a_test_that_fails_twice_fails_with_its_first_lines_repeated(tmp_path, monkeypatch, capfd):
    command = script(tmp_path, "import sys\nprint('first')\nsys.exit(1)\n")
    again = (*command, "again")
    status, out = run(Part("one", "", (command,), again), monkeypatch, capfd)
    assert status == 1
    assert out.endswith(
        "== the last lines of one, which failed:\nfirst\nparts failed: one\n0 passed, 1 failed\n"
    )


def test_only_the_last_command_runs_again(tmp_path):
    builds = script(tmp_path, "import sys\nsys.exit(1)\n")
    never = (sys.executable, "-c", "raise SystemExit(0)")
    assert not run_part(Part("one", "", (builds, never), never)).passed
