"""A board behind ssh: loader copied and verified, runs followed, interrupted, cut off; all with the real loader."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from loopback_sshd import Link, Sshd
from opjoule.devices.board import BoardDevice
from opjoule.devices.examine import examine_board
from opjoule.devices.loader_binary import find_loader, install_loader
from opjoule.devices.medium import Medium
from opjoule.devices.profiles import find_profile
from opjoule.devices.rig_file import RigDevice
from opjoule.devices.shell import LocalShell
from opjoule.devices.ssh import SshConnection
from opjoule.devices.state_settings import StateSettings
from opjoule.errors import BadInput, DeviceFault, LinkFault

BUILDS = Path(__file__).resolve().parents[2] / "build"
AWKWARD = 'it\'s; $(touch injected) "x"\n`y` & z'


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.close()


@pytest.fixture
def link(sshd):
    made = Link(sshd.port, delay_s=0.0)
    yield made
    made.close()


KEEP = StateSettings().changed(
    dict.fromkeys(
        ("page_cache", "governor", "wifi", "bluetooth", "hdmi", "leds", "swap", "services"), "keep"
    ),
    "test",
)


def board(shell, storage) -> BoardDevice:
    journal = str(Path(storage).parent / "journal")
    return BoardDevice(
        find_profile("rpi4"),
        shell,
        builds=BUILDS,
        medium=Medium(str(storage)),
        sync=None,
        wanted=KEEP,
        journal=journal,
    )


@pytest.fixture(params=["ssh", "local"])
def device(request, sshd, tmp_path, monkeypatch):
    monkeypatch.setenv("OPJOULE_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shell = SshConnection(sshd.target, sshd.options()) if request.param == "ssh" else LocalShell()
    made = board(shell, tmp_path / AWKWARD)
    yield made
    made.close()


def test_facts_name_the_board_and_the_loader(device):
    facts = device.facts()
    assert facts["machine"] == os.uname().machine
    assert facts["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (
        facts["loader_sha256"]
        == hashlib.sha256(find_loader(BUILDS, facts["machine"]).read_bytes()).hexdigest()
    )
    assert facts["rights"] in {"root", "sudo", "none"}


def test_a_loader_run_is_followed_and_its_files_come_back(device, tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    run = device.start_loader(["idle", "--seconds", "0.3"], raw, "idle-1")
    phases = [line["phase"] for line in run.lines() if "phase" in line]
    assert run.wait() == 0
    run.fetch()
    assert phases[:2] == ["idle-start", "idle-end"]
    assert (raw / "idle-1.system.csv").read_text().startswith("board_ns,")
    assert not list(raw.glob("*.part"))


def test_an_interrupt_ends_the_loader_in_order(device, tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    run = device.start_loader(["idle", "--seconds", "60"], raw, "idle-1")
    lines = run.lines()
    assert next(lines)["phase"] == "idle-start"
    run.interrupt()
    rest = list(lines)
    assert run.wait() == 130
    run.fetch()
    assert [line["summary"]["interrupted"] for line in rest if "summary" in line] == [True]
    assert (raw / "idle-1.events.jsonl").exists()


def test_a_storage_path_of_awkward_characters_is_made_as_it_is(device, tmp_path):
    device.prepare()
    database = device.database_path("leveldb")
    assert Path(database).parent == tmp_path / AWKWARD
    Path(database).mkdir()
    device.remove_database(database)
    assert {path.name for path in tmp_path.iterdir()} - {"work", "cache"} == {AWKWARD}
    assert not list((tmp_path / AWKWARD).iterdir())


def test_the_room_of_a_storage_that_is_not_there_yet_is_that_of_its_disk(device, tmp_path):
    """As the file system itself has it (statvfs), for a folder that prepare() has yet to make."""
    disk = os.statvfs(tmp_path)
    blocks = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    free_bytes = device.storage_free_bytes()
    assert free_bytes == pytest.approx(blocks * disk.f_frsize, rel=0.2)
    assert not (tmp_path / AWKWARD).exists()
    assert device.facts()["storage_free_bytes"] == pytest.approx(free_bytes, rel=0.2)


def test_only_a_database_of_this_storage_is_removed(device, tmp_path):
    victim = tmp_path / "opjoule-leveldb"
    victim.mkdir()
    for path in (str(victim), f"{tmp_path / AWKWARD}/../opjoule-leveldb", f"{tmp_path / AWKWARD}/other"):
        with pytest.raises(DeviceFault, match="refusing"):
            device.remove_database(path)
    assert victim.exists()


def test_a_workload_of_awkward_name_is_copied_whole(device, tmp_path):
    file = tmp_path / "work load;$(x)'.properties"
    file.write_bytes(b"recordcount=1\n\x00\xff")
    there = device.copy_in(file)
    assert Path(there).read_bytes() == file.read_bytes()
    assert device.copy_in(file) == there


def test_the_loaders_complaint_about_a_property_is_bad_input(device, tmp_path):
    workload = tmp_path / "w.properties"
    workload.write_text("recordcount=10\noperationcount=10\n")
    arguments = [
        "run",
        "--db",
        "leveldb",
        "--path",
        str(tmp_path / "db"),
        "--workload",
        device.copy_in(workload),
    ]
    device.check_workload(arguments)
    with pytest.raises(BadInput, match="redaproportion"):
        device.check_workload([*arguments, "-p", "redaproportion=1"])


@pytest.mark.parametrize("field", ["-p", "--threads", "--db", "--path", "--workload", "--seed"])
def test_awkward_settings_reach_the_loader_as_data(device, tmp_path, field):
    workload = tmp_path / "w.properties"
    workload.write_text("recordcount=10\noperationcount=10\n")
    arguments = [
        "run",
        "--db",
        "null",
        "--path",
        str(tmp_path / "db"),
        "--workload",
        device.copy_in(workload),
    ]
    with pytest.raises(BadInput):
        device.check_workload([*arguments, field, AWKWARD.replace("injected", str(tmp_path / "injected"))])
    assert not (tmp_path / "injected").exists()


def test_clock_exchanges_bracket_the_boards_clock(device):
    for _ in range(20):
        exchange = device.clock_exchange()
        assert exchange.sent_ns <= exchange.far_received_ns <= exchange.received_ns


def test_pending_writes_are_those_of_the_kernel(device, tmp_path):
    (tmp_path / "dirty").write_bytes(b"x" * (32 << 20))
    dirty = device.pending_write_bytes()
    os.sync()
    assert 0 <= dirty < 1 << 40


def test_a_corrupt_copy_of_the_loader_is_replaced(tmp_path):
    shell = LocalShell()
    loader = find_loader(BUILDS, os.uname().machine)
    target, digest = install_loader(shell, loader, str(tmp_path))
    Path(target).write_bytes(b"truncated")
    again, _ = install_loader(shell, loader, str(tmp_path))
    assert again == target
    assert hashlib.sha256(Path(target).read_bytes()).hexdigest() == digest


def test_a_board_of_unknown_type_is_named():
    with pytest.raises(DeviceFault, match="riscv64"):
        find_loader(BUILDS, "riscv64")


def test_a_cut_link_ends_the_run_and_its_files_are_fetched_when_it_is_back(sshd, link, tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    device = board(SshConnection(sshd.target, sshd.options(link.port)), tmp_path / "storage")
    try:
        run = device.start_loader(["idle", "--seconds", "60", "--progress"], raw, "idle-1")
        lines = run.lines()
        assert next(lines)["phase"] == "idle-start"
        link.cut()
        list(lines)
        threading.Timer(1.0, link.heal).start()
        with pytest.raises(LinkFault, match=r"lost .* its files were fetched"):
            run.wait()
        assert (raw / "idle-1.system.csv").read_text().count("\n") > 2
        assert device.clock_exchange().round_trip_ns > 0
    finally:
        device.close()


HOST_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(BUILDS.parent / "host")}
HOST = """
import sys, time
from pathlib import Path
from opjoule.devices.board import BoardDevice
from opjoule.devices.medium import Medium
from opjoule.devices.profiles import find_profile
from opjoule.devices.ssh import SshConnection
builds, storage, raw, target, *options = sys.argv[1:]
shell = SshConnection(target, options)
device = BoardDevice(find_profile("rpi4"), shell, builds=Path(builds), medium=Medium(storage), sync=None)
run = device.start_loader(["idle", "--seconds", "60"], Path(raw), "idle-1")
for line in run.lines():
    print(device.session_folder, flush=True)
"""


def test_a_killed_host_leaves_no_loader_running(sshd, tmp_path):
    (tmp_path / "raw").mkdir()
    arguments = [str(BUILDS), str(tmp_path / "storage"), str(tmp_path / "raw"), sshd.target, *sshd.options()]
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, *arguments], stdout=subprocess.PIPE, text=True, env=HOST_ENVIRONMENT
    )
    session = Path(host.stdout.readline().strip())
    pid_file = session / "idle-1/pid"
    loader = Path("/proc", pid_file.read_text().split()[0])
    assert loader.exists()
    host.send_signal(signal.SIGKILL)
    host.wait()
    deadline_s = time.monotonic() + 120
    while loader.exists():
        assert time.monotonic() < deadline_s, "the loader still runs"
        time.sleep(0.05)
    status = pid_file.parent / "status"
    while not (status.exists() and status.read_text().endswith("\n")):
        assert time.monotonic() < deadline_s, "its status is not noted"
        time.sleep(0.05)
    assert status.read_text().strip() == "130"
    assert (pid_file.parent / "idle-1.system.csv").exists()
    subprocess.run(["rm", "-rf", str(session)], check=True)


def test_doctor_examines_a_board_behind_ssh(sshd, tmp_path):
    (tmp_path / "sd").mkdir()
    storage = {
        "sd": Medium(str(tmp_path / "sd")),
        "emmc": Medium("/no/such/place"),
        "ssd": Medium("/mnt", "/dev/nothing"),
    }
    described = RigDevice(f"ssh:{sshd.target}", "gpio:/dev/no-chip:1", storage, tuple(sshd.options()))
    found = {check.about: check for check in examine_board("rpi4", described, BUILDS)}
    wells = {about: check.well for about, check in found.items()}
    assert wells["rpi4"]
    assert wells["rpi4 loader"]
    assert wells["rpi4 sd"]
    assert not wells["rpi4 emmc"]
    assert not wells["rpi4 ssd"]
    assert not wells["rpi4 sync"]
    assert "loader gpio" in found["rpi4 sync"].remedy


def test_doctor_shows_sshs_own_line_for_a_board_that_lets_nobody_in(sshd):
    described = RigDevice(f"ssh:{sshd.target}", ssh_options=tuple(sshd.options(host_key="\n")))
    [check] = examine_board("rpi4", described, BUILDS)
    assert "Host key verification failed" in check.detail


def test_few_sessions_lead_to_the_first_operation(sshd, tmp_path):
    """Each is a round trip or two: what a slow link costs at the start is their number."""
    shell = SshConnection(sshd.target, sshd.options())
    sessions = []
    command = shell.command
    shell.command = lambda arguments: sessions.append(arguments[0]) or command(arguments)
    device = board(shell, tmp_path / "storage")
    (tmp_path / "workload").write_text("recordcount=10\noperationcount=10\n")
    (tmp_path / "raw").mkdir()
    try:
        workload = device.copy_in(tmp_path / "workload")
        common = ["--db", "null", "--path", str(tmp_path / "storage/x"), "--workload", workload]
        device.check_workload(["run", *common])
        device.prepare()
        watch = device.watch_state()
        watch.start()
        run = device.start_loader(["run", *common], tmp_path / "raw", "run-1")
        assert len(sessions) <= 12
        assert any(line.get("phase") == "run-start" for line in run.lines())
        assert run.wait() == 0
        watch.stop()
    finally:
        device.close()


def test_a_second_measurement_of_the_same_board_is_refused_until_the_first_ends(sshd, tmp_path):
    first = board(SshConnection(sshd.target, sshd.options()), tmp_path / "storage")
    first.prepare()
    second = board(SshConnection(sshd.target, sshd.options()), tmp_path / "storage")
    with pytest.raises(DeviceFault, match="another measurement runs"):
        second.prepare()
    assert second.restore() == []
    second.close()
    first.close()
    third = board(SshConnection(sshd.target, sshd.options()), tmp_path / "storage")
    third.prepare()
    third.close()
