"""What a measurement changes on a board: the plan, what it refuses, and that every change is undone."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from board_answers import ANSWERS, MARK, abouts, active, plan, run, state
from opjoule.base.errors import BadInput, DeviceFault
from opjoule.boards.board_state import BlockDevices, BoardState, StateSettings, read_state, why_not_expendable
from opjoule.boards.changes import STOPPED_UNITS
from opjoule.boards.medium import Medium
from opjoule.boards.shell import LocalShell
from opjoule.boards.state_gate import broken_by_steering, steered
from opjoule.boards.steps import Change, prepare_script, restore_script

AWKWARD = 'it\'s; $(touch injected) "x"\n`y` & z'


def on_medium(number: str, name: str, *, features: str = "") -> BoardState:
    file_system = {"file_system": [["53ef", features, MARK.replace("-", "")]]} if features else {}
    return state(medium=[[f"/dev/{name}", "block", number]], **file_system)


def test_the_default_plan_quietens_the_board():
    made = abouts(plan(state()))
    assert made == [
        "governor performance (was ondemand)",
        "Bluetooth off",
        "Wi-Fi off",
        "card1-HDMI-A-1 off",
        "LED ACT off",
        "LED ACT dark",
        "swap /var/swap off",
        "swap /dev/zram0 off",
        "apt-daily.timer stopped",
        abouts(plan(state()))[-1],
    ]
    assert plan(state()).steps[-1].do[0] == "drop_page_cache"


def test_each_change_of_a_setting_is_undone_with_its_old_value():
    steps = {step.about: step for step in plan(state()).steps}
    assert steps["governor performance (was ondemand)"].undo == (
        "put",
        "/c/policy0/scaling_governor",
        "ondemand",
    )
    assert steps["swap /dev/zram0 off"].undo == ("swap_on", "/dev/zram0", "100")
    assert steps["swap /var/swap off"].undo == ("swap_on", "/var/swap", "")
    assert steps["LED ACT off"].undo == ("put", "/l/ACT/trigger", "mmc0")
    without_undo = [step.do[0] for step in steps.values() if not step.undo]
    assert without_undo == ["drop_page_cache"]


def test_a_board_without_a_fan_says_so_and_one_with_fewer_steps_refuses():
    assert [line for line in plan(state(), fan=2).kept if line.startswith("fan: ")]
    with pytest.raises(BadInput, match="steps 0 to 1"):
        plan(state(fan=[["/t/cooling_device0", "1", "0"]]), fan=2)


@pytest.mark.parametrize(
    ("interface", "remote", "kept"),
    [
        ("wlan0", True, True),
        ("lo", True, True),
        ("", True, True),
        ("eth0", True, False),
        ("", False, False),
    ],
)
def test_wifi_stays_on_when_the_connection_runs_over_it(interface, remote, kept):
    made = plan(state(), interface=interface, remote=remote)
    assert ("Wi-Fi off" in abouts(made)) == (not kept) == (not any("Wi-Fi" in line for line in made.kept))


def test_the_answer_to_a_local_name_is_kept_when_the_connection_needs_it():
    """Without avahi-daemon `raspberrypi.local` is lost after two minutes, when this computer's cache forgets it."""
    board = state(unit=active("avahi-daemon.socket", "avahi-daemon.service", "cron.service"))
    kept = plan(board, found_by_mdns=True)
    assert [about for about in abouts(kept) if "stopped" in about] == ["cron.service stopped"]
    assert any(".local name" in line for line in kept.kept)
    assert "avahi-daemon.service stopped" in abouts(plan(board))
    assert not [line for line in plan(board, found_by_mdns=True, services="keep").kept if ".local" in line]


@pytest.mark.parametrize("unit", ["systemd-timesyncd.service", "chrony.service", "ntp.service", "ntpsec.service"])
def test_daemons_that_slew_the_boards_clock_are_stopped_and_started_again(unit):
    board = state(unit=active(unit))
    [step] = [step for step in plan(board, services="keep").steps if unit in step.about]
    assert (step.do, step.undo) == (("systemctl", "stop", unit), ("systemctl", "start", unit))
    assert f"{unit} stopped" not in abouts(plan(board, time_daemons="keep"))


def test_the_bootloaders_updater_is_never_started_again():
    """It has run at boot and stays active; started again it would execute `rpi-eeprom-update -a`."""
    board = state(unit=active("rpi-eeprom-update.service", "cron.service"))
    assert [about for about in abouts(plan(board)) if "stopped" in about] == ["cron.service stopped"]
    assert "rpi-eeprom-update.service" not in STOPPED_UNITS


SYSTEMCTL = r"""#!/bin/sh
for word; do case $word in --state=*) states=,${word#*=}, ;; --type=*) types=,${word#*=}, ;; esac; done
while read -r unit load active about; do
  case $states in *,$active,*) case $types in *,${unit##*.},*) echo "$unit $load $active $about" ;; esac ;; esac
done <<'UNITS'
apt-daily-upgrade.service loaded activating start Daily apt upgrade and clean activities
apt-daily-upgrade.timer loaded active waiting Daily apt upgrade and clean activities
cups.path loaded active running CUPS Scheduler
cron.service loaded inactive dead Regular background program processing daemon
UNITS
"""


def test_an_upgrade_at_work_is_waited_for_and_never_stopped(tmp_path, monkeypatch):
    """A oneshot service is activating as long as it works, and never active."""
    (tmp_path / "systemctl").write_text(SYSTEMCTL)
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    units = read_state(LocalShell(), "root", cpufreq="/nowhere", device="", path=str(tmp_path)).of("unit")
    with pytest.raises(DeviceFault, match=r"^apt-daily-upgrade\.service "):
        plan(state(unit=units))
    kept = plan(state(unit=units), services="keep")
    assert not [about for about in abouts(kept) if "stopped" in about]
    ended = [[unit, now] for unit, now in units if unit != "apt-daily-upgrade.service"]
    stopped = [about for about in abouts(plan(state(unit=ended))) if "stopped" in about]
    assert stopped == ["apt-daily-upgrade.timer stopped", "cups.path stopped"]


STILL = {"frequency_ppm": 2.0, "tick_us": 10000, "offset_s": 0.0}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {}, []),
        ({}, {"frequency_ppm": -18.0}, [" -20.00 ppm"]),
        ({}, {"tick_us": 10001}, [" +100.00 ppm"]),
        ({"offset_s": 0.0012}, {}, [" 1200 us"]),
    ],
)
def test_a_clock_that_was_steered_during_a_measurement_is_reported(before, after, said):
    lines = steered({**STILL, **before}, {**STILL, **after})
    assert len(lines) == len(said)
    assert all(part in line for part, line in zip(said, lines, strict=True))
    assert steered({"reason": "adjtimex: x"}, STILL) == []


@pytest.mark.parametrize(
    ("after", "breaks"),
    [
        ({"frequency_ppm": 99.0}, False),
        ({"frequency_ppm": -101.0}, True),
        ({"tick_us": 10_001}, True),
        ({}, False),
    ],
)
def test_a_clock_that_was_steered_far_breaks_a_limit(after, breaks):
    still = {**STILL, "frequency_ppm": 0.0, "tick_us": 10_000}
    assert bool(broken_by_steering(still, {**still, **after})) == breaks
    assert broken_by_steering({"reason": "adjtimex: x"}, still) == []


def test_swap_that_systemd_took_down_with_its_zram_device_is_made_anew(tmp_path):
    """zram-generator and rpi-swap: swapon of the bare device fails."""
    programs = tmp_path / "bin"
    programs.mkdir()
    calls = {
        "swapon": "exit 1",
        "systemd-escape": "echo dev-zram0.swap",
        "systemctl": f"echo $* > '{tmp_path}/started'",
    }
    for name, text in calls.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    script = prepare_script([Change("x", ("swap_on", "/dev/zram0", "100"))], str(tmp_path / "journal"))
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    ran = subprocess.run(["sh", "-s"], input=script, capture_output=True, env=environment, check=True)
    assert ran.stdout == b"done\t0001\n"
    assert (tmp_path / "started").read_text() == "start dev-zram0.swap\n"


def test_processors_and_memory_are_limited_when_asked():
    made = abouts(plan(state(), cpus=2, memory_mb=1024))
    assert "processor cpu3 off" in made
    assert "processor cpu2 off" in made
    assert "processor cpu1 off" not in made
    assert "memory limited to 1024 MiB (1024 MiB taken away)" in made


def test_processors_that_the_kernel_cannot_switch_off_are_refused_with_the_remedy():
    """Raspberry Pi 0 to 4: no processor has an `online` file (raspberrypi/linux, pull request 6409)."""
    board = state(cpu=[[f"/s/cpu{number}", "always"] for number in range(4)])
    with pytest.raises(BadInput, match=r"cpus = 2: 4 processors .* switch 0 of them off: .* maxcpus=2"):
        plan(board, cpus=2)
    assert not [about for about in abouts(plan(board, cpus=4)) if "processor" in about]


@pytest.mark.parametrize(("khz", "first"), [(1200000, "scaling_max_freq"), (600000, "scaling_max_freq")])
def test_a_fixed_frequency_keeps_minimum_below_maximum_on_the_way(khz, first):
    made = [about for about in abouts(plan(state(), frequency_khz=khz)) if "freq" in about]
    assert made[0].startswith(first)
    assert len(made) == 2


def test_a_frequency_above_a_lowered_range_raises_the_maximum_first():
    lowered = [["/c/policy0", "performance", "600000", "900000", "performance", "600000", "1500000"]]
    made = [about for about in abouts(plan(state(policy=lowered), frequency_khz=1200000)) if "freq" in about]
    assert [about.split()[0] for about in made] == ["scaling_max_freq", "scaling_min_freq"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"governor": "turbo"}, "governor 'turbo'"),
        ({"frequency_khz": 2000000}, "outside the board's 600000 to 1500000"),
        ({"memory_mb": 64}, "at least 128"),
        ({"journal": "off"}, "/mnt/ssd .*device = .*expendable"),
        ({"file_system": "new"}, "/mnt/ssd .*device = .*expendable"),
    ],
)
def test_a_state_that_the_board_cannot_take_is_refused(wanted, message):
    with pytest.raises(BadInput, match=message):
        plan(state(), **wanted)


def test_without_root_rights_nothing_is_changed_and_the_plan_says_so():
    made = plan(state(), rights="none")
    assert made.steps == []
    assert any("no root rights" in line for line in made.kept)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"govenor": "performance"}, "did you mean 'governor'"),
        ({"swap": "maybe"}, "swap must be"),
        ({"cpus": "two"}, "cpus must be"),
        ({"cpus": True}, "cpus must be"),
        ({"journal": 1}, "journal must be .*not 1"),
        ({"fan": 5}, "fan must be .*not 5"),
    ],
)
def test_unknown_state_settings_are_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        StateSettings().changed(settings, "rig.toml")


# --- the medium --------------------------------------------------------------------------------------------------

BY_ID = "/dev/disk/by-id/usb-Samsung"


@pytest.mark.parametrize(
    ("number", "name", "message"),
    [
        ("179:0", "mmcblk0", "root file system"),
        ("179:2", "mmcblk0p2", "root file system"),
        ("179:1", "mmcblk0p1", "root file system"),
        ("8:17", "sdb1", "partition of sdb"),
        ("8:32", "sdc", "sdc1 is in use \\(mounted on /mnt/user\\)"),
        ("8:48", "sdd", "part of dm-0"),
        ("", "sdz", "block device"),
    ],
)
def test_a_device_that_is_in_use_is_refused_under_whatever_name(number, name, message):
    medium = Medium("/mnt/ssd", BY_ID, expendable=True)
    with pytest.raises(BadInput, match=message):
        plan(on_medium(number, name), medium=medium, file_system="new")


def test_a_device_that_is_not_listed_as_expendable_is_refused():
    for wanted in (
        {"file_system": "new"},
        {"file_system": "check"},
        {"journal": "off"},
        {"precondition_mb": 1},
    ):
        with pytest.raises(BadInput, match="expendable"):
            plan(on_medium("8:0", "sda", features="04000000"), medium=Medium("/mnt/ssd", BY_ID), **wanted)


def test_the_root_is_found_below_lvm_and_loop_devices():
    lvm = [*ANSWERS["block"], ["dm-1", "253:1", "dm-1", "sdb1 ", "", "9", "", ""]]
    blocks = BlockDevices.from_answers({**ANSWERS, "block": lvm, "root": [["253:1"]]})
    assert "root file system" in why_not_expendable("x", "8:16", ["x"], blocks)
    loop_root = BlockDevices.from_answers({**ANSWERS, "root": [["7:0"]]})
    assert "root file system" in why_not_expendable("x", "8:32", ["x"], loop_root)


def test_swap_space_is_refused():
    swapping = {**ANSWERS, "swap": [["/dev/sda", "partition", "-2"]]}
    assert "swap space" in why_not_expendable("x", "8:0", ["x"], BlockDevices.from_answers(swapping))


def test_an_unknown_root_device_makes_everything_refused():
    blocks = BlockDevices.from_answers({**ANSWERS, "root": [["0:31"]]})
    assert why_not_expendable("x", "8:0", ["x"], blocks)
    assert not why_not_expendable("x", "8:0", ["x"], BlockDevices.from_answers(ANSWERS))


def test_an_expendable_medium_is_made_new_unjournalled_mounted_trimmed_and_filled():
    medium = Medium("/mnt/ssd", BY_ID, expendable=True)
    made = plan(on_medium("8:0", "sda"), medium=medium, file_system="new", journal="off", precondition_mb=64)
    [start] = [at for at, about in enumerate(abouts(made)) if about.startswith("new ext4 on /dev/sda")]
    _, *between, written = abouts(made)[start:-1]
    assert between == [
        "ext4 journal off (was on)",
        "directory /mnt/ssd",
        "/dev/sda mounted on /mnt/ssd",
        "/mnt/ssd given to pi",
        "TRIM of /mnt/ssd",
    ]
    assert written.startswith("64 MiB ")


def test_a_medium_that_is_not_expendable_is_not_trimmed():
    made = abouts(plan(on_medium("8:0", "sda"), medium=Medium("/mnt/ssd", BY_ID)))
    assert "/dev/sda mounted on /mnt/ssd" in made
    assert not [about for about in made if "TRIM" in about]


def test_a_switched_journal_is_switched_back_even_after_a_reboot():
    medium = Medium("/mnt/ssd", BY_ID, expendable=True)
    board = on_medium("8:0", "sda", features="04000000")
    [step] = [step for step in plan(board, medium=medium, journal="off").steps if "journal" in step.about]
    assert (step.do, step.undo, step.lasting) == (
        ("journal_off", "/dev/sda", "8:0"),
        ("journal_back", "on", MARK),
        True,
    )
    assert not [about for about in abouts(plan(board, medium=medium, journal="on")) if "journal" in about]


def test_a_medium_that_is_mounted_elsewhere_is_not_measured_by_mistake():
    """Its path would be an ordinary directory, on another medium."""
    elsewhere = {
        "mount": [["179:2", "/"], ["8:0", "/media/pi/ssd"]],
        "medium": [["/dev/sda", "block", "8:0"]],
    }
    with pytest.raises(BadInput, match=r"/media/pi/ssd.*/mnt/ssd"):
        plan(state(**elsewhere, path=[["/mnt/ssd", "179:2"]]), medium=Medium("/mnt/ssd", BY_ID))
    made = plan(state(**elsewhere, path=[["/mnt/ssd", "8:0"]]), medium=Medium("/mnt/ssd", BY_ID))
    assert not [about for about in abouts(made) if "mounted" in about]


# --- the scripts, run for real on this computer's shell ----------------------------------------------------------


def setting(path: Path, value: str, old: str, *, lasting: bool = False) -> Change:
    return Change("x", ("put", str(path), value), ("put", str(path), old), lasting)


def test_steps_change_settings_and_restore_puts_them_back_in_reverse(tmp_path):
    journal, knob = str(tmp_path / AWKWARD / "journal"), tmp_path / f"knob {AWKWARD}"
    knob.write_text("a\n")
    (tmp_path / AWKWARD).mkdir()
    assert run(prepare_script([setting(knob, "b", "a"), setting(knob, AWKWARD, "b")], journal)) == [
        ["done", "0001"],
        ["done", "0002"],
    ]
    assert knob.read_text() == AWKWARD + "\n"
    assert len(list(Path(journal).iterdir())) == 2
    assert [outcome[:2] for outcome in run(restore_script(journal))] == [["done", "0002"], ["done", "0001"]]
    assert knob.read_text() == "a\n"
    assert not Path(journal).exists()
    assert not (tmp_path / "injected").exists()
    assert run(restore_script(journal)) == []


def test_a_failed_step_says_why_and_the_others_go_on(tmp_path):
    knob = tmp_path / "knob"
    steps = [Change("x", ("ls", str(tmp_path / "missing"))), setting(knob, "b", "a")]
    outcomes = run(prepare_script(steps, str(tmp_path / "journal")))
    assert outcomes[0][:2] == ["failed", "0001"]
    assert "missing" in outcomes[0][2]
    assert outcomes[1] == ["done", "0002"]


def test_an_undo_that_fails_stays_in_the_journal(tmp_path):
    journal, gone = tmp_path / "journal", tmp_path / "folder" / "knob"
    gone.parent.mkdir()
    knob = tmp_path / "knob"
    run(prepare_script([setting(gone, "b", "a"), setting(knob, "b", "a")], str(journal)))
    gone.unlink()
    gone.parent.rmdir()
    assert [outcome[0] for outcome in run(restore_script(str(journal)))] == ["done", "failed"]
    assert knob.read_text() == "a\n"
    gone.parent.mkdir()
    assert [outcome[:2] for outcome in run(restore_script(str(journal)))] == [["done", "0001"]]
    assert gone.read_text() == "a\n"


def test_after_a_reboot_only_lasting_changes_are_undone(tmp_path):
    journal, passing, lasting = tmp_path / "journal", tmp_path / "passing", tmp_path / "lasting"
    run(prepare_script([setting(passing, "b", "a"), setting(lasting, "b", "a", lasting=True)], str(journal)))
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for file in journal.iterdir():
        file.write_text(file.read_text().replace(boot_id, "another-boot"))
    run(restore_script(str(journal)))
    assert (passing.read_text(), lasting.read_text()) == ("b\n", "a\n")
    assert not journal.exists()


def rfkill(folder: Path, *switches: tuple[str, str, str]) -> Path:
    """The kernel's folder of radio switches, made anew: (type, name, soft) by number."""
    for number, fields in enumerate(switches):
        switch = folder / f"rfkill{number}"
        switch.mkdir(parents=True, exist_ok=True)
        for name, value in zip(("type", "name", "soft"), fields, strict=True):
            (switch / name).write_text(value + "\n")
    return folder


@pytest.mark.parametrize(
    ("after_boot", "wifi"),
    [
        ((("bluetooth", "hci0", "1"), ("wlan", "phy0", "1")), 1),
        ((("wlan", "phy0", "1"), ("bluetooth", "hci0", "1")), 0),
        ((("bluetooth", "hci0", "1"), ("wlan", "phy1", "1")), 1),
        ((("wlan", "phy1", "1"), ("wlan", "phy0", "1"), ("bluetooth", "hci0", "1")), 1),
    ],
    ids=["as before", "numbered anew", "named anew", "a second one is plugged in"],
)
def test_radios_come_back_after_a_power_cut(tmp_path, after_boot, wifi):
    """systemd-rfkill saves a blocked switch and blocks it again at boot."""
    journal = tmp_path / "journal"
    switches = rfkill(tmp_path / "rfkill", ("bluetooth", "hci0", "0"), ("wlan", "phy0", "0"))
    board = state(
        radio=[
            [f"{switches}/rfkill0", "bluetooth", "0", "hci0"],
            [f"{switches}/rfkill1", "wlan", "0", "phy0"],
        ]
    )
    steps = [step for step in plan(board).steps if step.about in ("Wi-Fi off", "Bluetooth off")]
    run(prepare_script(steps, str(journal)))
    assert (switches / "rfkill1/soft").read_text() == "1\n"
    rfkill(switches, *after_boot)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for file in journal.iterdir():
        file.write_text(file.read_text().replace(boot_id, "another-boot"))
    run(restore_script(str(journal)))
    assert (switches / f"rfkill{wifi}/soft").read_text() == "0\n"
    assert not journal.exists()


def test_a_radio_that_is_not_there_yet_stays_in_the_journal(tmp_path):
    journal = tmp_path / "journal"
    switches = rfkill(tmp_path / "rfkill", ("wlan", "phy0", "0"))
    board = state(radio=[[f"{switches}/rfkill0", "wlan", "0", "phy0"]])
    run(prepare_script([step for step in plan(board).steps if step.about == "Wi-Fi off"], str(journal)))
    (switches / "rfkill0/type").write_text("bluetooth\n")
    [outcome] = run(restore_script(str(journal)))
    assert (outcome[0], "no radio phy0 of type wlan" in outcome[2]) == ("failed", True)
    assert journal.exists()


def test_systemd_does_not_save_the_radios_that_a_measurement_switches_off():
    board = state(unit=active("systemd-rfkill.socket"))
    made = plan(board)
    about = abouts(made)
    [saver] = [step for step in made.steps if "systemd-rfkill" in step.about]
    assert saver.undo == ("systemctl", "start", "systemd-rfkill.socket")
    assert about.index(saver.about) < about.index("Bluetooth off")
    assert not [line for line in abouts(plan(board, wifi="keep", bluetooth="keep")) if "rfkill" in line]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_script_that_arrives_in_part_changes_nothing(tmp_path, share):
    knob = tmp_path / "knob"
    knob.write_text("a\n")
    script = prepare_script([setting(knob, "b", "a")] * 50, str(tmp_path / "journal"))
    cut = script[: int(len(script) * share)]
    subprocess.run(["sh", "-s"], input=cut, capture_output=True, check=False)
    assert knob.read_text() == "a\n"
    assert not (tmp_path / "journal").exists()


def test_a_kill_at_any_moment_leaves_a_journal_that_restores(tmp_path):
    journal = tmp_path / "journal"
    knobs = [tmp_path / f"knob{number}" for number in range(40)]
    for delay_s in (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.16, 0.2, 0.3):
        for knob in knobs:
            knob.write_text("a\n")
        script = prepare_script([setting(knob, "b", "a") for knob in knobs], str(journal))
        process = subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        process.stdin.write(script)
        process.stdin.close()
        try:
            process.wait(delay_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        run(restore_script(str(journal)))
        assert [knob.read_text() for knob in knobs] == ["a\n"] * 40, delay_s
        assert not journal.exists()


def start(script: bytes) -> subprocess.Popen[bytes]:
    started = subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    started.stdin.write(script)
    started.stdin.close()
    return started


def test_restore_waits_for_a_preparation_that_is_still_at_work(tmp_path):
    """A link cut in the middle does not stop the board's shell."""
    knob = tmp_path / "knob"
    knob.write_text("a\n")
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    held_up = [Change("x", ("cat", str(gate))), setting(knob, "b", "a")]
    journal = str(tmp_path / "journal")
    preparing = start(prepare_script([setting(tmp_path / "first", "b", "a"), *held_up], journal))
    deadline_s = time.monotonic() + 120
    while not (tmp_path / "first").exists():
        assert time.monotonic() < deadline_s, "the preparation does not begin"
        time.sleep(0.02)
    restoring = start(restore_script(journal))
    with pytest.raises(subprocess.TimeoutExpired):
        restoring.wait(1)
    gate.write_text("")
    assert preparing.wait(120) == 0
    assert restoring.wait(120) == 0
    assert knob.read_text() == "a\n"
    assert not Path(journal).exists()


def test_this_computers_own_state_can_be_read(tmp_path):
    board = read_state(LocalShell(), "root", cpufreq="/nowhere", device="", path=str(tmp_path))
    assert board.memory_kb > 100_000
    assert board.interface_kind("lo") == "virtual"
    assert board.blocks.mounts
    assert board.of("policy") == []


def test_the_cpu_settings_of_a_stand_in_tree_are_read_changed_and_put_back(tmp_path):
    policy = tmp_path / "cpu tree" / "cpufreq" / "policy0"
    policy.mkdir(parents=True)
    values = {
        "scaling_governor": "ondemand",
        "scaling_min_freq": "600000",
        "scaling_max_freq": "1500000",
        "scaling_available_governors": "ondemand performance",
        "cpuinfo_min_freq": "600000",
        "cpuinfo_max_freq": "1500000",
    }
    for name, value in values.items():
        (policy / name).write_text(value + "\n")
    board = read_state(LocalShell(), "root", cpufreq=str(tmp_path / "cpu tree"), device="", path=str(tmp_path))
    keep = dict.fromkeys(("wifi", "bluetooth", "hdmi", "leds", "swap", "services", "page_cache"), "keep")
    made = plan(board, medium=Medium(str(tmp_path)), frequency_khz=1200000, **keep)
    journal = str(tmp_path / "journal")
    assert all(outcome == "done" for outcome, *_ in run(prepare_script(made.steps, journal)))
    now = {name: (policy / name).read_text().strip() for name in values}
    assert now == values | {
        "scaling_governor": "performance",
        "scaling_min_freq": "1200000",
        "scaling_max_freq": "1200000",
    }
    run(restore_script(journal))
    assert {name: (policy / name).read_text().strip() for name in values} == values
