"""Fixtures of the tests of studies: a study's modules, its job, and a library in place of Actian Zen's."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
PROBE = ROOT / "loader-cpp" / "probe"


@pytest.fixture
def study(request, monkeypatch):
    """Imports a module of the study's folder by its name; it is forgotten after the test. The name of the test file
    tells the study: the modules for test_study_s3_data.py are those of studies/s3."""
    folder = ROOT / "studies" / request.path.stem.split("_")[2]
    modules = [path.stem for path in folder.glob("*.py")]
    for place in (PROBE, folder.parent, folder):
        monkeypatch.syspath_prepend(str(place))
    for name in modules:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in modules:
        sys.modules.pop(name, None)


@pytest.fixture
def job(study, monkeypatch, capfd):
    """Runs the study's job in this process: gives (exit status, what it said to stderr, to stdout)."""
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["job.py", *arguments])
        capfd.readouterr()
        try:
            status = study("job").main()
        except SystemExit as ended:
            status = ended.code
        said = capfd.readouterr()
        return status, said.err, said.out

    return run


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    """Library with the functions of Actian Zen's, over tables in memory."""
    made = tmp_path_factory.mktemp("zen") / "libbtrieveC.so"
    source = ROOT / "host/tests/support/btrieve_stand_in.cc"
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", made, source],
        check=True,
        timeout=300,
    )
    return made
