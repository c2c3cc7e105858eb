"""The state gate reads the board and marks a run that breaks a limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import accumulate, count
from pathlib import Path

import pytest
from opjoule.boards.profiles import Profile, find_profile, known_profiles
from opjoule.boards.shell import LocalShell
from opjoule.boards.state_gate import (
    FLAGS_PERIOD_S,
    MediumSpeed,
    PowerFlags,
    StateReading,
    StateWatch,
    broken_before,
    broken_by_readings,
    compare_speed,
    fan_notes,
    own_busy_ticks,
    quiet_stretch,
)


def reading(**changed) -> StateReading:
    values = {
        "temperature_c": 50.0,
        "throttled": 0,
        "under_voltage_alarm": None,
        "frequencies_khz": (1500000,),
        "busy_ticks": 0,
        "total_ticks": 1,
    }
    return StateReading(**{**values, **changed})


def test_an_answer_of_the_board_is_read():
    parsed = StateReading.parse("48312 50005 1 ,600000,1500000 12 100 2")
    assert parsed == StateReading(48.312, 0x50005, True, (600000, 1500000), 12, 100, 2)
    assert StateReading.parse("- - - - 1 2 -") == StateReading(None, None, None, (), 1, 2)


def test_a_fan_that_was_switched_during_the_run_is_reported_with_the_setting_that_holds_it():
    [line] = fan_notes([reading(fan_state=0), reading(fan_state=2), reading(fan_state=1)])
    assert "between the steps 0 and 2" in line and "fan = 2" in line
    assert fan_notes([reading(fan_state=1), reading(fan_state=1), reading()]) == []


def test_a_quiet_board_breaks_no_limit():
    assert broken_by_readings([reading(), reading(temperature_c=None, throttled=None)], 80) == []
    assert broken_before(0.02, 1 << 30) == []


@pytest.mark.parametrize(
    ("readings", "says"),
    [
        ([reading(), reading(temperature_c=81.3), reading()], "temperature reached 81.3 C (limit 80 C)"),
    ],
)
def test_a_broken_limit_is_named(readings, says):
    assert broken_by_readings(readings, 80) == [says]


def flags(*readings: int | None, alarm: bool | None = None) -> PowerFlags:
    joined = PowerFlags()
    for throttled in readings:
        joined.add(throttled, alarm)
    return joined


@pytest.mark.parametrize(
    ("readings", "seen"),
    [
        ((0, 0x1, 0), ["firmware reports under-voltage"]),
        ((0, 0x40000), ["firmware reports throttled"]),
        ((0, 0x8), ["firmware reports soft temperature limit"]),
        ((0, 0x50000, 0), ["firmware reports under-voltage", "firmware reports throttled"]),
        ((0x50000, 0, 0x10000, 0), ["firmware reports under-voltage"]),
        ((0x50000, 0x50000), []),
        ((0x50000, 0), []),
    ],
)
def test_flags_that_the_kernel_clears_again_are_not_lost(readings, seen):
    """What stood before the first reading is from before the measurement."""
    assert flags(*readings).broken() == seen


def test_the_kernels_alarm_counts_where_the_firmwares_file_is_missing():
    assert flags(None, alarm=True).broken() == ["firmware reports under-voltage"]
    assert flags(None, alarm=False).broken() == flags(None, alarm=False).unknown() == []


def test_a_board_that_tells_nothing_of_its_supply_is_said_to():
    assert "neither get_throttled nor rpi_volt" in flags(None).unknown()[0]
    assert flags(0).unknown() == []


def test_load_by_others_and_a_full_medium_are_named():
    load, room = broken_before(0.25, 100 << 20)
    assert " 25% " in load and "(limit 10%)" in load
    assert room.startswith("100 MiB ") and room.endswith("(limit 256 MiB)")


def test_a_medium_that_has_become_slow_is_named(tmp_path):
    history = tmp_path / "deep" / "media.json"
    for _ in range(3):
        assert compare_speed(history, "SD S1", MediumSpeed(20e6, 40e6)) == []
    assert compare_speed(history, "other", MediumSpeed(1e6, 1e6)) == []
    assert compare_speed(history, "SD S1", MediumSpeed(10e6, 41e6)) == [
        "medium write speed 10.0 MB/s, usually 20.0 MB/s"
    ]


def stand_in(tmp_path: Path) -> Profile:
    (tmp_path / "temp").write_text("61500\n")
    (tmp_path / "throttled").write_text("0\n")
    policy = tmp_path / "cpu" / "cpufreq" / "policy0"
    policy.mkdir(parents=True)
    (policy / "scaling_cur_freq").write_text("1400000\n")
    values = {**vars(find_profile("rpi3")), "temperature": str(tmp_path / "temp")}
    return Profile(**{**values, "throttled": str(tmp_path / "throttled")})


def test_a_whole_watch_reports_before_during_and_after(tmp_path):
    """Against a stand-in tree: the 3B+ lowers its clock from 60 C on."""
    storage = tmp_path / "storage"
    storage.mkdir()
    watch = StateWatch(
        LocalShell(),
        stand_in(tmp_path),
        folder=str(storage),
        identity="test",
        cpufreq=str(tmp_path / "cpu"),
        history=tmp_path / "media.json",
    )
    watch.start()
    (tmp_path / "throttled").write_text("10000\n")
    report = watch.stop()
    assert report.before["temperature_c"] == 61.5
    assert report.before["frequencies_khz"] == (1400000,)
    assert report.before["medium_speed"]["write_bytes_per_s"] > 0
    assert report.after["throttled"] == 0x10000
    assert "temperature reached 61.5 C (limit 60 C)" in report.broken
    assert "firmware reports under-voltage" in report.broken
    assert list(storage.iterdir()) == []


def readings(shares: list[float]) -> Iterator[StateReading]:
    """Readings between which the processors were busy for these shares of 1,000 ticks."""
    busy = accumulate(round(1000 * share) for share in shares)
    return (StateReading(None, None, None, (), used, 1000 * at) for at, used in enumerate(busy))


@pytest.mark.parametrize(("busy", "share"), [(0, 0.02), (3, 0.02), (40, 0.5)])
def test_a_board_that_is_busy_for_a_moment_after_the_login_is_waited_for(busy, share):
    read = readings([0.0, *[0.5] * busy, *[0.02] * 60])
    others, _ = quiet_stretch(lambda: next(read), lambda: 0.0, lambda seconds: None)
    assert others == share
    assert bool(broken_before(others, 1 << 40)) == (busy == 40)


def test_what_the_measuring_program_uses_on_its_own_board_is_not_other_programs():
    read, own_ticks = readings([0.5] * 60), count(0, 480)
    others, _ = quiet_stretch(lambda: next(read), lambda: next(own_ticks), lambda seconds: None)
    assert others == pytest.approx(0.02)
    assert own_busy_ticks(LocalShell()) > 0


def test_a_dip_between_two_full_readings_is_seen(tmp_path):
    """The kernel reads the flags, and has them cleared, every 2 s (drivers/hwmon/raspberrypi-hwmon.c)."""
    assert FLAGS_PERIOD_S < 2
    storage = tmp_path / "storage"
    storage.mkdir()
    profile = stand_in(tmp_path)
    soc = tmp_path / "soc@107c000000" / "soc@107c000000:firmware"
    soc.mkdir(parents=True)
    (soc / "get_throttled").write_text("0\n")
    watch = StateWatch(
        LocalShell(),
        Profile(**{**vars(profile), "throttled": f"{tmp_path}/soc*/soc*:firmware/get_throttled"}),
        folder=str(storage),
        identity="test",
        cpufreq=str(tmp_path / "cpu"),
        history=None,
    )
    watch.start()
    (soc / "get_throttled").write_text("50005\n")
    deadline_s = time.monotonic() + 60
    while not watch._flags.seen:
        assert time.monotonic() < deadline_s, "the flags are not read"
        time.sleep(0.05)
    (soc / "get_throttled").write_text("0\n")
    report = watch.stop()
    assert report.after["throttled"] == 0
    assert "firmware reports under-voltage" in report.broken
    assert report.unknown == []


def test_the_alarm_of_rpi_volt_is_found_by_its_name(tmp_path):
    for number, name in enumerate(("cpu_thermal", "rpi_volt")):
        chip = tmp_path / "hwmon" / f"hwmon{number}"
        chip.mkdir(parents=True)
        (chip / "name").write_text(name + "\n")
        (chip / "in0_lcrit_alarm").write_text("1\n")
    watch = StateWatch(
        LocalShell(), find_profile("generic-linux"), folder=str(tmp_path), identity="x", cpufreq="/none", history=None,
        hwmon=str(tmp_path / "hwmon"),
    )  # fmt: skip
    watch.start()
    assert "firmware reports under-voltage" in watch.stop().broken


@pytest.mark.parametrize("name", known_profiles())
def test_every_profile_is_complete(name):
    profile = find_profile(name)
    assert profile.media
    assert profile.supply_voltage_v[0] < profile.supply_voltage_v[1]
