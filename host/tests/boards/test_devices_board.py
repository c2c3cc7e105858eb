"""A board behind ssh: loader copied and verified, runs followed, interrupted, cut off; all with the real loader."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from loopback_sshd import Link, Sshd
from opjoule.base.errors import DeviceFault, LinkFault
from opjoule.base.notices import NoticeKind
from opjoule.boards import runner
from opjoule.boards.binaries import (
    FAILED_ENGINES,
    LOADER,
    PROBE,
    find_program,
    install_programs,
    installed_here,
)
from opjoule.boards.board import Board, ProbeOptions
from opjoule.boards.board_state import StateSettings, read_facts
from opjoule.boards.medium import Medium
from opjoule.boards.profiles import find_profile
from opjoule.boards.rig import RigDevice
from opjoule.boards.rig_board import board_on, examine_board
from opjoule.boards.runner import WorkloadRun
from opjoule.boards.shell import LocalShell
from opjoule.boards.ssh import SshConnection

BUILDS = Path(__file__).resolve().parents[3] / "build"
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


@pytest.fixture
def short_path():
    """A socket's path has at most 107 bytes (unix(7)), which pytest's own may have already."""
    with tempfile.TemporaryDirectory(prefix="w") as folder:
        yield Path(folder)


KEEP = StateSettings().changed(
    dict.fromkeys(("page_cache", "governor", "wifi", "bluetooth", "hdmi", "leds", "swap", "services"), "keep"),
    "test",
)


SLEEPING = [
    *("sh", "-c"),
    'trap "" PIPE; sleep 60 & '
    'trap "kill \\$!; echo asked to end; exit 130" TERM; echo "{\\"phase\\":\\"start\\"}"; wait',
]
"""A workload that says it has begun, and ends when it is asked to."""


def board(shell, storage) -> Board:
    return board_on(
        shell,
        find_profile("rpi4"),
        Medium(str(storage)),
        builds=BUILDS,
        probe=ProbeOptions(),
        wanted=KEEP,
        journal=str(Path(storage).parent / "journal"),
    )


@pytest.fixture(params=["ssh", "local"])
def device(request, sshd, tmp_path, short_path, monkeypatch):
    monkeypatch.setenv("OPJOULE_WORK", str(short_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shell = SshConnection(sshd.target, sshd.options()) if request.param == "ssh" else LocalShell()
    made = board(shell, tmp_path / AWKWARD)
    yield made
    made.close()


def test_facts_name_the_board_and_its_programs(device):
    facts = device.facts()
    assert facts["machine"] == os.uname().machine
    assert facts["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for name in (LOADER, PROBE):
        program = find_program(BUILDS, facts["machine"], name)
        assert facts[f"{name}_sha256"] == hashlib.sha256(program.read_bytes()).hexdigest()
    assert facts["rights"] in {"root", "sudo", "none"}


@pytest.mark.parametrize(("variable", "folder"), [("XDG_CACHE_HOME", "cache"), ("OPJOULE_WORK", "work")])
def test_a_home_that_cannot_be_written_is_named_with_the_variable_that_leads_elsewhere(
    tmp_path, monkeypatch, variable, folder
):
    """A folder under a file can be made by nobody, not even root."""
    (tmp_path / "file").touch()
    for name, place in (("XDG_CACHE_HOME", tmp_path / "cache"), ("OPJOULE_WORK", tmp_path / "work")):
        monkeypatch.setenv(name, str(tmp_path / "file" / folder if name == variable else place))
    with pytest.raises(DeviceFault, match=f"{tmp_path}/file/{folder}.* {variable} "):
        read_facts(LocalShell(), journal=str(tmp_path / "journal"))


def test_a_workload_is_followed_and_its_files_and_the_probes_come_back(device, tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    device.prepare()
    device.probe.keep_marks(raw / "marks.jsonl")
    device.probe.begin_files("repeat-1")
    write = 'echo "{\\"phase\\":\\"start\\"}"; echo in plain words; echo content > "$2"'
    run = device.runner.start(["sh", "-c", write, "sh"], "run-1", raw, files={"--to": "txt"}, phase="run")
    assert [line["phase"] for line in run.lines() if "phase" in line] == ["start"]
    assert run.wait() == 0
    run.fetch()
    device.probe.begin_files("after-1")
    device.runner.fetch_probe_files("repeat-1", raw)
    device.end_probe(raw)
    assert (raw / "run-1.log").read_text() == "in plain words\n"
    assert (raw / "repeat-1.system.csv").read_text().startswith("board_ns,")
    events = (raw / "repeat-1.events.jsonl").read_text()
    assert events.index('"phase-begin"') < events.index('"phase-end"')
    kept = [json.loads(line) for line in (raw / "marks.jsonl").read_text().splitlines()]
    assert kept == [line for line in map(json.loads, events.splitlines()) if "phase" in line["event"]]
    assert [(mark.begins, mark.name) for mark in device.probe.marks()] == [(True, "run"), (False, "run")]
    assert not list(raw.glob("*.part"))


def test_an_interrupt_ends_a_workload_in_order(device, tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    device.prepare()
    run = device.runner.start(SLEEPING, "run-1", raw)
    lines = run.lines()
    assert next(lines) == {"phase": "start"}
    run.interrupt()
    assert list(lines) == []
    assert run.wait() == 130
    assert run.complaint() == "asked to end"


def test_an_interrupt_is_not_held_up_by_what_keeps_the_output_open(monkeypatch):
    """As a daemon does on a board where the probe may make no control group to end it in."""
    monkeypatch.setattr(runner, "INTERRUPT_S", 0.2)
    leaves = 'setsid sleep 600 & echo "{\\"pid\\":$!}"; read lifeline'
    run = WorkloadRun(LocalShell(), ["sh", "-c", leaves], "session/run-1", None)
    left = next(run.lines())["pid"]
    try:
        run.interrupt()
        assert run.wait() != 0
        assert "output" in run.complaint()
    finally:
        os.kill(left, signal.SIGKILL)


def test_a_storage_path_of_awkward_characters_is_made_as_it_is(device, tmp_path):
    device.prepare()
    database = device.database_path("leveldb")
    assert Path(database).parent == tmp_path / AWKWARD
    Path(database).mkdir()
    device.remove_database("leveldb")
    assert {path.name for path in tmp_path.iterdir()} - {"work", "cache"} == {AWKWARD}
    assert not list((tmp_path / AWKWARD).iterdir())


def test_the_room_of_a_storage_that_is_not_there_yet_is_that_of_its_disk(device, tmp_path):
    """As the file system itself has it (statvfs), for a folder that prepare() has yet to make."""
    disk = os.statvfs(tmp_path)
    blocks = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    free_bytes = device.free_bytes()
    assert free_bytes == pytest.approx(blocks * disk.f_frsize, rel=0.2)
    assert not (tmp_path / AWKWARD).exists()
    assert device.facts()["storage_free_bytes"] == pytest.approx(free_bytes, rel=0.2)


def test_only_a_database_of_this_storage_is_removed(device, tmp_path):
    victim = tmp_path / "opjoule-leveldb"
    victim.mkdir()
    for name in (str(victim), "../../opjoule-leveldb", "leveldb/../../opjoule-leveldb", ""):
        with pytest.raises(DeviceFault, match="refusing"):
            device.remove_database(name)
    assert victim.exists()


def test_a_workload_of_awkward_name_is_copied_whole(device, tmp_path):
    file = tmp_path / "work load;$(x)'.properties"
    file.write_bytes(b"recordcount=1\n\x00\xff")
    there = device.runner.copy_in(file)
    assert Path(there).read_bytes() == file.read_bytes()
    assert device.runner.copy_in(file) == there


def test_the_loader_complains_about_an_unknown_property(device, tmp_path):
    workload = tmp_path / "w.properties"
    workload.write_text("recordcount=10\noperationcount=10\n")
    arguments = [
        device.programs.loader,
        "run",
        "--db",
        "leveldb",
        "--path",
        str(tmp_path / "db"),
        "--workload",
        device.runner.copy_in(workload),
    ]
    assert device.shell.run([*arguments, "--check"]).status == 0
    refused = device.shell.run([*arguments, "--check", "-p", "redaproportion=1"])
    assert refused.status != 0 and "redaproportion" in refused.last_line()


@pytest.mark.parametrize("field", ["-p", "--threads", "--db", "--path", "--workload", "--seed"])
def test_awkward_settings_reach_the_loader_as_data(device, tmp_path, field):
    workload = tmp_path / "w.properties"
    workload.write_text("recordcount=10\noperationcount=10\n")
    arguments = [
        device.programs.loader,
        "run",
        "--db",
        "null",
        "--path",
        str(tmp_path / "db"),
        "--workload",
        device.runner.copy_in(workload),
    ]
    awkward = AWKWARD.replace("injected", str(tmp_path / "injected"))
    assert device.shell.run([*arguments, "--check", field, awkward]).status != 0
    assert not (tmp_path / "injected").exists()


def test_clock_exchanges_bracket_the_boards_clock(device):
    device.prepare()
    for _ in range(20):
        exchange = device.probe.clock_exchange()
        assert exchange.sent_ns <= exchange.far_received_ns <= exchange.received_ns


def test_pending_writes_are_those_of_the_kernel(device, tmp_path):
    device.prepare()
    (tmp_path / "dirty").write_bytes(b"x" * (32 << 20))
    dirty = device.probe.pending_write_bytes()
    os.sync()
    assert 0 <= dirty < 1 << 40


def test_a_corrupt_copy_of_a_program_is_replaced(tmp_path):
    shell = LocalShell()
    machine = os.uname().machine
    programs = install_programs(shell, BUILDS, machine, str(tmp_path))
    for copy in (programs.loader, programs.probe):
        Path(copy).write_bytes(b"truncated")
    again = install_programs(shell, BUILDS, machine, str(tmp_path))
    assert again == programs
    for copy, digest in ((again.loader, again.loader_sha256), (again.probe, again.probe_sha256)):
        assert hashlib.sha256(Path(copy).read_bytes()).hexdigest() == digest


def test_a_board_of_unknown_type_is_named():
    with pytest.raises(DeviceFault, match="riscv64"):
        find_program(BUILDS, "riscv64", LOADER)


def test_an_engine_that_set_up_could_not_build_is_named_with_the_reason(tmp_path):
    """Another engine of the same campaign is measured all the same."""
    (tmp_path / FAILED_ENGINES).parent.mkdir()
    (tmp_path / FAILED_ENGINES).write_text(json.dumps({"rocksdb": "librocksdb.a is missing"}))
    (tmp_path / "loader").mkdir()
    for name in (LOADER, PROBE):
        (tmp_path / "loader" / name).touch()
    with pytest.raises(DeviceFault, match=r"rocksdb: librocksdb\.a is missing"):
        installed_here(tmp_path, "rocksdb")
    assert installed_here(tmp_path, "leveldb").loader == str(tmp_path / "loader/loader")


def test_a_cut_link_ends_the_run_and_its_files_are_fetched_when_it_is_back(sshd, link, tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    device = board(SshConnection(sshd.target, sshd.options(link.port)), tmp_path / "storage")
    try:
        device.prepare()
        device.probe.begin_files("repeat-1")
        said = 'echo "{\\"phase\\":\\"start\\"}"; echo content > "$2"; exec sleep 60'
        run = device.runner.start(["sh", "-c", said, "sh"], "run-1", raw, files={"--to": "txt"})
        lines = run.lines()
        assert next(lines) == {"phase": "start"}
        link.cut()
        list(lines)
        threading.Timer(1.0, link.heal).start()
        with pytest.raises(LinkFault, match=r"lost .* fetched"):
            run.wait()
        assert (raw / "run-1.txt").read_text() == "content\n"
        device.end_probe(raw)
        assert (raw / "repeat-1.system.csv").read_text().count("\n") > 2
    finally:
        device.close()


class LostShell(LocalShell):
    """A board that is back after a lost link."""

    def is_up(self) -> bool:
        return False

    def is_still_up(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("boot", "folder", "reason"),
    [
        ("another", "/dev/shm/none/run-1", "restarted .*files of this phase$"),
        ("same", "/dev/shm/none/run-1", r"without files .*RemoveIPC.*loginctl enable-linger"),
        ("same", "/var/tmp/none/run-1", "without files of this phase$"),
        ("same", "/dev/shm/./run-1", "without files of this phase$"),
        ("", "/var/tmp/none/run-1", "without files of this phase$"),
    ],
)
def test_files_that_are_gone_after_a_lost_link_have_the_reason(tmp_path, boot, folder, reason):
    """systemd-logind removes what a user has in /dev/shm when the last session has ended."""
    now = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    run = WorkloadRun(LostShell(), ["true"], folder, tmp_path, boot_id=now if boot == "same" else boot)
    with pytest.raises(LinkFault, match=reason):
        run.wait()


def test_a_lost_link_without_files_to_fetch_claims_no_restart():
    run = WorkloadRun(LostShell(), ["true"], "/dev/shm/none/run-1", None)
    with pytest.raises(LinkFault, match=r"board is back$"):
        run.wait()


TESTS = Path(__file__).resolve().parents[1]
PLACES = TESTS.parent, TESTS / "support", TESTS / "boards"
HOST_ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PLACES))}
HOST = """
import sys, time
from pathlib import Path
from opjoule.boards import runner
from opjoule.boards.board import Board, ProbeOptions
from opjoule.boards.medium import Medium
from opjoule.boards.profiles import find_profile
from opjoule.boards.rig_board import board_on
from opjoule.boards.ssh import SshConnection
from test_devices_board import KEEP, SLEEPING
builds, storage, raw, target, *options = sys.argv[1:]
shell = SshConnection(target, options)
medium = Medium(storage)
journal = f"{storage}-journal"
device = board_on(
    shell, find_profile("rpi4"), medium, builds=Path(builds), probe=ProbeOptions(), wanted=KEEP, journal=journal
)
device.prepare()
device.probe.begin_files("repeat-1")
run = device.runner.start(SLEEPING, "idle-1", Path(raw))
for line in run.lines():
    print(device.runner.folder, flush=True)
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
    host.wait(60)
    deadline_s = time.monotonic() + 120
    while loader.exists():
        assert time.monotonic() < deadline_s, "the loader still runs"
        time.sleep(0.05)
    status = pid_file.parent / "status"
    while not (status.exists() and status.read_text().endswith("\n")):
        assert time.monotonic() < deadline_s, "its status is not noted"
        time.sleep(0.05)
    assert status.read_text().strip() == "130"
    probe_status = session / "probe/status"
    while not (probe_status.exists() and probe_status.read_text().endswith("\n")):
        assert time.monotonic() < deadline_s, "the probe still runs"
        time.sleep(0.05)
    assert probe_status.read_text().strip() == "0"
    assert (session / "probe/repeat-1.system.csv").read_text().endswith("\n")
    subprocess.run(["rm", "-rf", str(session)], check=True)


def test_doctor_examines_a_board_behind_ssh(sshd, tmp_path):
    (tmp_path / "sd").mkdir()
    storage = {
        "sd": Medium(str(tmp_path / "sd")),
        "emmc": Medium("/no/such/place"),
        "ssd": Medium("/mnt", "/dev/nothing"),
    }
    described = RigDevice(f"ssh:{sshd.target}", "gpio:/dev/no-chip:1", storage, tuple(sshd.options()))
    checks = {check.about: check for check in examine_board("rpi4", described, BUILDS)}
    wells = {about: check.kind is not NoticeKind.MEND for about, check in checks.items()}
    assert wells["rpi4"]
    assert wells["rpi4 loader"]
    assert wells["rpi4 sd"]
    assert not wells["rpi4 emmc"]
    assert not wells["rpi4 ssd"]
    assert not wells["rpi4 sync"]
    assert "probe gpio" in checks["rpi4 sync"].remedy


def test_doctor_shows_sshs_own_line_for_a_board_that_lets_nobody_in(sshd):
    described = RigDevice(f"ssh:{sshd.target}", ssh_options=tuple(sshd.options(host_key="\n")))
    [check] = examine_board("rpi4", described, BUILDS)
    assert "Host key" in check.line


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
        workload = device.runner.copy_in(tmp_path / "workload")
        common = ["--db", "null", "--path", str(tmp_path / "storage/x"), "--workload", workload]
        device.shell.run([device.programs.loader, "run", *common, "--check"])
        device.prepare()
        watch = device.watch_state()
        watch.start()
        device.probe.begin_files("repeat-1")
        run = device.runner.start([device.programs.loader, "run", *common], "run-1", tmp_path / "raw")
        assert len(sessions) <= 13
        assert any(line.get("phase") == "run-start" for line in run.lines())
        assert run.wait() == 0
        watch.stop()
    finally:
        device.close()


def test_a_second_measurement_of_the_same_board_is_refused_until_the_first_ends(sshd, tmp_path):
    first = board(SshConnection(sshd.target, sshd.options()), tmp_path / "storage")
    first.prepare()
    second = board(SshConnection(sshd.target, sshd.options()), tmp_path / "storage")
    with pytest.raises(DeviceFault, match="another measurement"):
        second.prepare()
    assert second.restore() == []
    second.close()
    first.close()
    third = board(SshConnection(sshd.target, sshd.options()), tmp_path / "storage")
    third.prepare()
    third.close()
