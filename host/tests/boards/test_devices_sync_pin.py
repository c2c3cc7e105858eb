"""The sync line's pin: named in rig.toml, asked of the board's kernel, never guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from board_answers import abouts, plan, state
from opjoule.base.errors import BadInput
from opjoule.boards.profiles import find_profile, known_profiles
from opjoule.boards.rig import check_sync, read_rig
from opjoule.boards.rig_board import look_at_pin
from opjoule.boards.shell import LocalShell

FOUND = {
    "chip": "/dev/gpiochip1",
    "line": 92,
    "name": "J2 Header Pin29",
    "consumer": "",
    "used": False,
    "direction": "in",
    "header": True,
    "interface": "v1",
}


@pytest.mark.parametrize(
    "carrier", ["none", "gpio:GPIO17", "gpio:J2 Header Pin29", "gpio:/dev/gpiochip0:17", "gpio:sysfs:249"]
)
def test_a_sync_line_has_a_name_a_chip_or_a_number(carrier):
    assert check_sync(carrier) == carrier


@pytest.mark.parametrize(
    "carrier", ["", "gpio:", "GPIO17", "gpio:/dev/gpiochip0", "gpio:/dev/gpiochip0:x", "gpio:sysfs:x"]
)
def test_what_is_no_sync_line_is_refused_in_rig_toml(tmp_path, carrier):
    rig = tmp_path / "rig.toml"
    rig.write_text(f'[meter]\nport = "serial:/dev/x"\n[device.rpi4]\nconnection = "local"\nsync = "{carrier}"\n')
    with pytest.raises(BadInput, match=r"rig.toml: \[device.rpi4\] .* gpio:GPIO17"):
        read_rig(rig)


@pytest.mark.parametrize("name", known_profiles())
def test_no_profile_takes_a_line_by_its_number_on_a_real_board(name):
    """Line 0 of an ODROID-C2's second chip is Ethernet's MDIO."""
    carrier = find_profile(name).sync
    assert carrier in ("none", "gpio:GPIO17") or name == "virtual"
    assert not (name.startswith("odroid") and carrier != "none")


def loader(tmp_path: Path, script: str) -> list[str]:
    program = tmp_path / "loader"
    program.write_text(f"#!/bin/sh\necho \"$@\" > '{tmp_path}/asked'\n{script}\n")
    program.chmod(0o755)
    return [str(program)]


def test_the_pin_is_shown_with_name_chip_and_interface(tmp_path):
    program = loader(tmp_path, f"echo '{json.dumps({'gpio': FOUND})}'")
    pin = look_at_pin(LocalShell(), program, "gpio:J2 Header Pin29")
    assert pin.startswith("/dev/gpiochip1 line 92 'J2 Header Pin29', ") and pin.endswith(" v1")
    assert (tmp_path / "asked").read_text() == "gpio --sync gpio:J2 Header Pin29\n"


def test_pulses_are_played_only_when_asked_for(tmp_path):
    program = loader(tmp_path, f"echo '{json.dumps({'gpio': FOUND})}'; echo '{{\"edge\":{{}}}}'")
    look_at_pin(LocalShell(), program, "gpio:GPIO17", pulses=3)
    assert (tmp_path / "asked").read_text() == "gpio --sync gpio:GPIO17 --pulses 3\n"


def test_why_a_pin_cannot_be_had_is_the_probes_own_line(tmp_path):
    program = loader(tmp_path, "echo 'probe: sync line gpio:Eth MDIO: mdio' >&2; exit 2")
    with pytest.raises(BadInput, match=r"^sync line gpio:Eth MDIO: mdio$"):
        look_at_pin(LocalShell(), program, "gpio:Eth MDIO")


def test_chips_that_the_user_may_not_open_are_given_to_it_for_the_measurement():
    """Armbian has no gpio group: its chips are root's."""
    board = state(gpio=[["/dev/gpiochip0", "0"], ["/dev/gpiochip1", "0"]])
    steps = [step for step in plan(board, rights="sudo", gpio_denied=True).steps if "gpiochip" in step.about]
    assert [step.do for step in steps] == [("chown", "pi", f"/dev/gpiochip{number}") for number in (0, 1)]
    assert [step.undo for step in steps] == [("chown", "0", f"/dev/gpiochip{number}") for number in (0, 1)]
    assert not [about for about in abouts(plan(board, rights="sudo")) if "gpiochip" in about]
