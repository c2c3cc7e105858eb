"""Energy and edges from the real firmware in the rig simulator, against the exact truth.

Shunt+bus mode converts the current half of the time. A load that switches about as fast as it samples is
therefore sampled, not integrated: over one second that leaves up to 0.2 %, which shunt mode does not have.
"""

from dataclasses import replace

import numpy as np
import pytest
from opjoule.energy.error_bounds import Shunt
from opjoule.meters.chips import SensorSettings, chip_of
from opjoule.meters.messages import ChipKind, Mode
from rig_profiles import EDGES_S, PROFILES, bursts, constant
from rig_session import PERFECT_SENSOR, record

pytestmark = pytest.mark.rig


MODES = {
    "pairs": SensorSettings(mode=Mode.PAIRS),
    "shunts": SensorSettings(mode=Mode.SHUNTS, bus_every=128),
}
SAMPLED_ONLY = {("pairs", "square 1 ms"), ("pairs", "bursts")}


@pytest.fixture(scope="module", params=[(mode, name) for mode in MODES for name in PROFILES], ids="-".join)
def perfect(request, tmp_path_factory):
    """A recording of one profile in one mode without imperfections, and its limit between edges."""
    mode, name = request.param
    limit = 2e-3 if request.param in SAMPLED_ONLY else 1e-3
    return record(tmp_path_factory.mktemp("rig"), PROFILES[name](), EDGES_S, settings=MODES[mode]), limit


def test_a_perfect_rig_gives_the_energy_of_the_profile_within_0_1_percent(perfect):
    rig, _ = perfect
    assert abs(rig.total_error) < 1e-3


def test_a_perfect_rig_gives_the_energy_between_edges_within_0_1_percent(perfect):
    rig, limit = perfect
    errors = [measured.energy.value / true_j - 1 for measured, true_j in rig.interval_energies()]
    assert len(errors) == len(EDGES_S) - 1
    assert max(map(abs, errors)) < limit


def test_edges_are_within_2_us_of_their_true_place_on_the_meter_clock(perfect):
    rig, _ = perfect
    assert len(rig.edges_ns) == len(EDGES_S)
    assert np.abs(rig.edge_errors_s).max() < 2e-6


def test_no_conversion_is_missed_or_read_twice_and_no_frame_lost(perfect):
    rig, _ = perfect
    for channel in ("shunt", "bus"):
        counts = rig.truth["sensor"][channel]
        assert counts["missed"] == counts["read_twice"] == 0
        assert counts["reads"] > 0
    assert rig.summary.losses.lost_samples == 0
    assert rig.summary.losses.link["lost_frames"] == 0
    assert rig.summary.losses.faults == {}
    # Of what the firmware read only the frame that was still open at the end did not arrive.
    missing = rig.truth["sensor"]["shunt"]["reads"] - rig.summary.samples
    assert 0 <= missing <= 32


def test_a_fast_clock_and_lost_bytes_cost_less_than_0_2_percent_and_the_interval_says_so(tmp_path):
    options = ["--clock-error-ppm", "100", "--drop-bytes", "0.001", "--seed", "11"]
    rig = record(tmp_path, bursts(), EDGES_S, *options)
    assert rig.truth["link"]["bytes_dropped"] > 20
    assert rig.summary.losses.lost_samples == rig.trace.lost_samples > 100
    assert abs(rig.total_error) < 2e-3
    assert np.abs(rig.edge_errors_s).max() < 2e-6
    intervals = rig.interval_energies()
    for measured, true_j in intervals:
        assert abs(measured.energy.value / true_j - 1) < 2e-3
        assert abs(measured.energy.value - true_j) < 1.5 * measured.energy.u  # k = 3
    # k = 2 leaves one in twenty outside.
    assert sum(measured.energy.covers(true_j) for measured, true_j in intervals) >= len(intervals) - 1


@pytest.mark.parametrize("ppm", [-60_000, 60_000])
def test_a_sensor_whose_own_clock_is_off_loses_no_conversion_and_no_energy(tmp_path, ppm):
    rig = record(tmp_path, bursts(), EDGES_S, "--sensor-clock-error-ppm", str(ppm))
    assert abs(rig.total_error) < 1e-3
    assert rig.summary.losses.lost_samples == 0
    assert rig.truth["sensor"]["shunt"]["missed"] == rig.truth["sensor"]["shunt"]["read_twice"] == 0


@pytest.mark.parametrize("name", ["square 10 ms", "square 100 ms", "square 1 s", "bursts"])
def test_a_voltage_that_follows_the_load_is_followed_between_bus_readings(tmp_path, name):
    recorded = record(tmp_path, PROFILES[name](), EDGES_S, source_ohm=0.1)
    assert abs(recorded.total_error) < 1.5e-3


def test_bursts_of_40_ms_on_0_3_ohm_are_within_0_1_percent_and_the_time_that_is_seen_is_stated(tmp_path):
    """Held voltages were 3 % wrong here. 128 conversions, then a bus reading with its switching: 98.45 % is seen."""
    rows = [row for n in range(58) for row in ((n * 0.1, 1.2), (n * 0.1 + 0.04, 0.3))]
    rig = record(tmp_path, rows, [0.5, 5.5], source_ohm=0.3, end_s=6.0)
    ((interval, true_j),) = rig.interval_energies(replace(PERFECT_SENSOR, seen_fraction=1.0))
    assert rig.trace.supply.resistance_ohm == pytest.approx(0.3, abs=0.01)
    assert interval.energy.value == pytest.approx(true_j, rel=1e-3)
    assert interval.energy.covers(true_j)
    assert interval.energy.relative_u < 2e-3
    assert interval.seen_share == pytest.approx(0.9845, abs=1e-3)


def test_gain_and_offset_show_in_the_energy_as_large_as_they_are(tmp_path):
    rig = record(tmp_path, constant(), EDGES_S, "--gain-error", "0.004", "--offset-uv", "60")
    # 0.6 A at 0.1 ohm: 60 mV, so 60 uV are another 0.1 %.
    assert rig.total_error == pytest.approx(0.005, abs=2e-4)


def test_noise_vanishes_in_the_mean(tmp_path):
    rig = record(tmp_path, constant(), EDGES_S, "--noise-uv", "200")
    assert np.nanstd(rig.trace.current_a[100:9000]) == pytest.approx(2e-3, rel=0.1)
    assert abs(rig.total_error) < 1e-3


@pytest.mark.parametrize("kind", [kind for kind in ChipKind if kind not in {ChipKind.NONE, ChipKind.INA219}])
def test_another_chip_is_found_and_measured_without_settings(tmp_path, kind):
    """0.5 A: 50 mV on 0.1 ohm lies within the range of each; an INA260 has its own shunt."""
    chip, period_us = kind.name.lower(), chip_of(kind).times(chip_of(kind).alone).period_us
    rows = [(0.0, 0.5), (2.0, 0.1), (4.0, 0.7)]
    rig = record(tmp_path, rows, EDGES_S, "--sensor", chip)
    bounds = chip_of(kind).error_bounds(chip_of(kind).alone.shunt_range, 1.0, Shunt())
    coarse = bounds.voltage_step_v / 2 / 5.1  # the supply does not move within a step of the bus voltage
    assert abs(rig.total_error) < 1e-3 + coarse
    assert rig.truth["sensor"]["model"].lower() == chip
    assert np.median(np.diff(rig.trace.meter_ns)) * 1e-3 == pytest.approx(period_us, rel=0.01)
    assert rig.truth["sensor"]["shunt"]["missed"] == rig.truth["sensor"]["shunt"]["read_twice"] == 0


def test_a_chip_at_the_fast_end_of_its_data_sheet_misses_nothing_and_nothing_is_said_to_be_missed(tmp_path):
    """Polls then come late all the time, and still find each conversion."""
    rig = record(tmp_path, constant(), [0.5, 2.5], "--sensor-clock-error-ppm", "125000", end_s=3.0)
    assert rig.truth["sensor"]["shunt"]["missed"] == 0
    assert rig.trace.lost_samples == 0 and "conversion_missed" not in rig.summary.losses.faults
