"""Lost packets: the true energy lies inside the stated interval. SIMULATED traces, an ideal sensor."""

from __future__ import annotations

import pytest
from validation.lost_packets import METERS, bursts, square, trial, work

TRIALS = 20


@pytest.mark.parametrize(
    ("meter", "profile"),
    [(METERS[0], bursts), (METERS[1], square), (METERS[2], bursts), (METERS[3], work)],
    ids=lambda one: one.name if hasattr(one, "name") else one.__name__,
)
def test_intervals_hold_the_truth_when_packets_are_lost(meter, profile):
    """Some of the trials of host/validation/lost_packets.py."""
    results = [trial(seed, meter, profile) for seed in range(TRIALS)]
    assert sum(result.energy.covers(truth) for result, truth in results) >= TRIALS - 1
    assert all(result.lost_samples > 0.03 * 9000 for result, _ in results)


def test_recovered_charge_makes_loss_harmless():
    """The same losses with and without the charge of the lost packets, on a load of random work."""
    for seed in range(5):
        with_sums, truth_j = trial(seed, METERS[0], work)
        without, _ = trial(seed, METERS[1], work)
        assert with_sums.budget.parts["loss"] == 0.0
        assert without.budget.parts["loss"] > with_sums.budget.parts["quantisation"]
        assert abs(with_sums.energy.value - truth_j) < abs(without.energy.u)
