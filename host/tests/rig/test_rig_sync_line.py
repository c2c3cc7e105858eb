"""A sync line that nobody drives, or that oscillates, through the real firmware; SIMULATED."""

import numpy as np
import pytest
from opjoule.base.notices import NoticeKind
from opjoule.energy.trace.journal import read_edges
from rig_session import record, rig_sim, write_profile

pytestmark = pytest.mark.rig

QUIET_EDGES_S = [0.2, 0.45, 0.7, 0.95, 3.45, 3.7, 3.95, 4.2]
STORM_S = (1.2, 3.2)
RATES_HZ = [100, 10_000, 100_000]
FURTHER_RATES_HZ = [2_500, 20_000, 30_000, 45_000, 55_000, 60_000, 80_000]
SQUARE = [(0.005 * i, 0.4 if i % 2 else 0.9) for i in range(1000)]


def storm(rate_hz: int) -> list[float]:
    """Edges at this rate, an even number of them, so that those after it have their old polarity."""
    count = round((STORM_S[1] - STORM_S[0]) * rate_hz) // 2 * 2
    return np.linspace(*STORM_S, count, endpoint=False).tolist()


@pytest.fixture(
    scope="module",
    params=[*RATES_HZ, *(pytest.param(rate, marks=pytest.mark.thorough) for rate in FURTHER_RATES_HZ)],
    ids=lambda rate: f"{rate} edges a second",
)
def stormy(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("storm")
    edges_s = [*QUIET_EDGES_S[:4], *storm(request.param), *QUIET_EDGES_S[4:]]
    return request.param, record(folder, SQUARE, edges_s), folder


def test_a_storm_of_edges_resets_nothing_and_loses_no_time(stormy):
    _, rig, _ = stormy
    assert rig.summary.ended is None
    assert rig.truth["mcu"]["resets"] == 0
    assert abs(rig.total_error) < 1e-3
    span_s = (rig.trace.meter_ns[-1] - rig.trace.meter_ns[0]) * 1e-9
    assert span_s == pytest.approx(5.5, abs=0.1)


def test_a_storm_of_edges_loses_next_to_no_conversion_and_all_that_it_does_are_counted(stormy):
    _, rig, _ = stormy
    shunt = rig.truth["sensor"]["shunt"]
    assert shunt["missed"] <= 1e-3 * shunt["reads"]
    assert rig.summary.losses.lost_samples >= shunt["missed"]
    assert shunt["read_twice"] == 0


def test_a_line_that_oscillates_is_reported_and_one_with_many_edges_is_not(stormy):
    rate_hz, rig, _ = stormy
    faults = [fault for fault in rig.summary.notices() if fault.kind is NoticeKind.SYNC_LINE]
    assert bool(faults) == (rate_hz > 2_000)
    assert bool(rig.summary.losses.lost_edges) == (rate_hz > 2_000)


def test_edges_before_and_after_a_storm_keep_their_times(stormy):
    *_, folder = stormy
    edges = read_edges(folder)
    wanted_s = np.array(QUIET_EDGES_S) + (edges.meter_ns[0] * 1e-9 - QUIET_EDGES_S[0])
    found_s = edges.meter_ns * 1e-9
    nearest = np.abs(found_s[:, None] - wanted_s[None, :]).argmin(axis=0)
    assert np.abs(found_s[nearest] - wanted_s).max() < 1e-6
    assert edges.level[nearest].tolist() == [1, 0, 1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("rate_hz", [100, 50_000])
def test_a_line_whose_wire_is_off_rests(tmp_path, rate_hz):
    write_profile(tmp_path / "profile.csv", [(0, 0.5)], 5.0, 2.0)
    inputs = ["--profile", str(tmp_path / "profile.csv"), "--open-sync", str(rate_hz)]
    with rig_sim(tmp_path, *inputs) as rig:
        summary = rig.capture()
        rig.played()
    assert (summary.ended, summary.edges, summary.losses.faults) == (None, 0, {})
