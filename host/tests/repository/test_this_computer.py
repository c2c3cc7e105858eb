"""What runs on another system than Debian, or with an old Python: one line, before anything is loaded or installed."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import bootstrap
import pytest
import system_packages
import this_computer
from logged_commands import SetupError

ROOT = Path(__file__).resolve().parents[3]
LAUNCHERS = (
    *(f"host/{name}.py" for name in ("measure", "compare", "campaign", "calibrate", "runs", "view", "validate")),
    "loader-cpp/board-builds",
    "host/bootstrap.py",
)
OLDEST_READERS = {"host/validate.py": (3, 8), "loader-cpp/board-builds": (3, 8), "host/bootstrap.py": (3, 9)}
"""Launchers that a still older Python cannot read; the README has none of them."""
FEDORA = 'NAME="Fedora Linux"\nVERSION_ID=42\nID=fedora\nPRETTY_NAME="Fedora Linux 42 (Server Edition)"\n'
ARCH = 'NAME="Arch Linux"\nPRETTY_NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n'
BOOKWORM = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n'
TRIXIE = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nVERSION_ID="13"\nID=debian\n'
FORKY = 'PRETTY_NAME="Debian GNU/Linux forky/sid"\nID=debian\n'
RASPBIAN = 'PRETTY_NAME="Raspbian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=raspbian\nID_LIKE=debian\n'
UBUNTU = "# made by hand\nPRETTY_NAME='Ubuntu 24.04.1 LTS'\nVERSION_ID='24.04'\nID=ubuntu\nID_LIKE=debian\n"
MINT = 'PRETTY_NAME="Linux Mint 22"\nVERSION_ID="22"\nID=linuxmint\nID_LIKE="ubuntu debian"\n'
ELSEWHERE = """
import os, platform, runpy, signal, sys
for name in ("fcntl", "pwd", "grp", "termios", "resource", "pty"):
    sys.modules[name] = None
for owner, names in ((os, ("memfd_create", "fork", "geteuid")), (signal, ("pthread_sigmask", "SIGHUP", "SIG_BLOCK"))):
    for name in names:
        delattr(owner, name)
platform.system = lambda: SYSTEM
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def os_release(folder, text):
    path = folder / "os-release"
    path.write_text(text)
    return path


@pytest.fixture
def apt(tmp_path, monkeypatch):
    """A PATH that has apt-get and dpkg-query alone."""
    for name in ("apt-get", "dpkg-query"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.mark.parametrize(
    ("system", "words"),
    [("Darwin", "this is macOS"), ("Windows", "wsl --install -d Debian"), ("FreeBSD", "this is FreeBSD")],
)
def test_a_system_without_linux_is_told_what_runs_there(system, words):
    line = this_computer.unable(system, (3, 13, 0))
    assert words in line and "\n" not in line
    assert all(name in line for name in ("Debian 12", "Debian 13", "Raspberry Pi OS"))
    assert "pip install ." in line and "opjoule runs" in line and "opjoule.open_run" in line


@pytest.mark.parametrize("python", [(3, 7, 16), (3, 9, 2), (3, 10, 12)])
def test_an_old_python_is_named(python):
    line = this_computer.unable("Linux", python)
    assert "needs Python 3.11 or later" in line and f"this is {'.'.join(map(str, python))} of " in line


def test_linux_with_a_python_that_is_new_enough_goes_on():
    assert this_computer.unable("Linux", (3, 11, 0)) == this_computer.unable("Linux", (3, 14, 0)) == ""


@pytest.mark.parametrize(("text", "name"), [(FEDORA, "Fedora Linux 42"), (ARCH, "Arch Linux"), ("", "a Linux")])
@pytest.mark.usefixtures("apt")
def test_a_linux_that_is_not_made_from_debian_is_told_what_runs_there(tmp_path, text, name):
    """Even with an apt-get: some have one of their own."""
    line = this_computer.without_packages(os_release(tmp_path, text))
    assert line.startswith(f"this is {name}") and "\n" not in line
    assert "host/runs.py" in line and "pip install ." in line and "OPJOULE_SKIP_PACKAGES=1" in line


@pytest.mark.parametrize("text", [BOOKWORM, TRIXIE, FORKY, RASPBIAN, UBUNTU, MINT])
@pytest.mark.usefixtures("apt")
def test_what_is_made_from_debian_gets_its_packages(tmp_path, text):
    assert this_computer.without_packages(os_release(tmp_path, text)) == ""


def test_a_debian_without_apt_is_told_as_others_are(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Debian GNU/Linux 12" in this_computer.without_packages(os_release(tmp_path, BOOKWORM))


@pytest.mark.parametrize(
    ("text", "untested"), [(BOOKWORM, 0), (TRIXIE, 0), (RASPBIAN, 0), (FORKY, 1), (UBUNTU, 1), (MINT, 1)]
)
def test_a_system_that_is_not_tested_is_tried_with_a_line(tmp_path, text, untested):
    kernel = tmp_path / "kernel"
    kernel.write_text("6.1.0-32-amd64\n")
    lines = this_computer.remarks(os_release(tmp_path, text), kernel)
    assert len(lines) == untested
    assert all(f"{this_computer.system_name(tmp_path / 'os-release')} is not tested" in line for line in lines)


def test_wsl_is_told_about_usb(tmp_path):
    kernel = tmp_path / "kernel"
    kernel.write_text("5.15.167.4-microsoft-standard-WSL2\n")
    [line] = this_computer.remarks(os_release(tmp_path, BOOKWORM), kernel)
    assert "WSL" in line and "usbipd" in line


@pytest.mark.parametrize("system", ["Windows", "Darwin"])
@pytest.mark.parametrize("launcher", [*LAUNCHERS, "host/this_computer.py"])
def test_every_launcher_says_one_line_before_it_loads_what_is_not_there(launcher, system):
    code = ELSEWHERE.replace("SYSTEM", repr(system))
    ended = subprocess.run(
        [sys.executable, "-c", code, ROOT / launcher, "./test"], capture_output=True, text=True, check=False
    )
    [line] = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (1, "") and "needs Debian 12" in line
    name = "./test" if launcher.endswith("this_computer.py") else Path(launcher).name
    assert line.startswith(f"{name}: this is {'macOS' if system == 'Darwin' else system}")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_an_old_python_can_read_every_launcher_up_to_its_line(launcher):
    text = (ROOT / launcher).read_text()
    ast.parse(text, feature_version=OLDEST_READERS.get(launcher, (3, 6)))
    ast.parse((ROOT / "host/this_computer.py").read_text(), feature_version=(3, 6))
    before = text[: text.index("this_computer.end_if_unable(")]
    assert not re.search(r"^(from|import) (bootstrap|opjoule)", before, re.MULTILINE)


def test_the_tests_ask_first_too():
    lines = (ROOT / "test").read_text().splitlines()
    assert lines[-2:] == [
        "python3 host/this_computer.py ./test || exit 1",
        'exec python3 host/run_tests.py "$@"',
    ]


@pytest.mark.parametrize("launcher", ["host/measure.py", "test"])
@pytest.mark.parametrize(
    ("has_apt", "user", "words"),
    [
        (False, 0, "install Python 3.11 or later"),
        (True, 1000, "python3 is missing, "),
        (True, 0, "apt-get could not install python3: "),
    ],
)
def test_where_python_cannot_be_installed_the_shell_says_why(tmp_path, launcher, has_apt, user, words):
    for name in ("dirname", "env", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name))
    programs = {"id": f"echo {user}"} | ({"apt-get": "exit 100"} if has_apt else {})
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!{shutil.which('sh')}\n{line}\n")
        (tmp_path / name).chmod(0o755)
    ended = subprocess.run(
        ["sh", ROOT / launcher], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    *before, line = ended.stderr.splitlines()
    name = "./test" if launcher == "test" else "measure.py"
    assert ended.returncode == 1 and line.startswith(f"{name}: {words}")
    assert [line.startswith("python3 is missing: ") for line in before] == [True] * (has_apt and not user)


def test_a_clone_on_a_noexec_or_foreign_folder_is_refused_before_anything_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path / "setup")
    monkeypatch.setattr(bootstrap, "BUILD", tmp_path)
    monkeypatch.setattr(bootstrap, "_todo", lambda needs: ["a step"])
    monkeypatch.setattr(bootstrap, "_run", lambda todo: pytest.fail("set-up began"))
    assert this_computer.unusable(tmp_path) == ""
    flags = SimpleNamespace(f_flag=os.ST_NOEXEC | os.ST_NOSUID)
    with monkeypatch.context() as patch:
        patch.setattr(this_computer.os, "statvfs", lambda folder: flags)
        with pytest.raises(SetupError, match=f"{ROOT} is mounted noexec"):
            bootstrap.set_up(bootstrap.Needs())
    monkeypatch.setattr(this_computer.os, "access", lambda folder, mode: False)
    with pytest.raises(SetupError, match=f"{ROOT} cannot be written"):
        bootstrap.set_up(bootstrap.Needs())
    assert not (tmp_path / "setup").exists()


def test_a_full_folder_for_temporary_files_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap, "_todo", lambda needs: ["a step"])
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    with pytest.raises(SetupError, match=r"/gone, .*: No such file.*TMPDIR"):
        bootstrap.set_up(bootstrap.Needs())
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert this_computer.no_temporary_space() == ""
    free = SimpleNamespace(free=16_384)
    monkeypatch.setattr(this_computer.shutil, "disk_usage", lambda folder: free)
    with pytest.raises(SetupError, match=f"{tmp_path} has 0 MB free, .* 100 MB"):
        bootstrap.set_up(bootstrap.Needs())


@pytest.fixture
def fedora(tmp_path, monkeypatch):
    """Fedora without apt-get. The packages that set-up would install, by call."""
    place, installed = os_release(tmp_path, FEDORA), []
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv("OPJOULE_SKIP_PACKAGES", raising=False)
    without_packages = this_computer.without_packages
    monkeypatch.setattr(this_computer, "without_packages", lambda: without_packages(place))
    monkeypatch.setattr(system_packages, "logged", lambda *command: installed.append(command))
    return installed


def test_what_needs_no_packages_of_debian_is_set_up_elsewhere_too(fedora, tmp_path):
    system_packages.install_named(["python3-venv", "openssh-client"], tmp_path / "log")
    assert fedora == []


def test_what_needs_them_is_refused_in_one_line(fedora, tmp_path, monkeypatch):
    with pytest.raises(SetupError, match="this is Fedora Linux 42") as refused:
        system_packages.install_named(["python3-venv", "g++"], tmp_path / "log")
    assert "\n" not in str(refused.value) and fedora == []
    monkeypatch.setenv("OPJOULE_SKIP_PACKAGES", "1")
    system_packages.install_named(["python3-venv", "g++"], tmp_path / "log")
