"""Nothing of the user's is ever removed, overwritten or unmounted: each test has something to lose."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from board_answers import ANSWERS, MARK, plan, run, state
from opjoule.base.errors import BadInput, DeviceFault, RigFault
from opjoule.bench.simulation.rig import RigSetup, twin_rig
from opjoule.boards.binaries import installed_here
from opjoule.boards.board_state import StateSettings, read_facts, read_state
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import recover
from opjoule.boards.probe import Probe
from opjoule.boards.profiles import find_profile
from opjoule.boards.runner import DISTURBANCES, PROBE_FOLDER, Runner, RunningDisturbance
from opjoule.boards.sessions import database_folder, find_sessions, new_session, remove_sessions
from opjoule.boards.shell import LocalShell
from opjoule.boards.state_gate import StateWatch
from opjoule.boards.steps import Change, prepare_script, restore_script
from opjoule.boards.virtual.image import Image
from opjoule.boards.virtual.machine import Machine

ROOT = Path(__file__).resolve().parents[3]
SHELL = LocalShell()


def keep(folder: Path, text: str = "the user's own\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "thesis.tex"
    file.write_text(text)
    return file


def restore(tmp_path: Path, *storage: Path) -> tuple[list[str], list[str]]:
    journal = str(tmp_path / "journal")
    return recover(SHELL, [Medium(str(folder)) for folder in storage], tmp_path / "fetched", journal)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder of the user's that OPJOULE_WORK names."""
    folder = tmp_path / "scratch disk"
    folder.mkdir()
    monkeypatch.setenv("OPJOULE_WORK", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_restore_leaves_the_users_own_folders_beside_its_work(work, tmp_path):
    kept = [
        keep(work / "photos"),
        keep(work / "opjoule-notes"),
        keep(work / "a" / "b"),
        keep(work / "opjoule-1"),
    ]
    (work / "a" / "b" / "pid").write_text("1 x\n")
    assert restore(tmp_path) == ([], [])
    assert [file.read_text() for file in kept] == ["the user's own\n"] * len(kept)
    assert (work / "a" / "b" / "pid").exists()


def test_restore_lists_and_removes_what_a_session_has_left(work, tmp_path):
    board = read_facts(SHELL, journal=str(tmp_path / "journal"), session=(session := new_session()))
    run_folder = Path(board.work, session, "run-1")
    run_folder.mkdir()
    (run_folder / "pid").write_text("1 another-boot\n")
    (run_folder / "run-1.oplog").write_text("operations")
    kept = [keep(Path(board.work) / "opjoule-notes"), keep(tmp_path / "storage" / "opjoule-leveldb")]
    database = keep(Path(database_folder(str(tmp_path / "storage"), session, "leveldb")))
    done, left = restore(tmp_path, tmp_path / "storage")
    assert left == []
    assert done[1:] == [f"removed {Path(board.work, session)}", f"removed {database.parent}"]
    assert (tmp_path / "fetched" / f"{session}-run-1" / "run-1.oplog").read_text() == "operations"
    assert not database.exists()
    assert all(file.exists() for file in kept)


def test_a_symbolic_link_with_a_sessions_name_is_not_followed(work, tmp_path):
    board = read_facts(SHELL, journal=str(tmp_path / "journal"))
    kept = keep(tmp_path / "home")
    for place in (Path(board.work), tmp_path / "storage"):
        place.mkdir(exist_ok=True)
        (place / new_session()).symlink_to(kept.parent)
    assert restore(tmp_path, tmp_path / "storage") == ([], [])
    assert kept.exists()


def test_a_working_folder_that_is_a_symbolic_link_is_refused(work, tmp_path):
    kept = keep(tmp_path / "home" / new_session())
    (work / f"opjoule-{os.getuid()}").symlink_to(tmp_path / "home")
    with pytest.raises(DeviceFault, match="symbolic link"):
        restore(tmp_path)
    assert kept.exists()


@pytest.mark.parametrize(
    "name",
    [
        "opjoule-leveldb",
        "opjoule-0123456789a",
        "opjoule-0123456789AB",
        "opjoule-0123456789ab-",
        "xopjoule-0123456789ab",
    ],
)
def test_only_folders_with_a_sessions_name_are_removed(tmp_path, name):
    kept = keep(tmp_path / name)
    ours = keep(tmp_path / new_session() / "run-1")
    assert set(find_sessions(SHELL, [str(tmp_path)])) == {str(ours.parent.parent)}
    with pytest.raises(DeviceFault, match=re.escape(str(kept.parent))):
        remove_sessions(SHELL, [str(kept.parent), str(ours.parent)])
    assert kept.exists()
    assert not ours.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user, which root may")
def test_another_users_folder_is_left_alone(tmp_path):
    kept = keep(tmp_path / new_session())
    os.chown(kept.parent, 12345, 12345)
    with pytest.raises(DeviceFault, match="another user's"):
        remove_sessions(SHELL, [str(kept.parent)])
    assert find_sessions(SHELL, [str(tmp_path)]) == []
    assert kept.exists()


def test_a_file_that_a_killed_program_made_during_the_removal_is_removed_as_well(tmp_path, monkeypatch):
    """A stand-in for rm that leaves a file behind the first time, as if a program's last call had made it."""
    ours = keep(tmp_path / new_session()).parent
    tool = tmp_path / "tools" / "rm"
    tool.parent.mkdir()
    late = f"mkdir {ours}; >{ours}/late; >{tmp_path}/once; exit 1"
    tool.write_text(f'#!/bin/sh\n/bin/rm "$@"\n[ -e {tmp_path}/once ] || {{ {late}; }}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    assert remove_sessions(SHELL, [str(ours)]) == [str(ours)]
    assert (tmp_path / "once").exists() and not ours.exists()


# --- block devices ------------------------------------------------------------------------------------------------

EXPENDABLE = Medium("/mnt/ssd", "/dev/loop0", expendable=True)


def test_a_device_node_is_what_its_numbers_say_not_its_name():
    """179:0 is the disk under /, whatever the node is called; loop0 of ANSWERS has 7:0."""
    disguised = state(medium=[["/dev/loop0", "block", "0xb3:0x0"]], block=ANSWERS["block"])
    with pytest.raises(BadInput, match="root file system"):
        plan(disguised, medium=EXPENDABLE, file_system="new")


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a device node, which root may")
def test_the_numbers_are_read_from_the_node_itself(tmp_path):
    node = tmp_path / "loop0"
    os.mknod(node, 0o60600, os.makedev(179, 0))
    assert read_state(SHELL, "root", cpufreq="/none", device=str(node), path="/mnt").medium_number == "179:0"


@pytest.mark.parametrize("function", ["make_file_system", "check_file_system", "journal_off", "mount_medium"])
def test_a_node_that_has_become_another_device_is_not_touched(tmp_path, function):
    """Between plan and step a USB disk may have been unplugged and another plugged in."""
    disk, after = tmp_path / "disk", tmp_path / "after"
    disk.write_bytes(b"photos")
    [after_step] = [Change("x", ("touch", str(after)))]
    steps = [Change("x", (function, str(disk), "8:10", str(tmp_path))), after_step]
    [outcome] = run(prepare_script(steps, str(tmp_path / "journal")))
    assert outcome[:2] == ["failed", "0001"]
    assert "block device 8:10" in outcome[2]
    assert disk.read_bytes() == b"photos"
    assert not after.exists(), "steps after one that is needed would change something else"


def test_a_journal_is_switched_back_on_the_file_system_not_on_the_devices_name(tmp_path):
    medium = Medium("/mnt/ssd", "/dev/disk/by-id/x", expendable=True)
    records = {
        "file_system": [["53ef", "04000000", MARK.replace("-", "")]],
        "medium": [["/dev/sda", "block", "8:0"]],
    }
    [step] = [step for step in plan(state(**records), medium=medium, journal="off").steps if "journal" in step.about]
    assert step.undo == ("journal_back", "on", MARK)
    [outcome] = run(prepare_script([Change("x", ("journal_back", "on", MARK))], str(tmp_path / "journal")))
    assert MARK in outcome[2]


# --- mounts -------------------------------------------------------------------------------------------------------


def on_path(folder: Path, **programs: str) -> dict[str, str]:
    """An environment whose PATH begins with these programs."""
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("mounted", "unmounted"),
    [
        ("/dev/sda 8:0", True),
        ("/dev/sdb 8:16", False),
        ("/dev/sda 8:0\n/dev/sdb 8:16", False),
        ("opjoule-memory 0:51", False),
    ],
)
def test_only_what_a_measurement_has_mounted_is_unmounted(tmp_path, mounted, unmounted):
    """The last line of findmnt is what lies on top."""
    journal = str(tmp_path / "journal")
    programs = {
        "mountpoint": "exit 0",
        "findmnt": f"echo '{mounted}'",
        "umount": f"touch '{tmp_path}/unmounted'",
    }
    environment = on_path(tmp_path / "bin", **programs)
    run(prepare_script([Change("x", ("true",), ("unmount", "/mnt/ssd", "8:0"))], journal))
    ran = subprocess.run(["sh", "-s"], input=restore_script(journal), capture_output=True, env=environment, check=True)
    assert (tmp_path / "unmounted").exists() == unmounted
    assert ran.stdout.startswith(b"done" if unmounted else b"failed")


# --- files --------------------------------------------------------------------------------------------------------


def test_files_for_probing_filling_and_disturbing_replace_nothing(tmp_path, tmp_path_factory):
    kept = keep(tmp_path / "elsewhere")
    for name in ("opjoule-speed", "opjoule-fill", "opjoule-disturb"):
        (tmp_path / name).symlink_to(kept)
    watch = StateWatch(SHELL, find_profile("rpi4"), folder=str(tmp_path), identity="x", cpufreq="/none", history=None)
    watch.start()
    watch.stop()
    assert run(prepare_script([Change("x", ("fill", str(tmp_path), "1"))], str(tmp_path / "journal"))) == [
        ["done", "0001"]
    ]
    session = str(tmp_path_factory.mktemp("work") / "opjoule-0123456789ab")
    program = installed_here(ROOT / "build").probe
    probe = Probe(SHELL, program, f"{session}/{PROBE_FOLDER}", [])
    RunningDisturbance(Runner(SHELL, program, session), DISTURBANCES["writer"], str(tmp_path)).stop()
    probe.close()
    assert kept.read_text() == "the user's own\n"
    names = {"opjoule-speed", "opjoule-fill", "opjoule-disturb", "elsewhere", "journal.lock"}
    assert {path.name for path in tmp_path.iterdir()} <= names


def test_restore_removes_no_foreign_file_from_the_journals_folder(tmp_path):
    journal = tmp_path / "journal"
    kept = keep(journal)
    (journal / "0001.new").write_text("cut off")
    run(restore_script(str(journal)))
    assert [path.name for path in journal.iterdir()] == [kept.name]


def test_an_undo_that_waits_is_not_overwritten_by_the_next_measurement(tmp_path):
    """The old value of a knob that cannot be put back now would be lost."""
    journal, first, second = str(tmp_path / "journal"), tmp_path / "first" / "knob", tmp_path / "second"
    first.parent.mkdir()
    run(prepare_script([Change("x", ("put", str(first), "b"), ("put", str(first), "a"))], journal))
    first.unlink()
    first.parent.rmdir()
    run(restore_script(journal))
    steps = [Change("x", ("put", str(second), "b"), ("put", str(second), "a"))] * 9
    assert run(prepare_script(steps, journal)) == [["done", f"{number:04}"] for number in range(1, 10)]
    first.parent.mkdir()
    run(restore_script(journal))
    assert (first.read_text(), second.read_text()) == ("a\n", "a\n")


def test_a_virtual_board_takes_no_folder_that_holds_anything(tmp_path):
    kept = keep(tmp_path / "folder")
    with pytest.raises(DeviceFault, match="is not empty"):
        Machine(Image(tmp_path, ""), tmp_path / "folder")
    assert kept.exists()


def test_simulated_storage_is_a_folder_of_its_own(tmp_path):
    kept = keep(tmp_path / "storage")
    options = RigSetup(root=tmp_path, files=kept.parent, truth=tmp_path / "t", seed=1)
    rig = twin_rig(find_profile("rpi4").with_medium("sd"), options)
    with pytest.raises(RigFault, match="is there already"), rig:
        pass
    assert kept.exists()


def test_the_state_has_no_setting_that_changes_a_medium_by_default():
    defaults = StateSettings()
    assert (defaults.file_system, defaults.journal, defaults.precondition_mb) == ("keep", "keep", 0)
