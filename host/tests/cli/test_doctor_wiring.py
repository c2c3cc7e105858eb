"""`doctor` finds wiring that records figures without complaint: swapped inputs, another supply, a dead sync wire."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from opjoule.base.notices import Notice, NoticeKind
from opjoule.boards import rig_board
from opjoule.boards.profiles import find_profile, known_profiles
from opjoule.boards.rig import RigSupply
from opjoule.boards.rig_board import edges_finding
from opjoule.boards.rig_board import finding as found
from opjoule.cli import doctor
from opjoule.cli.commands import main
from opjoule.cli.databases import Availability
from opjoule.cli.doctor import examine, flow_finding, listening
from opjoule.energy.error_bounds import Shunt
from opjoule.meters.chips import INA219
from opjoule.runs.measuring.supply_path import supply_path
from software_meter import SoftwareMeter

BOUNDS = INA219.error_bounds(3, 1.0, Shunt(0.1))


@pytest.mark.parametrize(
    ("current_a", "voltage_v", "well", "remedy"),
    [
        (0.55, 5.03, True, ""),
        (0.08, 5.03, True, ""),  # a Zero 2 W
        (-0.55, 5.2, False, "VIN+ and VIN"),
        (0.001, 5.03, False, "unplug HDMI"),
        (-0.001, 5.03, False, "unplug HDMI"),
        (0.03, 5.03, False, "unplug HDMI"),
        (0.55, 0.02, False, "connect VIN"),
    ],
)
def test_current_and_voltage_of_a_board_that_answers_are_held_against_what_a_board_takes(
    current_a, voltage_v, well, remedy
):
    finding = flow_finding("rpi4", (current_a, voltage_v), BOUNDS)
    assert ((finding.kind is NoticeKind.SOUND), remedy in finding.remedy) == (well, True)


def test_a_meter_of_power_alone_is_not_told_that_it_sees_no_supply():
    assert flow_finding("rpi4", (3.0, 1.0), replace(BOUNDS, voltage_step_v=0.0)).kind is NoticeKind.SOUND


def test_a_meter_that_gives_no_sample_is_reported():
    assert flow_finding("rpi4", None, BOUNDS).kind is not NoticeKind.SOUND


@pytest.mark.parametrize(
    ("arrived", "well", "said"),
    [
        (0, False, "dead"),
        (6, True, "6 of 6"),
        (5, False, "loses edges"),
        (40, False, "picks up edges"),
    ],
)
def test_edges_that_arrive_are_counted_against_those_that_were_played(arrived, well, said):
    finding = edges_finding("rpi4", 6, arrived)
    assert ((finding.kind is NoticeKind.SOUND), said in finding.line) == (well, True)


def test_findings_are_worded_as_in_the_golden_screen(monkeypatch, capsys, golden):
    readings = (0.55, 5.03), (-0.55, 5.2), (0.001, 5.03), (0.55, 0.02), None
    findings = [flow_finding("rpi4", of_meter, BOUNDS) for of_meter in readings]
    findings += [edges_finding("rpi4", 6, arrived) for arrived in (6, 5, 40, 0)]
    monkeypatch.setattr(doctor, "examine", lambda *_, **__: iter(findings))
    assert main(["doctor"]) == 1
    golden("doctor", capsys.readouterr().out)


def test_a_meter_that_does_not_open_leaves_the_boards_to_be_examined():
    with listening("serial:/dev/no-such-port") as heard:
        assert heard is None


@pytest.mark.parametrize(("requested", "played"), [(None, 3), (0, 0), (7, 7)])
def test_pulses_play_while_the_meter_records(tmp_path, monkeypatch, requested, played):
    """On the board's line, before the meter is closed again."""
    seen = []

    def examined(name, device, builds, *, pulses, edges):
        device_is_sampling = meter._acquisition == 1
        seen.append((pulses, edges is not None, device_is_sampling))
        yield found(name, True, "a board")

    monkeypatch.setattr(doctor, "examine_board", examined)
    path = tmp_path / "rig.toml"
    with SoftwareMeter() as meter:
        path.write_text(
            f'[meter]\nport = "serial:{meter.path},shunt=0.02"\n\n[device.rpi4]\nconnection = "ssh:pi@board"\n'
            f'[device.rpi4.storage]\nsd = "{tmp_path}"\n'
        )
        findings = {finding.about: finding for finding in examine(path, simulate=False, pulses=requested)}
    assert seen == [(played, True, True)]
    assert findings["rpi4 current"].kind is NoticeKind.SOUND  # the software meter's board draws 0.5 A


def test_a_dead_sync_wire_is_found_by_the_examination_of_the_board(monkeypatch):
    def edges(count, limit_s):
        assert count in (0, 10)
        return 4  # from before

    board = SimpleNamespace(values={"user_id": "0"}, rights="root", machine="aarch64", cache="/tmp")
    monkeypatch.setattr(rig_board, "install_programs", lambda *_: SimpleNamespace(probe="probe"))
    monkeypatch.setattr(rig_board, "look_at_pin", lambda *_: None)
    findings = list(rig_board._sync("rpi4", None, board, None, "gpio:GPIO17", 3, edges))
    assert [(finding.kind is NoticeKind.SOUND) for finding in findings] == [True, False]
    assert "0 of 6 edges" in findings[1].line


def test_a_note_is_marked_as_neither_sound_nor_to_mend(monkeypatch, capsys):
    findings = [
        found("disk", True, "free"),
        Notice(NoticeKind.NOTE, "lacks one", about="study s1"),
        found("pin", False, "dead", "solder"),
    ]
    monkeypatch.setattr(doctor, "examine", lambda *_, **__: iter(findings))
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "ok   disk: free",
        "note study s1: lacks one",
        "MEND pin: dead",
        "       -> solder",
        "1 fault to mend.",
    ]


def test_what_is_missing_or_tested_otherwise_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(
        doctor,
        "missing",
        lambda study: {"mongodb": Availability(False, "missing")} if study.name == "s1" else {},
    )
    findings = {finding.about: finding for finding in examine(tmp_path / "rig.toml", simulate=True)}
    assert [(findings[about].kind is NoticeKind.NOTE) for about in ("study s1", "study s2", "tested otherwise")] == [
        True,
        False,
        True,
    ]


def test_the_remedy_of_a_fault_in_rig_toml_is_a_page_on_hardware(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text('[meter]\nport = "serial:/dev/no-such-port"\n[device.rpi4]\nconnection = "local"\nsync = "none"\n')
    findings = {finding.about: finding for finding in examine(path, simulate=False)}
    assert findings["meter"].remedy == "see docs/how-to/wire-the-rig.md"
    assert findings["rpi4 supply"].kind is NoticeKind.NOTE  # the last of the two: the board reads its own meter
    path.write_text("[meter]\n")
    *_, last = examine(path, simulate=False)
    assert last.remedy == "see docs/how-to/connect-a-board.md"


ADVISED = RigSupply(voltage_v=5.2, cable_ohm=0.08)


@pytest.mark.parametrize("board", [name for name in known_profiles() if find_profile(name).least_voltage_v])
def test_the_recommended_parts_pass_doctors_supply_sum_on_every_board(board):
    """Supply of 5.2 V (12 V for an ODROID-N2), 20 milliohm, 0.08 ohm of wiring: docs/how-to/wire-the-rig.md."""
    supply = RigSupply(voltage_v=12.0, cable_ohm=0.08) if board == "odroid-n2" else ADVISED
    path = supply_path(find_profile(board), "serial:x,shunt=0.02", "rig.toml", supply)
    assert path.warning == ""
    assert path.supply_v <= find_profile(board).supply_voltage_v[1]


@pytest.mark.parametrize("board", ["rpi4", "rpi5"])
def test_with_a_shunt_of_a_tenth_of_an_ohm_doctor_says_what_the_advised_one_would_leave(board):
    path = supply_path(find_profile(board), "serial:x,shunt=0.1", "rig.toml", RigSupply(voltage_v=5.1, cable_ohm=0.08))
    assert "20 milliohm" in path.warning
    better = supply_path(
        find_profile(board), "serial:x,shunt=0.02", "rig.toml", RigSupply(voltage_v=5.1, cable_ohm=0.08)
    )
    assert f" {better.board_v:.2f} V" in path.warning
