"""opjoule-root: does what a preparation asks for and refuses everything else; the sudoers file permits it alone."""

import os
import subprocess
from pathlib import Path

import pytest
from opjoule.base.errors import BadInput, DeviceFault
from opjoule.boards.board_state import BoardFacts, read_facts, read_state
from opjoule.boards.medium import Medium
from opjoule.boards.preparation import make_changes, undo_changes
from opjoule.boards.rig import RigDevice, helper_text, install_script
from opjoule.boards.shell import LocalShell, Ran, script
from opjoule.boards.steps import (
    HELPER,
    JOURNAL,
    Change,
    helper_orders,
    helper_version,
)

FACTS = BoardFacts({}, "aarch64", "", "helper", "", "", JOURNAL, False, "")
SUDO = """#!/bin/sh
# In the place of sudo: permits opjoule-root alone, as the printed sudoers file does.
[ "$1" = -n ] && [ "$2" = {helper} ] || {{ echo 'sudo: a password is required' >&2; exit 1; }}
shift 2
exec sh {program} "$@"
"""


@pytest.fixture
def board(tmp_path, monkeypatch):
    """A board whose user may run opjoule-root alone: its folder, with a governor file to change."""
    policy = tmp_path / "cpu/cpufreq/policy0"
    policy.mkdir(parents=True)
    (policy / "scaling_governor").write_text("ondemand\n")
    device = RigDevice(
        cpufreq=str(tmp_path / "cpu"),
        media={"sd": Medium("/mnt/sd", "/dev/null", expendable=True), "folder": Medium("/srv/opjoule")},
    )
    program = tmp_path / "opjoule-root"
    text = helper_text(device, "pi").replace(JOURNAL, f"{tmp_path}/state/journal")
    program.write_text(text)
    program.chmod(0o755)
    (tmp_path / "bin").mkdir()
    sudo = tmp_path / "bin/sudo"
    sudo.write_text(SUDO.format(helper=HELPER, program=program))
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return tmp_path


def put(board, value, path="cpu/cpufreq/policy0/scaling_governor", old="ondemand"):
    return Change(f"to {value}", ("put", f"{board}/{path}", value), ("put", f"{board}/{path}", old))


def test_a_change_is_made_journalled_and_undone(board):
    governor = board / "cpu/cpufreq/policy0/scaling_governor"
    assert make_changes(LocalShell(), FACTS, [put(board, "performance")]) == [""]
    assert governor.read_text() == "performance\n"
    assert "'put'" in (board / "state/journal/0001.undo").read_text()
    undone, left = undo_changes(LocalShell(), FACTS)
    assert governor.read_text() == "ondemand\n" and (len(undone), left) == (1, [])
    assert not (board / "state").exists()


def test_the_state_is_read_as_root_reads_it(board):
    board_state = read_state(LocalShell(), "helper", cpufreq=f"{board}/cpu", device="/dev/null", path="/mnt/sd")
    assert [policy[1] for policy in board_state.of("policy")] == ["ondemand"]
    with pytest.raises(DeviceFault, match="state of /etc"):
        read_state(LocalShell(), "helper", cpufreq="/x", device="", path="/etc")
    with pytest.raises(DeviceFault, match="state of /dev/sda"):
        read_state(LocalShell(), "helper", cpufreq="/x", device="/dev/sda", path="/mnt/sd")


HOSTILE = {
    "a file elsewhere": ("put", "/etc/passwd", "x"),
    "a way out": ("put", "/sys/class/leds/../../../etc/passwd", "x"),
    "a deeper file": ("put", "/sys/class/leds/a/b/brightness", "1"),
    "a program": ("sh", "-c", "id"),
    "a function of the script": ("remember", "0001", "volatile", "id"),
    "a unit of the user's": ("systemctl", "stop", "ssh.service"),
    "another verb": ("systemctl", "link", "cron.service"),
    "swap that is none": ("swapoff", "/dev/sda"),
    "another device": ("make_file_system", "/dev/sda", "8:0", "6e1ed2fa-0b45-4c34-9d2f-5c31f3ad8a01"),
    "another mount point": ("mount_medium", "/dev/null", "1:3", "/etc"),
    "another folder": ("mkdir", "-p", "--", "/etc/x"),
    "a folder for the user": ("chown", "pi", "/etc"),
    "another owner": ("chown", "mallory", "/mnt/sd"),
    "a GPIO chip that is none": ("chown", "pi", "/dev/gpiochip0/x"),
    "memory elsewhere": ("take_memory", "/etc", "5"),
    "another file system": ("unmount", "/", "8:1"),
    "to fill a folder": ("fill", "/srv/opjoule", "5"),
}


@pytest.mark.parametrize("order", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("as_undo", [False, True], ids=["to do", "to undo"])
def test_what_no_measurement_does_is_refused(board, order, as_undo):
    good = put(board, "performance").do
    change = Change("", good, order) if as_undo else Change("", order)
    with pytest.raises(DeviceFault, match=r"no argument|does not do this"):
        make_changes(LocalShell(), FACTS, [change])
    assert (board / "cpu/cpufreq/policy0/scaling_governor").read_text() == "ondemand\n"
    assert not list((board / "state").rglob("*.undo"))


@pytest.mark.parametrize(
    "value",
    ["x'; touch injected; '", "$(touch injected)", "`touch injected`", "a\nb", "a\x1fb", "*", '"', "\\"],
)
def test_no_text_is_ever_run(board, value):
    with pytest.raises(DeviceFault, match="accepts no argument"):
        helper_orders([put(board, value)])
    raw = "\x1f".join(["1", "volatile", "free", "0", *put(board, value).do]) + "\n\x1fend\n"
    ran = subprocess.run(
        ["sudo", "-n", HELPER, "change"], input=raw, capture_output=True, text=True, check=False, cwd=board
    )
    assert ran.returncode == 3 and "not do this" in ran.stderr
    assert not (board / "injected").exists()


def test_orders_whose_end_is_missing_change_nothing(board):
    whole = helper_orders([put(board, "performance")])
    for length in range(len(whole) - 1):
        ran = subprocess.run(["sudo", "-n", HELPER, "change"], input=whole[:length], capture_output=True, check=False)
        assert ran.returncode == 3
    assert (board / "cpu/cpufreq/policy0/scaling_governor").read_text() == "ondemand\n"


def test_a_mount_point_below_a_folder_of_the_users_is_refused(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    mine = tmp_path / "mine"
    mine.mkdir()
    os.chown(mine, 1000, 1000)
    device = RigDevice(media={"sd": Medium(f"{mine}/sd", "/dev/null", expendable=True)})
    program = tmp_path / "opjoule-root"
    program.write_text(helper_text(device, "pi").replace(JOURNAL, f"{tmp_path}/state/journal"))
    orders = helper_orders([Change("", ("mkdir", "-p", "--", f"{mine}/sd"))])
    ran = subprocess.run(["sh", program, "change"], input=orders, capture_output=True, check=False)
    assert ran.returncode == 3 and not (mine / "sd").exists()


@pytest.mark.parametrize("order", [[], ["sh"], ["version", "x"], ["change", "x"], ["state"]])
def test_other_orders_are_refused(board, order):
    ran = subprocess.run(["sudo", "-n", HELPER, *order], capture_output=True, text=True, check=False)
    assert ran.returncode == 3 and "not do this" in ran.stderr


def test_a_board_tells_that_it_has_the_program_and_of_which_version(board, monkeypatch):
    monkeypatch.setenv("OPJOULE_WORK", str(board / "work"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(board / "cache"))
    facts = script("facts.sh").replace(HELPER, str(board / "opjoule-root"))
    sudo = board / "bin/sudo"
    sudo.write_text(sudo.read_text().replace(f'"$2" = {HELPER}', f'"$2" = {board}/opjoule-root'))
    (board / "bin/id").write_text("#!/bin/sh\ncase $1 in -u) echo 1000 ;; *) echo pi ;; esac\n")
    (board / "bin/id").chmod(0o755)
    ran = subprocess.run(["sh", "-c", facts, "sh", "", "/none"], capture_output=True, text=True, check=True).stdout
    assert f"rights\thelper\nhelper\t{helper_version()}\n" in ran


def test_another_version_of_it_is_named(board, monkeypatch):
    said = "machine\tx\nboot_id\t1\nrights\thelper\nhelper\t0123\ncache\t/c\nwork\t/w\n"
    monkeypatch.setattr(LocalShell, "run", lambda *_, **__: Ran(0, said.encode(), ""))
    with pytest.raises(DeviceFault, match=r"another version .*measure\.py sudoers"):
        read_facts(LocalShell(), journal="/none")


def test_without_it_nothing_is_different():
    assert read_facts(LocalShell(), journal="/none").rights in {"root", "sudo", "none"}


def test_the_script_installs_what_it_says(tmp_path):
    device = RigDevice(media={"sd": Medium("/mnt/sd", "/dev/sda1", expendable=True)})
    printed = install_script(device, "pi")
    assert "pi ALL=(root) NOPASSWD: sha256:" in printed and "visudo -c" in printed
    assert any(line.startswith("#") and "/dev/sda1, " in line and "lost" in line for line in printed.splitlines())
    assert subprocess.run(["sh", "-n"], input=printed, text=True, check=False).returncode == 0
    assert printed.count("NOPASSWD") == 1


@pytest.mark.parametrize("user", ["", "pi ALL", "%sudo", "pi\nmallory ALL=(ALL) NOPASSWD: ALL", "ALL"])
def test_a_user_that_would_mean_more_is_refused(user):
    with pytest.raises(BadInput, match="sudoers"):
        install_script(RigDevice(), user)


@pytest.mark.parametrize("path", ["/mnt/it's", "/mnt/a|b", "/mnt/../etc", "/mnt/$(id)"])
def test_a_medium_that_no_order_can_name_is_refused(path):
    with pytest.raises(BadInput, match="takes letters"):
        helper_text(RigDevice(media={"sd": Medium(path)}), "pi")


def test_the_programs_text_ends_before_the_marker():
    text = helper_text(RigDevice(), "pi")
    assert "END_OF_OPJOULE_ROOT" not in text and text.endswith("\n")
    assert Path(HELPER).is_absolute()
