"""Python modules for a job: fetched for the board's Python by hash, brought over, verified, unpacked without pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from opjoule.base.errors import BadInput, DeviceFault
from opjoule.base.files import file_sha256
from opjoule.boards.shell import LocalShell
from opjoule.runs.studies.wheels import Interpreter, bring_wheels, fetch_wheels

HERE = Interpreter("3.11", "x86_64", 36)
BOARD = Interpreter("3.11", "aarch64", 31)


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder that pip takes for the package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def wheel(folder: Path, tag: str = "py3-none-any") -> Path:
    path = folder / f"tinymodule-1.0-{tag}.whl"
    about = "tinymodule-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("tinymodule.py", "SAYS = 'brought over'\n")
        made.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tinymodule\nVersion: 1.0\n")
        made.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        made.writestr(f"{about}/RECORD", "")
    return path


def pinned(folder: Path, *wheels: Path) -> Path:
    hashes = " ".join(f"--hash=sha256:{file_sha256(file)}" for file in wheels)
    path = folder / "tiny.txt"
    path.write_text(f"tinymodule==1.0 {hashes}\n")
    return path


def board(folder: Path, copy_in) -> SimpleNamespace:
    runner = SimpleNamespace(files_folder=str(folder), copy_in=copy_in)
    return SimpleNamespace(shell=LocalShell(), runner=runner)


def test_a_module_is_fetched_once_brought_over_and_can_be_imported(tmp_path, index):
    requirements = pinned(tmp_path, wheel(index))
    files = tmp_path / "board"
    files.mkdir()
    place = bring_wheels(board(files, lambda path: shutil.copy(path, files)), requirements, tmp_path / "cache")
    argv = [sys.executable, "-S", "-c", "import tinymodule; print(tinymodule.SAYS)"]
    said = subprocess.run(argv, env={"PYTHONPATH": place}, capture_output=True, text=True, check=True)
    assert said.stdout == "brought over\n"
    next(index.glob("*.whl")).unlink()  # the index is gone
    bring_wheels(board(files, lambda path: shutil.copy(path, files)), requirements, tmp_path / "cache")


def test_a_wheel_that_arrives_changed_is_not_unpacked(tmp_path, index):
    requirements = pinned(tmp_path, wheel(index))
    files = tmp_path / "board"
    files.mkdir()

    def damaged(path: Path) -> str:
        (files / path.name).write_bytes(path.read_bytes()[:-1] + b"!")
        return str(files / path.name)

    with pytest.raises(DeviceFault, match="undamaged"):
        bring_wheels(board(files, damaged), requirements, tmp_path / "cache")
    assert not (files / "python").exists()


def test_a_wheel_of_another_hash_is_refused_when_fetched_and_when_kept(tmp_path, index):
    made = wheel(index)
    requirements = pinned(tmp_path, made)
    (kept,) = fetch_wheels(requirements, HERE, tmp_path / "cache")
    kept.write_bytes(kept.read_bytes() + b"!")
    with pytest.raises(BadInput, match="was changed"):
        fetch_wheels(requirements, HERE, tmp_path / "cache")
    with zipfile.ZipFile(made, "a") as changed:
        changed.writestr("more.py", "")
    with pytest.raises(BadInput, match=r"tiny\.txt has no wheels"):
        fetch_wheels(requirements, HERE, tmp_path / "other")


def test_wheels_are_chosen_for_the_boards_processor_and_c_library(tmp_path, index):
    for_board = wheel(index, "cp311-cp311-manylinux_2_17_aarch64")
    too_new = wheel(index, "cp311-cp311-manylinux_2_38_aarch64")
    requirements = pinned(tmp_path, for_board, too_new)
    (fetched,) = fetch_wheels(requirements, BOARD, tmp_path / "cache")
    assert fetched.name == for_board.name
    with pytest.raises(BadInput, match=r"Python 3\.11 on x86_64 with glibc 2\.36"):
        fetch_wheels(requirements, HERE, tmp_path / "cache")


def test_this_computers_own_python_is_found():
    python = Interpreter.of(LocalShell())
    assert python.version.startswith("3.") and python.glibc >= 17 and python.machine
