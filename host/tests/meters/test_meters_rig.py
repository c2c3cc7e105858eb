"""The serial meter on the real firmware in the rig simulator against the simulator's truth, sample by sample."""

import random

import numpy as np
import pytest
from opjoule.energy.trace.journal import read_edges
from rig_session import record

SECONDS = 5.0

pytestmark = pytest.mark.rig


def recorded(folder, *imperfections):
    """A load that switches each 20 to 120 ms, and sync edges each 0.1 to 0.9 s."""
    chance = random.Random(5)
    rows, time_s = [], 0.0
    while time_s < SECONDS:
        rows.append((round(time_s, 6), round(chance.uniform(0.4, 1.3), 6)))
        time_s += chance.uniform(0.02, 0.12)
    edges_s, time_s = [], 0.3
    while time_s < SECONDS - 0.3:
        edges_s.append(round(time_s, 6))
        time_s += round(chance.uniform(0.1, 0.9), 6)
    return record(folder, rows, edges_s, *imperfections, end_s=SECONDS)


def charge_c(trace):
    """Samples held over their cells, plus what the gaps carry."""
    centre_s = trace.meter_ns * 1e-9
    bounds = (centre_s[1:] + centre_s[:-1]) / 2
    ends = [1.5 * centre_s[0] - 0.5 * centre_s[1]], [1.5 * centre_s[-1] - 0.5 * centre_s[-2]]
    cells_s = np.diff(np.concatenate([ends[0], bounds, ends[1]]))
    return float((trace.current_a * cells_s)[trace.good].sum()) + sum(gap.charge_c for gap in trace.gaps)


def test_a_perfect_line_loses_nothing_and_edges_are_within_2_us(tmp_path):
    rig = recorded(tmp_path)
    assert rig.summary.losses.lost_samples == 0
    assert rig.summary.losses.link["lost_frames"] == 0
    assert rig.summary.losses.faults == {}
    assert charge_c(rig.trace) == pytest.approx(rig.truth["total_c"], rel=1e-3)
    assert np.ptp(rig.edges_ns * 1e-9 - rig.edges_s) < 2e-6


def test_dropped_bytes_and_a_wrong_clock_cost_no_charge_and_no_edge(tmp_path):
    rig = recorded(tmp_path, "--drop-bytes", "0.001", "--clock-error-ppm", "100", "--seed", "4")
    losses = rig.summary.losses
    assert losses.lost_samples > 50
    assert losses.recovered_samples == losses.lost_samples == rig.trace.lost_samples
    assert charge_c(rig.trace) == pytest.approx(rig.truth["total_c"], rel=2e-3)
    # The very last edge has no later message that repeats it.
    assert list(read_edges(tmp_path).index) == list(range(len(rig.edges_ns)))
    assert len(rig.edges_s) - 1 <= len(rig.edges_ns) <= len(rig.edges_s)
