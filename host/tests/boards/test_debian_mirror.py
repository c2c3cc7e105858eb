"""What boards need comes from this computer's own Debian mirror, else from Debian's."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest
from opjoule.boards.virtual.image import DEBIAN, mirrors

ROOT = Path(__file__).resolve().parents[3]
APT = """#!/bin/sh
case "$1" in indextargets) cat <<'END'
{sources}
END
esac
"""


@pytest.fixture
def computer(tmp_path, monkeypatch):
    """Makes this computer one with these apt sources: `address|origin|label`, as apt-get prints them."""

    def made(*sources):
        program = tmp_path / "bin/apt-get"
        program.parent.mkdir(exist_ok=True)
        program.write_text(APT.format(sources="\n".join(sources)))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    return made


def test_the_computer_s_own_mirror_comes_first_and_debian_s_after_it(computer):
    computer(
        "http://mirror.example/debian/|Debian|Debian",
        "http://mirror.example/debian/|Debian|Debian",
        "http://second.example/debian/|Debian|Debian",
        "http://mirror.example/security|Debian|Debian-Security",
    )
    assert mirrors("Debian") == ["http://mirror.example/debian", DEBIAN["Debian"]]
    assert mirrors("Debian-Security") == ["http://mirror.example/security", DEBIAN["Debian-Security"]]


@pytest.mark.parametrize(
    "source",
    [
        "http://raspbian.raspberrypi.com/raspbian/|Raspbian|Raspbian",
        "http://archive.raspberrypi.com/debian/|Raspberry Pi Foundation|Raspberry Pi Foundation",
        "http://archive.ubuntu.com/ubuntu/|Ubuntu|Ubuntu",
        "http://deb.debian.org/debian/|Debian Backports|Debian Backports",
        "http://mirror.example/debian/||",
        "cdrom:[Debian GNU/Linux 13]/|Debian|Debian",
    ],
)
def test_an_archive_that_is_not_debian_s_or_that_apt_does_not_know_yet_is_no_mirror(computer, source):
    computer(source)
    assert mirrors("Debian") == [DEBIAN["Debian"]]


def test_a_computer_without_apt_takes_debian_s(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mirrors("Debian") == [DEBIAN["Debian"]]


@pytest.fixture
def board_builds(monkeypatch):
    """loader-cpp/board-builds as a module."""
    loader = importlib.machinery.SourceFileLoader("board_builds", str(ROOT / "loader-cpp/board-builds"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("board_builds", loader))
    monkeypatch.syspath_prepend(str(ROOT / "host"))
    monkeypatch.setitem(sys.modules, "board_builds", module)  # a dataclass looks its module up
    loader.exec_module(module)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    return module


OWN = ("http://mirror.example/debian|Debian|Debian", "http://mirror.example/security|Debian|Debian-Security")
OWN_MAIN = {"http://mirror.example/debian"}


@pytest.mark.parametrize(
    ("has", "used"),
    [
        (OWN_MAIN | {"http://mirror.example/security"}, OWN_MAIN | {"http://mirror.example/security"}),
        (set(DEBIAN.values()), set(DEBIAN.values())),
        (OWN_MAIN, OWN_MAIN),
        ({DEBIAN["Debian"]}, {DEBIAN["Debian"]}),
    ],
    ids=["own", "own-without-suite", "own-main-alone", "debian-main-alone"],
)
def test_boards_lists_come_from_the_first_archives_that_have_them(
    computer, board_builds, tmp_path, monkeypatch, has, used
):
    computer(*OWN)
    apt = board_builds.PrivateApt(tmp_path / "apt", "arm64", tmp_path / "log")

    def asked():
        lines = (tmp_path / "apt/sources.list").read_text().splitlines()
        return {line.split()[2] for line in lines}

    def run(*arguments):
        assert arguments == ("update", "--error-on=any")
        if not asked() <= has:
            raise board_builds.SetupError("404")

    monkeypatch.setattr(apt, "run", run)
    apt.update()
    assert asked() == used


def test_lists_that_no_archive_has_are_an_error(computer, board_builds, tmp_path):
    computer(*OWN)
    apt = board_builds.PrivateApt(tmp_path / "apt", "arm64", tmp_path / "log")
    apt.command = ["false"]
    with pytest.raises(board_builds.SetupError):
        apt.update()
