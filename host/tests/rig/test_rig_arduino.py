"""The firmware on the Arduino framework, with the stand-in for the sensor library, in the rig simulator.

It cannot ask the chip whether a value is new, so it reads 0.7 times as often as the chip converts and sees the
current 38 % of the time. Limits here are those that docs/reference/firmware.md states.
"""

import random

import numpy as np
import pytest
from opjoule.base.errors import MeterFault
from opjoule.meters.chips import SensorSettings
from opjoule.meters.messages import Mode
from rig_profiles import EDGES_S, PROFILES
from rig_session import ARDUINO_FIRMWARE, record, rig_sim, write_profile

pytestmark = pytest.mark.rig

AT_D2 = ("--sync-pin", "D2")
EDGE_LIMIT_S = 20e-6
"""Greatest error of an edge about the median of all: 4 us of micros(), and what its interrupt waits for two others."""


def many_edges():
    """About 150 edges, 5 to 60 ms apart."""
    chance, at_s, edges = random.Random(1), 0.2, []
    while at_s < 4.8:
        edges.append(round(at_s, 7))
        at_s += chance.uniform(0.005, 0.06)
    return edges


def run(folder, name, edges_s=EDGES_S, *options):
    return record(folder, PROFILES[name](), edges_s, *AT_D2, *options, firmware=ARDUINO_FIRMWARE)


def ends_share(rig):
    """What the steps from and to no current, at both ends of a profile, leave open of its energy, relative.

    A step lies somewhere between two samples 1.4 to 2 ms apart, and counts as half-way. A ramp that ends at 1.4 A with
    4 A s behind it: 0.7 ms times 1.4 A are 2.5e-4.
    """
    good = rig.trace.good
    at_s, current_a = rig.trace.meter_ns[good] * 1e-9, rig.trace.current_a[good]
    flows = np.flatnonzero(current_a > 0.01)
    first, last = flows[0], flows[-1]
    open_as = (at_s[first] - at_s[first - 1]) * current_a[first] + (at_s[last + 1] - at_s[last]) * current_a[last]
    return open_as / 2 / np.trapezoid(current_a, at_s)


@pytest.mark.parametrize(
    "name, limit",
    [("constant", 5e-5), ("ramp", 5e-5), ("square 1 s", 2e-3), ("square 100 ms", 2e-3), ("bursts", 3e-3)],
)
def test_energy_is_within_its_limit_and_the_interval_covers_what_is_unseen(tmp_path, name, limit):
    rig = run(tmp_path, name)
    assert abs(rig.total_error) < limit + ends_share(rig)
    intervals = rig.interval_energies()
    between_j = sum(measured.energy.value for measured, _ in intervals)
    assert abs(between_j / sum(true_j for _, true_j in intervals) - 1) < limit
    assert len(intervals) == len(EDGES_S) - 1
    # k = 2 leaves one in twenty outside.
    assert sum(measured.energy.covers(true_j) for measured, true_j in intervals) >= len(intervals) - 1


@pytest.mark.parametrize("rate_hz", [2_500, 30_000, 100_000])
def test_a_sync_line_that_oscillates_resets_nothing_and_is_reported(tmp_path, rate_hz):
    storm = np.linspace(1.2, 3.2, 2 * rate_hz, endpoint=False).tolist()
    rig = run(tmp_path, "constant", [0.2, 0.7, *storm, 3.7, 4.2])
    assert rig.summary.ended is None and rig.truth["mcu"]["resets"] == 0
    assert any("sync line oscillates" in fault.text for fault in rig.summary.notices())
    assert abs(rig.total_error) < 3e-3
    assert rig.edges_ns[-1] - rig.edges_ns[0] == pytest.approx(4e9, rel=1e-4)


@pytest.mark.parametrize("chip_ppm, board_ppm", [(0, 0), (-92_000, 5_000), (100_000, -5_000)])
def test_no_value_is_taken_twice_however_slow_the_chip(tmp_path, chip_ppm, board_ppm):
    """586 us is the data sheet's longest conversion: 92,000 ppm slow; a ceramic resonator may be 0.5 % off."""
    options = ["--sensor-clock-error-ppm", str(chip_ppm), "--clock-error-ppm", str(board_ppm)]
    rig = run(tmp_path, "bursts", EDGES_S, *options)
    for channel in ("shunt", "bus"):
        assert rig.truth["sensor"][channel]["read_twice"] == 0
    assert rig.summary.samples > 3400
    assert rig.truth["sensor"]["shunt"]["missed"] > 500
    assert rig.summary.losses.faults == {}
    assert rig.summary.losses.link["lost_frames"] == 0


def test_edges_are_all_there_and_within_20_us(tmp_path):
    edges_s = many_edges()
    rig = run(tmp_path, "constant", edges_s)
    assert len(rig.edges_ns) == len(edges_s)
    assert np.abs(rig.edge_errors_s).max() < EDGE_LIMIT_S
    assert np.quantile(np.abs(rig.edge_errors_s), 0.95) < 6e-6


def test_times_between_samples_are_those_that_the_host_counts_with(tmp_path):
    rig = run(tmp_path, "constant")
    steps_us = np.diff(rig.trace.meter_ns[rig.trace.good]) * 1e-3
    assert steps_us.min() > 1184
    assert 1400 < np.median(steps_us) < 1480
    # A clock exchange each 0.2 s and a status each second hold a read up.
    assert rig.summary.losses.lost_samples < 0.01 * rig.summary.samples


def test_it_says_what_it_is_and_refuses_what_the_library_cannot_do(tmp_path):
    write_profile(tmp_path / "profile.csv", [(0.0, 0.6)], 5.0, 1.0)
    with rig_sim(tmp_path, "--profile", str(tmp_path / "profile.csv"), firmware=ARDUINO_FIRMWARE) as rig:
        meter = rig.meter(settings=SensorSettings(mode=Mode.SHUNTS))
        identity = meter.open()
        assert identity.board == "avr"
        assert [(sensor.model, sensor.address) for sensor in identity.sensors] == [("ina219", 0x40)]
        with pytest.raises(MeterFault, match="cannot do mode"):
            meter.configure()
        meter.close()


def test_without_settings_the_host_asks_for_what_the_library_can_do(tmp_path):
    write_profile(tmp_path / "profile.csv", [(0.0, 0.6)], 5.0, 1.0)
    with rig_sim(tmp_path, "--profile", str(tmp_path / "profile.csv"), firmware=ARDUINO_FIRMWARE) as rig:
        meter = rig.meter()
        meter.open()
        meter.configure()
        assert meter.error_bounds().seen_fraction == pytest.approx(532 / 1400)
        meter.close()


def test_a_sensor_that_stops_answering_is_a_fault_and_a_gap(tmp_path):
    rig = run(tmp_path, "constant", EDGES_S, "--sensor-fail-at", "3")
    assert rig.summary.losses.faults["i2c_nack"] > 10
    assert rig.trace.meter_ns[rig.trace.good][-1] * 1e-9 < 3.5


def test_more_than_one_sensor_is_refused(tmp_path):
    write_profile(tmp_path / "profile.csv", [(0.0, 0.6)], 5.0, 1.0)
    sensors = ["--sensor", "ina219@0x40", "--sensor", "ina219@0x41"]
    inputs = ["--profile", str(tmp_path / "profile.csv"), *sensors]
    with rig_sim(tmp_path, *inputs, firmware=ARDUINO_FIRMWARE) as rig:
        meter = rig.meter(",sensors=0+1")
        assert len(meter.open().sensors) == 2
        meter.configure()
        with pytest.raises(MeterFault, match="start refused"):
            meter.start()
        meter.close()
