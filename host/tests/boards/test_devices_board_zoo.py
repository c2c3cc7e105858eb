"""Every board of the studies with its stock image: taken as it comes, or refused with reason and remedy."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
from board_answers import abouts, plan, state
from board_zoo import ZOO, ZooBoard, ZooShell
from opjoule.base.errors import DeviceFault
from opjoule.base.notices import NoticeKind
from opjoule.boards import rig_board
from opjoule.boards.binaries import find_program
from opjoule.boards.board_state import StateSettings, read_facts, read_state
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import plan_for
from opjoule.boards.profiles import find_profile
from opjoule.boards.rig import CPUFREQ, RigDevice
from opjoule.boards.state_gate import StateWatch

ACCEPTED = [board for board in ZOO if not board.refused]
PIN = {
    "chip": "/dev/gpiochip0",
    "line": 17,
    "name": "GPIO17",
    "consumer": "",
    "direction": "in",
    "interface": "v2",
}


@pytest.fixture
def builds(tmp_path):
    """Programs of every architecture that know one GPIO line."""
    for architecture in ("aarch64", "armhf", "amd64"):
        for name in ("loader", "probe"):
            program = tmp_path / "build/board" / architecture / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(f"#!/bin/sh\necho '{json.dumps({'gpio': PIN})}'\n")
    return tmp_path / "build"


@pytest.fixture
def shell(request, tmp_path, monkeypatch):
    monkeypatch.setenv("OPJOULE_WORK", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return ZooShell(request.param, tmp_path)


def of(boards):
    return [pytest.param(board, board, id=board.name) for board in boards]


def each_of(boards):
    return pytest.mark.parametrize(("shell", "board"), of(boards), indirect=["shell"])


@each_of(ACCEPTED)
def test_a_stock_image_is_understood_and_can_be_prepared(shell, board: ZooBoard, builds, tmp_path):
    (tmp_path / "sd").mkdir()
    facts = read_facts(shell, journal=str(tmp_path / "journal"))
    assert (facts.machine, facts.rights, facts.values["system"]) == (board.machine, "sudo", board.system)
    assert find_program(builds, facts.machine, "loader")
    plan, blocks = plan_for(shell, facts, Medium(str(tmp_path / "sd")), StateSettings(), CPUFREQ, "gpio:GPIO17")
    here = Path("/").stat().st_dev
    assert blocks.root_number == f"{os.major(here)}:{os.minor(here)}" or os.major(here) == 0
    about = [step.about for step in plan.steps]
    assert "governor performance (was ondemand)" in about
    for name, _, _ in board.swap:
        assert f"swap {name} off" in about
    mdns = board.hostname.endswith(".local")
    for unit in board.units:
        assert (f"{unit} stopped" in about) == (not mdns or not unit.startswith("avahi"))
    assert any("avahi-daemon: " in line for line in plan.kept) == mdns
    assert facts.values["gpio"] == board.gpio


@each_of(ACCEPTED)
def test_a_stock_images_sensors_are_read(shell, board: ZooBoard, tmp_path):
    watch = StateWatch(
        shell, find_profile(board.profile), folder=str(tmp_path), identity="x", cpufreq=CPUFREQ, history=None
    )
    watch.start()
    report = watch.stop()
    assert report.before["temperature_c"] == 47.5
    assert report.before["frequencies_khz"] == (1200000,)
    assert report.before["free_bytes"] > 0
    assert report.before["fan_state"] == (1 if board.fan else None)
    reports_throttling = (bool(board.throttled) and bool(find_profile(board.profile).throttled)) or board.rpi_volt
    assert bool(report.unknown) == (not reports_throttling)


@each_of([board for board in ZOO if board.profile == "rpi-zero2w"])
def test_wifi_is_kept_unless_the_connection_is_known_to_be_wired(shell, board: ZooBoard, tmp_path):
    """A tunnel, a bridge or a VLAN has no device of its own and may run over Wi-Fi."""
    virtual = ("lo", "tailscale0", "wg0", "tun0", "br0", "eth0.5")
    for name in ("eth0/device", "wlan0/device", "wlan0/wireless", *virtual):
        (tmp_path / "root/sys/class/net" / name).mkdir(parents=True)
    interfaces = read_state(shell, "sudo", cpufreq=CPUFREQ, device="", path=str(tmp_path)).of("interface")
    assert dict(interfaces) == {"eth0": "wired", "wlan0": "wifi", **dict.fromkeys(virtual, "virtual")}
    assert "Wi-Fi off" in abouts(plan(state(interface=interfaces), interface="eth0"))
    for name in (*virtual, "gone0"):
        kept = plan(state(interface=interfaces), interface=name).kept
        assert any("Wi-Fi: " in line for line in kept)


@each_of([board for board in ZOO if board.fan])
def test_a_fan_is_held_at_one_step_and_given_back(shell, board: ZooBoard, tmp_path):
    (tmp_path / "sd").mkdir()
    facts = read_facts(shell, journal=str(tmp_path / "journal"))
    medium = Medium(str(tmp_path / "sd"))
    plan, _ = plan_for(shell, facts, medium, StateSettings().changed({"fan": 3}, "test"), CPUFREQ)
    zone = [step for step in plan.steps if "thermal_zone0" in step.about]
    fan = [step for step in plan.steps if "fan at step" in step.about]
    assert [step.about for step in fan] == ["fan at step 3 of 4 (was 1)"]
    held = ("policy", "user_space", "step_wise") if "user_space" in board.fan else ("mode", "disabled", "enabled")
    place = f"/sys/class/thermal/thermal_zone0/{held[0]}"
    assert [(step.do[1].endswith(place), step.do[2], step.undo[2]) for step in zone] == [(True, *held[1:])]
    assert plan.steps.index(zone[0]) < plan.steps.index(fan[0])
    kept, _ = plan_for(shell, facts, medium, StateSettings(), CPUFREQ)
    assert not [step for step in kept.steps if "fan" in step.about]


@each_of([board for board in ZOO if board.refused])
def test_a_board_that_cannot_be_measured_is_refused_with_a_remedy(shell, board: ZooBoard, builds, tmp_path):
    facts = read_facts(shell, journal=str(tmp_path / "journal"))
    with pytest.raises(DeviceFault, match=board.refused):
        find_program(builds, facts.machine, "loader")


@each_of(ZOO)
def test_doctor_says_what_is_well_and_what_to_mend(shell, board: ZooBoard, builds, tmp_path, monkeypatch):
    monkeypatch.setattr(rig_board, "open_shell", lambda _: shell)
    monkeypatch.setattr(rig_board, "read_facts", partial(read_facts, journal=str(tmp_path / "journal")))
    (tmp_path / "sd").mkdir()
    described = RigDevice("ssh:pi@board", None, {"sd": Medium(str(tmp_path / "sd"))})
    checks = list(rig_board.examine_board(board.profile, described, builds))
    mend = [check for check in checks if check.kind is NoticeKind.MEND]
    assert any(board.system in check.line for check in checks)
    assert bool(mend) == bool(board.refused), mend
    for check in mend:
        assert board.refused in check.line
    pins = [check.line for check in checks if check.about.endswith("sync")]
    if not board.refused and find_profile(board.profile).sync != "none":
        [pin] = pins
        assert pin.startswith("/dev/gpiochip0 line 17 'GPIO17', ") and pin.endswith(" v2")
    flags = [check.line for check in checks if check.about.endswith("under-voltage")]
    assert len(flags) == 1


def test_the_zoo_has_an_image_of_every_profile():
    real = {path.stem for path in (Path(rig_board.__file__).parent / "profiles").glob("*.toml")} - {"virtual"}
    assert real == {board.profile for board in ZOO}
