"""Which board's loader a command has built before it starts."""

import platform

import pytest
from opjoule.boards.binaries import ARCHITECTURES
from opjoule.cli.commands import parse


@pytest.fixture
def rig(tmp_path):
    file = tmp_path / "rig.toml"
    file.write_text(
        """
[meter]
port = "serial:/dev/ttyACM0"
[device.rpi4]
connection = "ssh:pi@board"
[device.generic-linux]
connection = "local"
"""
    )
    return ["--rig", str(file)]


def needed(*options: str) -> str:
    return parse(["--db", "leveldb", *options]).needs.board


def test_a_board_behind_ssh_needs_its_own(rig):
    assert needed("--device", "rpi4", *rig) == "aarch64"


def test_the_virtual_board_needs_its_own():
    assert needed("--device", "virtual") == "aarch64"


def test_this_computer_needs_one_for_mongodb_alone(rig):
    assert needed("--device", "generic-linux", *rig) == ""
    assert needed("--device", "generic-linux", "--db", "mongodb", *rig) == ARCHITECTURES[platform.machine()]


def test_nothing_is_built_where_nothing_will_be_measured(rig):
    assert needed("--device", "rpi4", "--simulate", *rig) == ""
    assert needed("--device", "rpi4", "--dry-run", *rig) == ""
    assert needed("--device", "rpi4", "--rig", "/nowhere/rig.toml") == ""
    with pytest.raises(SystemExit):  # an unknown board is refused before set-up
        needed("--device", "rpi9", *rig)
