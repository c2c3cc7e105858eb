"""A clone in a folder of any name: what CMake and SCons misread is hidden from them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plain_folder import ROOT, plain

ODD = 'it\'s a "clone" $HOME größe; #1'
CMAKE = "cmake_minimum_required(VERSION 3.18)\nproject(odd C)\nfind_package(Threads REQUIRED)\n"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", ["opjoule", "my clone", "größe", "a+b=c,d@e~f%g"])
def test_a_folder_that_the_tools_take_is_left_as_it_is(tmp_path, cache, name):
    assert plain(tmp_path / name / "build", tmp_path / name) == tmp_path / name / "build"
    assert not cache.exists()


@pytest.mark.parametrize("letter", list("\"'$;#\\`&|*?<>()!{}[]^"))
def test_any_other_gets_a_plain_path_to_the_same_files(tmp_path, letter):
    clone = tmp_path / f"a{letter}b"
    (clone / "loader-cpp").mkdir(parents=True)
    (clone / "loader-cpp/main.cc").write_text("here")
    path = plain(clone / "loader-cpp/main.cc", clone)
    assert path.read_text() == "here" and path == plain(clone / "loader-cpp/main.cc", clone)
    assert letter not in str(path).removeprefix(str(tmp_path))
    plain(clone / "build", clone).joinpath("product").write_text("made")
    assert (clone / "build/product").read_text() == "made"


def test_cmake_configures_in_a_clone_of_an_odd_name(tmp_path):
    source = tmp_path / ODD / "loader-cpp"
    source.mkdir(parents=True)
    (source / "CMakeLists.txt").write_text(CMAKE)
    folders = [plain(source, tmp_path / ODD), plain(tmp_path / ODD / "build/loader", tmp_path / ODD)]
    ran = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", folders[0], "-B", folders[1]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / ODD / "build/loader/build.ninja").exists()


@pytest.mark.slow
def test_the_firmware_is_built_in_a_clone_of_an_odd_name(tmp_path):
    clone = tmp_path / ODD
    for part in ("firmware/lib", "firmware/src", "firmware/platformio"):
        shutil.copytree(ROOT / part, clone / part)
    (clone / "host").mkdir()
    modules = (
        "plain_folder.py",
        "toolchain.py",
        "system_packages.py",
        "this_computer.py",
        "logged_commands.py",
        "packages.txt",
    )
    for file in ("platformio.ini", *(f"host/{name}" for name in modules)):
        shutil.copy(ROOT / file, clone / file)
    (clone / ".venv").symlink_to(Path(sys.prefix))
    ran = subprocess.run(
        [sys.executable, clone / "firmware/platformio/run.py", "run", "-e", "uno"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr
    assert (clone / ".pio/build/uno/firmware.elf").exists()
