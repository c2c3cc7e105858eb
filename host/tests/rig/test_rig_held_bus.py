"""What an I2C bus and a microcontroller that lose step leave behind, through the real firmware; SIMULATED."""

import numpy as np
import pytest
from opjoule.base.errors import MeterFault
from opjoule.energy.trace.journal import read_trace
from rig_session import ARDUINO_FIRMWARE, FIRMWARE, rig_sim, write_profile

pytestmark = pytest.mark.rig

SECONDS = 2.0


def inputs(folder):
    """A constant 0.5 A at 5 V."""
    write_profile(folder / "profile.csv", [(0, 0.5)], 5.0, SECONDS)
    return ["--profile", str(folder / "profile.csv")]


@pytest.mark.parametrize("clocks", [1, 5, 9])
@pytest.mark.parametrize("firmware", [FIRMWARE, ARDUINO_FIRMWARE], ids=["uno", "uno-arduino"])
def test_a_data_line_held_at_the_start_is_clocked_free_and_reported(tmp_path, clocks, firmware):
    options = ("--hold-sda", f"boot,{clocks}")
    with rig_sim(tmp_path, *inputs(tmp_path), *options, firmware=firmware) as rig:
        summary = rig.capture()
        read = rig.played()["sensor"]["shunt"]["reads"]
    assert summary.losses.faults == {"i2c_held": 1}
    assert 0 <= read - summary.samples <= 16  # those of the last frame, not yet sent
    assert not list(summary.notices())


@pytest.mark.parametrize("clocks", [20, 45])
def test_a_data_line_held_in_mid_run_costs_some_milliseconds(tmp_path, clocks):
    """More clocks than the transfer under way still has; each attempt gives nine, and one for its STOP."""
    with rig_sim(tmp_path, *inputs(tmp_path), "--hold-sda", f"1.2,{clocks}") as rig:
        summary = rig.capture()
        rig.played()
    faults = summary.losses.faults
    assert faults["i2c_held"] >= 1
    assert faults.get("i2c_timeout", 0) + faults.get("i2c_bus_error", 0) >= 1
    assert any("did not answer all the time" in fault.text for fault in summary.notices())
    trace = read_trace(tmp_path)
    assert sum(gap.duration_ns for gap in trace.gaps) * 1e-9 < 0.1
    known = trace.current_a[~np.isnan(trace.current_a)]
    assert known.size > 1000 * (SECONDS + 0.5)
    assert set(known[3:2000]) == {0.5}


def test_where_the_bus_library_hangs_the_watchdog_brings_the_sensor_back(tmp_path):
    options = ("--hold-sda", "0.5,20", "--tail-s", "30")
    with rig_sim(tmp_path, *inputs(tmp_path), *options, firmware=ARDUINO_FIRMWARE) as rig:
        assert "watchdog" in rig.capture().ended
        meter = rig.meter()
        try:
            sensors = meter.open().sensors
        finally:
            meter.close()
        rig.terminate()
    assert [sensor.model for sensor in sensors] == ["ina219"]


def test_a_data_line_that_nothing_frees_is_a_missing_sensor_not_a_hang(tmp_path):
    with rig_sim(tmp_path, *inputs(tmp_path), "--hold-sda", "boot,1000000000") as rig:
        meter = rig.meter()
        try:
            assert meter.open().sensors == ()
            with pytest.raises(MeterFault, match="no sensor 0"):
                meter.configure()
        finally:
            meter.close()


def test_a_refused_address_to_read_from_is_stopped_at_once(tmp_path):
    """Only START or STOP may follow it: a controller that goes on with a byte hangs, and it is a timeout."""
    with rig_sim(tmp_path, *inputs(tmp_path), "--sensor-fail-at", "1") as rig:
        summary = rig.capture()
    assert summary.losses.faults["i2c_nack"] > 100
    assert not {"i2c_timeout", "i2c_bus_error", "i2c_held"} & set(summary.losses.faults)


def test_garbage_before_the_first_word_costs_nothing(tmp_path):
    with rig_sim(tmp_path, *inputs(tmp_path), "--reset-garbage", "700") as rig:
        summary = rig.capture()
        read = rig.played()["sensor"]["shunt"]["reads"]
    assert summary.losses.lost_samples == 0
    assert 0 <= read - summary.samples <= 16  # those of the last frame, not yet sent


@pytest.mark.parametrize("seed", range(1, 6))
def test_garbage_at_a_reset_in_mid_run_does_not_hide_the_reset(tmp_path, seed):
    options = ("--reset-garbage", "300", "--reset-at", "0.9", "--seed", str(seed))
    with rig_sim(tmp_path, *inputs(tmp_path), *options) as rig:
        summary = rig.capture()
        rig.terminate()
    assert "brown" in summary.ended
    trace = read_trace(tmp_path)
    assert "brown" in trace.gaps[-1].reason
    known = trace.current_a[~np.isnan(trace.current_a)]
    assert np.ptp(known[2:]) == 0


def test_a_read_that_a_reset_cuts_off_does_not_hide_the_sensor_from_the_next_start(tmp_path):
    """The sensor waits with a 0 for clocks; the program that starts anew gives them."""
    options = ("--reset-at", "0.9", "--hold-sda", "0.9,4")
    with rig_sim(tmp_path, *inputs(tmp_path), *options) as rig:
        assert "brown" in rig.capture().ended
        meter = rig.meter()
        try:
            identity = meter.open()
        finally:
            meter.close()
        rig.terminate()
    assert [sensor.model for sensor in identity.sensors] == ["ina219"]
