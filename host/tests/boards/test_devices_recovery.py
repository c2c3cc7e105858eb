"""Recovery of a board whose medium was unmounted when the measurement ended, or by a reboot."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from opjoule.boards import preparation
from opjoule.boards.board_state import read_facts
from opjoule.boards.medium import FOLDER, Medium
from opjoule.boards.preparation import recover
from opjoule.boards.sessions import new_session
from opjoule.boards.shell import LocalShell

SHELL = LocalShell()
KEPT = "leveldb-0123456789abcdef"


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("OPJOULE_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def mount(device: str, path: Path) -> None:
    path.mkdir()
    subprocess.run(["mount", "-t", "ext4", device, path], check=True)


@pytest.fixture
def medium(tmp_path):
    """A medium with its own device, unmounted; on it an interrupted session's database and a kept one."""
    if os.geteuid() != 0:
        pytest.skip("mounts a medium, which root may")
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", disk], check=True)
    losetup = subprocess.run(["losetup", "--find", "--show", disk], capture_output=True, text=True, check=False)
    if losetup.returncode != 0:
        pytest.skip(f"needs a loop device: {losetup.stderr.strip()}")
    device = losetup.stdout.strip()
    path = tmp_path / "medium"
    mount(device, path)
    (path / f"{new_session()}-leveldb").mkdir()
    (path / FOLDER / KEPT / "database").mkdir(parents=True)
    (path / FOLDER / KEPT / "sizes").write_text("")
    subprocess.run(["umount", path], check=True)
    path.rmdir()
    yield Medium(str(path), device)
    for point in (path, tmp_path / "elsewhere"):
        subprocess.run(["umount", "-q", point], check=False)
    subprocess.run(["losetup", "--detach", device], check=True)


def restore(tmp_path: Path, *media: Medium, kept: bool = False) -> tuple[list[str], list[str]]:
    return recover(SHELL, media, tmp_path / "fetched", str(tmp_path / "journal"), kept=kept)


def test_an_unmounted_medium_is_mounted_searched_and_unmounted(medium, tmp_path):
    done, left = restore(tmp_path, medium)
    assert left == []
    assert [line.rpartition(" ")[0] for line in done] == [
        "removed",
        "kept for --reset copy, restore --kept removes it:",
    ]
    assert restore(tmp_path, medium, kept=True) == ([f"removed {medium.path}/{FOLDER}/{KEPT}"], [])
    assert restore(tmp_path, medium, kept=True) == ([], [])
    assert not Path(medium.path).exists()
    assert not (tmp_path / "journal").exists()


def test_two_media_of_one_path_are_searched_one_after_the_other(medium, tmp_path):
    done, left = restore(tmp_path, replace(medium, device="/dev/nowhere"), medium)
    assert len(done) == 2
    [line] = left
    assert line.startswith("NOT looked at: /dev/nowhere ") and "rig.toml" in line


def test_a_medium_that_is_mounted_stays_mounted(medium, tmp_path):
    mount(medium.device, Path(medium.path))
    assert len(restore(tmp_path, medium)[0]) == 2
    assert os.path.ismount(medium.path)


def test_a_medium_that_cannot_be_searched_is_named(medium, tmp_path, monkeypatch):
    mount(medium.device, tmp_path / "elsewhere")
    [line] = restore(tmp_path, medium)[1]
    assert line.startswith(f"NOT looked at: {medium.device} ") and f"{tmp_path}/elsewhere" in line
    subprocess.run(["umount", tmp_path / "elsewhere"], check=True)
    facts = read_facts(SHELL, journal=str(tmp_path / "journal"))
    with monkeypatch.context() as patched:
        patched.setattr(preparation, "read_facts", lambda *_, **__: replace(facts, rights="none"))
        [line] = restore(tmp_path, medium)[1]
        assert line.startswith(f"NOT looked at: {medium.path} ") and "root" in line
    while subprocess.run(["wipefs", "-q", "-a", medium.device], check=False).returncode:
        time.sleep(0.1)  # a mount namespace that another test has just made keeps the device busy for a moment
    [line] = restore(tmp_path, medium)[1]
    assert line.startswith(f"NOT looked at: {medium.path} is not mounted: ")
    assert not Path(medium.path).exists()
