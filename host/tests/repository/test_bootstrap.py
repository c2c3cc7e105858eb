"""Set-up: what is installed, and that the environment's Python finds the package."""

import subprocess
import sys
import venv
from pathlib import Path

import bootstrap

ROOT = Path(__file__).resolve().parents[3]


def test_the_environments_python_finds_opjoule_from_anywhere(tmp_path, monkeypatch):
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv/bin/python"
    monkeypatch.setattr(bootstrap, "VENV_PYTHON", python)
    bootstrap.find_package(tmp_path / "log")
    say = "import opjoule; print(opjoule.__file__)"
    found = subprocess.run([python, "-c", say], cwd="/", env={}, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(ROOT / "host/opjoule/__init__.py")


def test_every_set_up_has_that_step():
    for needs in (bootstrap.Needs(), bootstrap.Needs(test=True), bootstrap.Needs(loader=False)):
        names = [step.name for step in bootstrap._steps(needs)]
        environment = next(name for name in names if name.endswith("-environment"))
        assert names.index(environment) < names.index("package-path")


def test_set_up_runs_on_the_system_python_alone():
    """It makes the environment, so it cannot need anything of it."""
    ended = subprocess.run(
        [sys.executable, "-S", "-c", "import bootstrap"], cwd=ROOT / "host", check=False, capture_output=True
    )
    assert ended.returncode == 0, ended.stderr
