"""What on this computer is in the way of a serial meter is found in /sys, /proc and udev's files, with its remedy."""

from __future__ import annotations

import grp
import pwd
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from opjoule.base.notices import NoticeKind
from opjoule.cli.doctor import examine
from opjoule.meters.serial import port as serial_host
from opjoule.meters.serial.port import CONVERTERS, lasting_name, serial_obstacles

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "docs/how-to/60-opjoule-meter.rules"
BRLTTY = """
# Device: 1A86:7523
# generic identifier: serial converter
ENV{PRODUCT}=="1a86/7523/*", ATTRS{manufacturer}=="", ENV{BRLTTY_BRAILLE_DRIVER}="bm", GOTO="brltty_usb_run"
"""


class Computer:
    """A made-up file system with one serial port, laid out as Linux does."""

    def __init__(
        self, root: Path, tty: str = "ttyUSB0", vendor: str = "1a86", product: str = "7523", serial_number: str = ""
    ) -> None:
        self.root, self.tty = root, tty
        usb = root / "sys/devices/pci0/usb1/1-2"
        port = usb / "1-2:1.0" / tty
        for folder in (port / "tty" / tty, root / "sys/class/tty", root / "sys/bus/usb/devices"):
            folder.mkdir(parents=True)
        self.put(f"sys/devices/pci0/usb1/1-2/1-2:1.0/{tty}/tty/{tty}/dev", "188:0\n")
        for name, text in (("idVendor", vendor), ("idProduct", product), ("dev", "189:7"), ("serial", serial_number)):
            if text:
                (usb / name).write_text(text + "\n")
        (port / "tty" / tty / "device").symlink_to(f"../../../{tty}")
        (root / "sys/class/tty" / tty).symlink_to(f"../../devices/pci0/usb1/1-2/1-2:1.0/{tty}/tty/{tty}")
        (root / "sys/bus/usb/devices/1-2").symlink_to("../../../devices/pci0/usb1/1-2")
        self.put(f"sys/bus/usb-serial/devices/{tty}/port_number", "0\n")
        self.node = self.put(f"dev/{tty}", "")
        self.user, self.may_open = "eve", True

    def put(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def link(self, name: str, tty: str) -> str:
        """Makes a link of udev to a port; its path."""
        link = self.root / "dev/serial" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../{tty}")
        return f"/dev/serial/{name}"

    def obstacles(self, port: str = "") -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(serial_host, "ROOT", self.root)
            patch.setattr(serial_host.os, "access", lambda *_, **__: self.may_open)
            patch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name=self.user))
            patch.setattr(grp, "getgrgid", lambda gid: ("dialout", "x", gid, ["ada"]))
            said = serial_obstacles(port or f"/dev/{self.tty}")
        assert all(obstacle.remedy and "\n" not in obstacle.line + obstacle.remedy for obstacle in said)
        return [f"{obstacle.line} -> {obstacle.remedy}" for obstacle in said]


@pytest.fixture
def computer(tmp_path):
    return Computer(tmp_path)


def test_a_computer_with_nothing_in_the_way_brings_no_line(computer):
    assert computer.obstacles() == []


@pytest.mark.parametrize("folder", ["usr/lib/udev/rules.d", "lib/udev/rules.d", "etc/udev/rules.d"])
def test_brltty_takes_a_ch340(computer, folder):
    computer.put(f"{folder}/85-brltty.rules", BRLTTY)
    [line] = computer.obstacles()
    assert "brltty mistakes 1a86:7523" in line and "85-brltty.rules" in line and "apt remove brltty" in line


def test_a_port_that_brltty_took_is_found_by_the_converter_on_the_bus(computer):
    computer.put("usr/lib/udev/rules.d/85-brltty.rules", BRLTTY)
    computer.node.unlink()
    (computer.root / "sys/class/tty/ttyUSB0").unlink()
    assert "brltty mistakes 1a86:7523" in computer.obstacles()[0]


@pytest.mark.parametrize(
    ("rules", "masked"),
    [
        (BRLTTY.replace("ENV{PRODUCT}==", "#ENV{PRODUCT}=="), False),
        (BRLTTY, True),
        (BRLTTY.replace("7523", "5523"), False),
    ],
)
def test_a_rule_of_brltty_that_is_not_in_force_or_of_another_device_is_no_obstacle(computer, rules, masked):
    computer.put("usr/lib/udev/rules.d/85-brltty.rules", rules)
    if masked:
        (computer.root / "etc/udev/rules.d").mkdir(parents=True)
        (computer.root / "etc/udev/rules.d/85-brltty.rules").symlink_to("/dev/null")
    assert computer.obstacles() == []


def test_in_wsl_a_port_that_is_not_there_may_still_be_windows(computer):
    computer.put("proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    assert computer.obstacles() == []
    computer.node.unlink()
    [line] = computer.obstacles()
    assert "this is WSL" in line and "usbipd attach --wsl --busid BUSID" in line
    computer.put("proc/sys/kernel/osrelease", "6.1.0-32-amd64\n")
    assert computer.obstacles() == []


def test_modem_manager_is_in_the_way_until_udev_tells_it_to_leave_the_meter_alone(computer):
    computer.put("proc/77/comm", "ModemManager\n")
    [line] = computer.obstacles()
    assert "ModemManager runs" in line and "60-opjoule-meter.rules" in line
    entry = computer.put("run/udev/data/c189:7", "E:ID_MODEL=x\nE:ID_MM_DEVICE_IGNORE=1\n")
    assert computer.obstacles() == []
    entry.unlink()
    computer.put("run/udev/data/c188:0", "E:ID_MM_PORT_IGNORE=1\n")
    assert computer.obstacles() == []


@pytest.mark.parametrize(("text", "reported"), [("16\n", True), ("1\n", False), ("", False)])
def test_an_ftdi_converter_that_holds_bytes_back_is_reported(tmp_path, text, reported):
    computer = Computer(tmp_path, vendor="0403", product="6001")
    computer.put("sys/bus/usb-serial/devices/ttyUSB0/latency_timer", text)
    lines = computer.obstacles()
    assert [("16 ms" in line and "echo 1 | sudo tee /sys/bus/usb-serial" in line) for line in lines] == [
        True
    ] * reported


@pytest.mark.parametrize("tty", ["ttyUSB0", "ttyACM0"])
def test_a_number_is_reported_where_there_is_a_name_that_stays(tmp_path, tty):
    computer = Computer(tmp_path, tty=tty, serial_number="75736")
    computer.link("by-id/usb-other", "ttyUSB7")
    assert computer.obstacles() == []
    computer.link("by-path/pci-0-usb-0:2:1.0-port0", tty)
    computer.link("by-id/usb-Arduino_75736-if00", tty)
    [line] = computer.obstacles()
    assert line.endswith('port = "serial:/dev/serial/by-id/usb-Arduino_75736-if00" into rig.toml')
    assert computer.obstacles("/dev/serial/by-id/usb-Arduino_75736-if00") == []
    assert computer.obstacles("/dev/serial/by-path/pci-0-usb-0:2:1.0-port0") == []


@pytest.mark.parametrize("serial_number", ["", "0001"])
def test_a_device_without_a_serial_number_of_its_own_is_named_by_its_usb_socket(tmp_path, serial_number):
    """A second CH340 takes over the link of the first one in by-id: the wrong meter would be read."""
    computer = Computer(tmp_path, serial_number=serial_number)
    by_id = computer.link("by-id/usb-1a86_USB_Serial-if00-port0", "ttyUSB0")
    assert computer.obstacles() == []  # neither name stays
    by_path = computer.link("by-path/pci-0-usb-0:2:1.0-port0", "ttyUSB0")
    for port in ("/dev/ttyUSB0", by_id):
        [line] = computer.obstacles(port)
        assert f'port = "serial:{by_path}"' in line and "USB socket" in line
    assert computer.obstacles(by_path) == []


def test_a_user_outside_the_ports_group_is_told_how_to_get_in(computer):
    computer.may_open = False
    [line] = computer.obstacles()
    assert "group dialout" in line and "eve" in line
    assert "sudo usermod -aG dialout eve" in line
    computer.user = "ada"
    [line] = computer.obstacles()
    assert "group dialout" in line and "usermod" not in line and "log out" in line


def test_doctor_brings_each_as_a_line_to_mend(tmp_path, monkeypatch):
    computer = Computer(tmp_path / "pc")
    computer.put("proc/77/comm", "ModemManager\n")
    computer.put("usr/lib/udev/rules.d/85-brltty.rules", BRLTTY)
    monkeypatch.setattr(serial_host, "ROOT", computer.root)
    rig = tmp_path / "rig.toml"
    rig.write_text('[meter]\nport = "serial:/dev/ttyUSB0"\n')
    checks = [check for check in examine(rig, simulate=False) if check.about == "meter port"]
    assert [check.kind for check in checks] == [NoticeKind.MEND] * 2
    assert "brltty" in checks[0].line and "ModemManager" in checks[1].line


KEYS = r"(SUBSYSTEM|SUBSYSTEMS|ACTION|DRIVER|KERNEL|ATTRS?\{\w+\}|ENV\{\w+\}|TAG|MODE|GROUP|SYMLINK|GOTO|LABEL)"
MATCHES = {"SUBSYSTEM", "SUBSYSTEMS", "ACTION", "DRIVER", "KERNEL", "ATTRS"}
ASSIGNED = {"MODE", "GROUP", "GOTO", "LABEL"}


@pytest.mark.parametrize("path", sorted((ROOT / "docs/how-to").glob("*.rules")), ids=lambda path: path.name)
def test_each_line_of_the_udev_rules_is_a_rule_by_the_grammar_of_udev_7(path):
    """KEY OPERATOR "VALUE", joined by commas: keys that are matched have == or !=, those that are set have = or +=."""
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        for part in line.split(", "):
            match = re.fullmatch(rf'{KEYS}(==|!=|=|\+=)"([^"]*)"', part)
            assert match, f"{path.name}: {part!r}"
            key, operator = match[1].partition("{")[0], match[2]
            assert key not in MATCHES or operator in {"==", "!="}, part
            assert key not in ASSIGNED or operator in {"=", "+="}, part
            assert key != "TAG" or operator == "+=", part
        assert any("==" in part for part in line.split(", ")), f"{path.name}: a rule for every device: {line}"


def test_the_rules_name_the_converters_that_doctor_looks_for():
    lists = re.findall(r'idVendor\}=="([0-9a-f|]+)"', RULES.read_text())
    assert lists and all(set(ids.split("|")) == CONVERTERS for ids in lists)


def test_the_name_that_init_offers_is_one_that_doctor_accepts(tmp_path, monkeypatch):
    computer = Computer(tmp_path)
    monkeypatch.setattr(serial_host, "ROOT", tmp_path)
    assert lasting_name("/dev/ttyUSB0") == "/dev/ttyUSB0"
    link = computer.link("by-path/pci-0-usb-0:2:1.0-port0", "ttyUSB0")
    assert lasting_name("/dev/ttyUSB0") == link
    assert any("another device after" in line for line in computer.obstacles("/dev/ttyUSB0"))
    assert computer.obstacles(link) == []
