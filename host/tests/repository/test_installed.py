"""`pip install` from the repository: every file of the package, and none of what measuring needs besides."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OF_A_BUILD = ("__pycache__", "*.egg-info")
USED = """
import sys
sys.modules["serial"] = None  # importing it fails
import opjoule
assert opjoule.__file__.startswith(sys.argv[1]), opjoule.__file__
run = opjoule.open_run(sys.argv[2])
print(f"{run.energy(run.phase('run')).energy_j.value:.6f}")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "host/opjoule", source / "host/opjoule", ignore=shutil.ignore_patterns(*OF_A_BUILD)
    )
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, source]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    return next(out.iterdir())


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(wheel):
    files = [path for path in (ROOT / "host/opjoule").rglob("*") if path.is_file()]
    wanted = {path.relative_to(ROOT / "host").as_posix() for path in files if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert len(wanted) > 250 and wanted - names == set()
    assert {
        "opjoule/py.typed",
        "opjoule/report/assets/report.css",
        "opjoule/devices/profiles/rpi4.toml",
    } < names
    assert not {name.split("/")[0] for name in names} - {"opjoule", "opjoule-0.1.0.dist-info"}


def test_a_run_is_analysed_with_the_installed_package_and_its_dependencies_alone(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", USED, str(tmp_path), str(ROOT / "runs/example")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "1.125942\n"), ended.stderr
