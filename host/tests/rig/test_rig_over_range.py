"""Currents beyond the range, from the real firmware in the rig simulator: known as such up to the energy."""

import pytest
from opjoule.energy.trace.journal import read_trace
from opjoule.energy.window import Window, window_energy_j
from rig_session import PERFECT_SENSOR, record, rig_sim, write_profile

pytestmark = pytest.mark.rig

BEYOND_S = 0.5
ROWS = [(0.0, 0.6), (2.0, 3.5), (2.0 + BEYOND_S, 0.6)]
"""3.5 A through 0.1 ohm are 350 mV, 30 more than the chip's widest range."""


@pytest.mark.parametrize("options", [(), ("--drop-bytes", "0.002")], ids=["whole", "with lost frames"])
def test_clipped_conversions_are_marked_one_by_one_and_those_of_lost_frames_are_counted(tmp_path, options):
    rig = record(tmp_path, ROWS, [1.0, 1.9, 3.0], *options, end_s=3.5)
    expected = BEYOND_S * 1e9 / rig.trace.period_ns
    assert rig.summary.clipped_samples == rig.trace.clipped_samples == pytest.approx(expected, rel=0.02)
    assert bool(options) == (rig.trace.lost_samples > 0)
    if options:
        assert sum(gap.clipped_samples for gap in rig.trace.gaps) > 0
    before, within = rig.edges_ns[:2].tolist(), rig.edges_ns[1:].tolist()
    sound = window_energy_j(rig.cells, Window(*before, 500.0), PERFECT_SENSOR)
    assert sound.energy.u is not None and sound.clipped_samples == 0
    bounded = window_energy_j(rig.cells, Window(*within, 500.0), PERFECT_SENSOR)
    assert bounded.energy.u is None and "at least this" in bounded.energy.reason
    assert bounded.clipped_s == pytest.approx(BEYOND_S, rel=0.1)
    assert bounded.energy.value < 0.97 * rig.truth["intervals"][1]["energy_j"]


@pytest.mark.parametrize(
    ("sensor", "ohm", "options", "limit"),
    [
        ("ina219", "0.02", "shunt=0.02", 1e-3),
        ("ina226", "0.01", "shunt=0.01", 1e-3),
        ("ina228", "0.1", "range=80", 1e-3),
        ("ina228", "0.02", "shunt=0.02,range=40", 1e-3),
    ],
)
def test_the_current_is_right_whatever_the_shunt_and_the_range(tmp_path, sensor, ohm, options, limit):
    write_profile(tmp_path / "profile.csv", [(0.0, 1.5)], 5.0, 0.6)
    inputs = ["--profile", str(tmp_path / "profile.csv"), "--sensor", sensor]
    with rig_sim(tmp_path, *inputs, "--shunt-ohm", ohm) as rig:
        rig.capture(rig.meter(f",{options}"))
    current_a = read_trace(tmp_path).current_a[50:500]
    assert float(current_a.mean()) == pytest.approx(1.5, rel=limit)
