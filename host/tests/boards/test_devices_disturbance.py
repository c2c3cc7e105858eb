"""A disturbed run: the stated load runs on the board, and ends without leaving anything."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from opjoule.base.errors import BadInput, DeviceFault
from opjoule.boards.binaries import installed_here
from opjoule.boards.probe import Probe
from opjoule.boards.runner import DISTURBANCES, PROBE_FOLDER, Runner, RunningDisturbance, find_disturbance
from opjoule.boards.shell import LocalShell

ROOT = Path(__file__).resolve().parents[3]


def commands(folder: Path) -> list[Path]:
    """Processes of the disturbance in `folder`."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes():
                processes.append(process)
        except OSError:
            continue
    return processes


@pytest.fixture
def runner(tmp_path):
    """Disturbance of a session whose probe runs."""
    shell, session = LocalShell(), tmp_path / "opjoule-0123456789ab"
    program = installed_here(ROOT / "build").probe
    probe = Probe(shell, program, f"{session}/{PROBE_FOLDER}", [])
    yield Runner(shell, program, str(session))
    probe.close()


@pytest.mark.parametrize("name", sorted(DISTURBANCES))
def test_a_disturbance_runs_until_it_is_stopped(tmp_path, runner, name):
    folder = tmp_path / "a folder; $(x)"
    folder.mkdir()
    disturbance = find_disturbance(name)
    running = RunningDisturbance(runner, disturbance, str(folder))
    assert commands(folder)
    assert len(list(folder.glob("opjoule-disturb.*"))) == (disturbance.file_mib > 0)
    running.stop()
    deadline_s = time.monotonic() + 120
    while commands(folder):
        assert time.monotonic() < deadline_s, "it still runs"
        time.sleep(0.05)
    assert list(folder.iterdir()) == []


def test_an_unknown_disturbance_is_named_with_the_known():
    with pytest.raises(BadInput, match="did you mean 'video'"):
        find_disturbance("vidoe")


def test_a_disturbance_without_room_for_its_file_does_not_start(tmp_path, runner):
    with pytest.raises(DeviceFault, match="does not start"):
        RunningDisturbance(runner, find_disturbance("writer"), str(tmp_path / "missing"))
