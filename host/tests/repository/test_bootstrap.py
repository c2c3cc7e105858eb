"""Set-up: what is installed, and that the environment's Python finds the package."""

import subprocess
import sys
import threading
import venv
from pathlib import Path

import bootstrap
import logged_commands
import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_environments_python_finds_opjoule_from_anywhere(tmp_path, monkeypatch):
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv/bin/python"
    monkeypatch.setattr(bootstrap, "VENV_PYTHON", python)
    bootstrap.find_package(tmp_path / "log")
    say = "import granted_clock, opjoule; print(opjoule.__file__)"
    ended = subprocess.run([python, "-c", say], cwd="/", env={}, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == str(ROOT / "host/opjoule/__init__.py")


def test_every_set_up_has_that_step():
    for needs in (bootstrap.Needs(), bootstrap.Needs(test=True), bootstrap.Needs(loader=False)):
        names = [step.name for step in bootstrap._steps(needs)]
        environment = next(name for name in names if name.endswith("-environment"))
        assert names.index(environment) < names.index("package-path")


def test_a_copied_folder_has_that_step_done_anew(monkeypatch):
    def fingerprint() -> str:
        steps = {step.name: step for step in bootstrap._steps(bootstrap.Needs())}
        return bootstrap._fingerprint(steps["package-path"])

    here = fingerprint()
    monkeypatch.setattr(bootstrap, "ROOT", bootstrap.ROOT.parent)
    assert fingerprint() != here


def test_set_up_runs_on_the_system_python_alone():
    """It makes the environment, so it cannot need anything of it."""
    ended = subprocess.run(
        [sys.executable, "-S", "-c", "import bootstrap"], cwd=ROOT / "host", check=False, capture_output=True
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("fails", [False, True])
def test_uv_installs_by_hash_and_pip_takes_its_place_where_it_fails(tmp_path, monkeypatch, fails):
    """uv has no wheel for every computer, and does not know an index that only pip's configuration names."""
    commands = []

    def logged(command, log):
        commands.append(command)
        if fails and command[0].endswith("/uv"):
            raise bootstrap.SetupError("no index")

    monkeypatch.setattr(bootstrap, "logged", logged)
    lock = tmp_path / "lock.txt"
    bootstrap.make_environment(lock, tmp_path / "log")
    installs = [command for command in commands if "install" in command]
    assert all("--require-hashes" in command for command in installs)
    assert [Path(command[0]).name for command in installs if str(lock) in command] == ["uv", "python"][
        : 2 if fails else 1
    ]


def test_a_build_folder_that_was_made_elsewhere_is_removed_before_it_is_used(tmp_path, monkeypatch):
    """CMake refuses a cache that names another folder, as after a copy of a clone."""
    monkeypatch.setattr(bootstrap, "logged", lambda *_: None)
    build, in_place, log = tmp_path / "copy", tmp_path / "own", tmp_path / "log"
    for folder, named in ((build, in_place), (in_place, in_place), (tmp_path / "moved", tmp_path / "gone")):
        folder.mkdir()
        (folder / "CMakeCache.txt").write_text(f"# made\nCMAKE_CACHEFILE_DIR:INTERNAL={named}\nA:BOOL=ON\n")
    (tmp_path / "linked").symlink_to(in_place)
    for folder in (build, in_place, tmp_path / "linked", tmp_path / "moved", tmp_path / "none"):
        bootstrap.cmake_build(ROOT / "loader-cpp", folder, log, "loader")
    assert sorted(path.parent.name for path in tmp_path.glob("*/CMakeCache.txt")) == ["linked", "own"]


def test_a_second_set_up_waits_for_the_first_and_finds_its_steps_done(tmp_path, monkeypatch):
    ran, said, waits = [], [], threading.Event()

    def say(line):
        said.append(line)
        waits.set()

    step = bootstrap.Step("step", "a step", (), ran.append)
    monkeypatch.setattr(bootstrap, "BUILD", tmp_path)
    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path / "setup")
    monkeypatch.setattr(bootstrap, "_steps", lambda needs: [step])
    monkeypatch.setattr(bootstrap, "say", say)
    (tmp_path / "setup").mkdir()
    second = threading.Thread(target=bootstrap.set_up, args=(bootstrap.Needs(),), daemon=True)
    with bootstrap._alone():
        second.start()
        assert waits.wait(60)
        (tmp_path / "setup" / "step").write_text(bootstrap._fingerprint(step))
    second.join(60)
    assert not second.is_alive() and ran == []
    assert said == ["Set-up: another one is running in this folder; waiting for it"]
    (tmp_path / "setup" / "step").unlink()
    bootstrap.set_up(bootstrap.Needs())
    assert len(ran) == 1


def test_a_long_step_says_how_much_of_it_is_built(tmp_path, monkeypatch):
    said, heard = [], threading.Event()

    def say(line):
        said.append(line)
        if "built" in line:
            heard.set()

    def build(log):
        log.write_text("[1/49] Building A\n[18/49] Building B\nwarning: [19/49] is no count\n")
        assert heard.wait(60)

    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path)
    monkeypatch.setattr(bootstrap, "PROGRESS_S", 0.01)
    monkeypatch.setattr(bootstrap, "say", say)
    bootstrap._run_lane([(bootstrap.Step("step", "a step", (), build), "mark")])
    begins, counted, *_, ends = said
    assert begins == "  a step ..." and ends.startswith("  a step: done in ")
    assert counted.startswith("  a step: 18 of 49 parts built after ")


def test_after_an_interruption_nothing_more_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(logged_commands, "_ENDED", threading.Event())
    logged_commands.end_running()
    with pytest.raises(bootstrap.SetupError, match="interrupted"):
        logged_commands.logged(["true"], tmp_path / "log")
    assert not (tmp_path / "log").exists()
